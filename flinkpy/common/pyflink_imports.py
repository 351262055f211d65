"""Makes ``import pyflink`` mean flinkpy: an import finder for ``pyflink.common``,
``pyflink.datastream`` and ``pyflink.metrics``.

These are flinkpy's own modules under a second name, not copies: ``isinstance`` holds across both
names, and classes are pickled under the name they were defined with. Parts of PyFlink that need a
JVM have no module here; importing one raises an error that says what to use instead.

A program asks for this (``flinkpy run --pyflink``, or ``install()``); importing flinkpy alone does
not do it, so both can be installed side by side."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from flinkpy.core.errors import ProgramError

_OURS = ("common", "datastream", "metrics")
_ELSEWHERE = {"version": "common.pyflink_version"}
_FILES = (
    "there are connectors for files, Kafka and sockets; or write a source of your own "
    "(flinkpy.connectors.sources.PythonSource)"
)
_INSTEAD = {
    "table": "SQL is there under the name flinkpy.table (TableEnvironment, execute_sql), and its "
    "other parts are not all there yet; for tables in files and in memory use "
    "env.from_parquet(), from_csv(), from_arrow() and "
    "from_pandas() with flinkpy.table.expressions, for generated ones env.generate()",
    "java_gateway": "there is no JVM; write the function in Python",
    "util": "PyFlink's helpers for Java objects have nothing to stand for",
    "fn_execution": (
        "functions run in the engine itself, there is no second process that executes them"
    ),
    "ml": "Flink ML runs on the JVM; call the model from a map or a process function",
    "shell": "start Python and import flinkpy.datastream",
    "testing": "flinkpy.testing has what tests need",
    "datastream.connectors": _FILES,
    "datastream.formats": _FILES,
    "common.utils": "PyFlink's helpers for Java objects have nothing to stand for",
}


class NoSuchPyflinkModule(ProgramError, ImportError):
    """The program imports a part of PyFlink that flinkpy does not have."""


def install() -> None:
    """From now on ``import pyflink...`` imports flinkpy's modules in this process. Raises
    ProgramError if PyFlink itself was imported before.

    >>> install()
    >>> import pyflink.common, flinkpy.common
    >>> pyflink.common is flinkpy.common
    True
    >>> uninstall()
    """
    if is_installed():
        return
    loaded = sys.modules.get("pyflink")
    if loaded is not None:
        raise ProgramError(
            f"PyFlink itself ({getattr(loaded, '__file__', 'pyflink')}) was imported before "
            "flinkpy could stand in for it; "
            "start the program with: flinkpy run --pyflink"
        )
    sys.meta_path.insert(0, _Finder())


def uninstall() -> None:
    """Undoes ``install``; what a program has imported stays as it is."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
    for name in [name for name in sys.modules if name == "pyflink" or name.startswith("pyflink.")]:
        del sys.modules[name]


def is_installed() -> bool:
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


class _Finder(MetaPathFinder):
    """Python asks it for every module that is not loaded; it finds ``pyflink`` and what is below
    it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top, _, rest = fullname.partition(".")
        if top != "pyflink":
            return None
        ours = f"flinkpy.{_ELSEWHERE.get(rest, rest)}" if rest else "flinkpy"
        if (
            rest
            and rest not in _ELSEWHERE
            and (rest.partition(".")[0] not in _OURS or not _exists(ours))
        ):
            raise NoSuchPyflinkModule(_message(fullname, rest), name=fullname)
        return ModuleSpec(fullname, _Alias(ours), is_package=True)


class _Alias(Loader):
    """Puts a flinkpy module into ``sys.modules`` under its second name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # After this the import system looks in sys.modules again, so the module may be replaced.
        # "pyflink" itself stays an empty package: attributes of flinkpy, such as flinkpy.columns,
        # must not be found below it.
        if module.__name__ != "pyflink":
            sys.modules[module.__name__] = importlib.import_module(self._name)


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _message(fullname: str, rest: str) -> str:
    parts = rest.split(".")
    for length in range(len(parts), 0, -1):
        instead = _INSTEAD.get(".".join(parts[:length]))
        if instead is not None:
            return f"flinkpy has no {fullname}: {instead}"
    return f"flinkpy has no {fullname}; docs/pyflink-compatibility.md lists what there is"
