"""Pickling the user's code for the workers: lambdas, classes of ``__main__``, and the modules
beside the program.

Installed packages, which every node can import, travel by name. ``__main__``, notebooks and all
modules under the program's own folder travel by value. So they exist on every node, and two jobs
that each have a ``helpers.py`` do not get each other's."""

from __future__ import annotations

import io
import pickle
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from flinkpy.core.errors import ProgramError
from flinkpy.core.program.moved_modules import module_now
from flinkpy.core.program.program_pickler import program_pickler


class OutOfBand:
    """Data that pickled code refers to but need not contain: see ``dumps``. Pickled on its own, it
    includes everything."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self  # nobody changes it


def dumps(
    value: object,
    what: str = "the program",
    out_of_band: list[OutOfBand] | None = None,
    purpose: str = "sent to the workers",
) -> bytes:
    """Pickles ``value``, with the user's code by value. If that fails, raises ProgramError, which
    says that ``what`` cannot be ``purpose``.

    With ``out_of_band``, each :class:`OutOfBand` object is appended to that list once instead of
    being pickled; ``loads`` needs the same list."""

    def pickled(part: object) -> bytes:
        file = io.BytesIO()
        if out_of_band is None:
            program_pickler()(file, protocol=5).dump(part)
        else:
            pickler = _naming_pickler()(file, protocol=5)
            pickler.out_of_band = out_of_band
            pickler.dump(part)
        return file.getvalue()

    with _by_value(_user_modules()):
        try:
            return pickled(value)
        except Exception as error:
            raise ProgramError(
                f"{what} cannot be {purpose}: {_explained(value, pickled) or _in_general(error)}"
            ) from error


def dumps_state(value: object, what: str) -> bytes:
    """Like ``dumps``, for what goes into a checkpoint."""
    return dumps(value, what, purpose="saved")


@cache
def _naming_pickler() -> Any:
    class Pickler(program_pickler()):  # type: ignore[misc]
        out_of_band: list[OutOfBand]

        def persistent_id(self, value: object) -> int | None:
            if not isinstance(value, OutOfBand):
                return None
            if value not in self.out_of_band:
                self.out_of_band.append(value)
            return self.out_of_band.index(value)

    return Pickler


def dumps_data(value: object, what: str) -> bytes:
    """Like ``dumps``, and faster for plain data: falls back to ``dumps`` only for what the program
    itself defines."""
    file = io.BytesIO()
    try:
        _DataPickler(file, 5).dump(value)
    except Exception:  # an object of the program, or one that cannot be pickled: dumps says which
        return dumps(value, what)
    return file.getvalue()


class _DataPickler(pickle.Pickler):
    def reducer_override(self, obj: object) -> Any:
        module = obj.__module__ if hasattr(obj, "__module__") else type(obj).__module__
        if not _is_installed(module):
            raise pickle.PicklingError(f"{module} travels by value")
        return NotImplemented


def _is_installed(module: str | None) -> bool:
    """Whether every worker can import it, because it is not the program's own."""
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    return module != "__main__" and (
        file is None
        or file.startswith(_installed_folders())
        or (module or "").partition(".")[0] == "flinkpy"
    )


def _explained(value: object, pickled: Callable[[Any], bytes]) -> str | None:
    from flinkpy.core.program.unpicklable import explain

    try:
        return explain(value, pickled)
    except Exception:  # raised by the user's objects while explain() looks at them
        return None


def _in_general(error: Exception) -> str:
    return (
        f"{error}. Open connections, locks, files and generators belong into open() of a "
        "function class, not into what the function "
        "captures"
    )


def loads(data: bytes, out_of_band: Sequence[OutOfBand] = ()) -> Any:
    """Unpickles the output of :func:`dumps`, and what earlier versions have saved."""
    if not out_of_band:
        try:
            return pickle.loads(data)
        except ModuleNotFoundError:
            pass  # perhaps saved by a version that had the module at another place
    unpickler = _Unpickler(io.BytesIO(data))
    unpickler.out_of_band = out_of_band
    return unpickler.load()


class _Unpickler(pickle.Unpickler):
    out_of_band: Sequence[OutOfBand]

    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(module_now(module), name)

    def persistent_load(self, number: int) -> OutOfBand:
        return self.out_of_band[number]


_further_homes: set[str] = set()


def travels_by_value(module: ModuleType) -> None:
    """The module, and those beside it, are the program's own too, although they lie elsewhere: SQL
    named it. Installed packages stay as they are."""
    file = getattr(module, "__file__", None)
    if file and not _is_installed(module.__name__):
        depth = module.__name__.count(".") + (Path(file).name == "__init__.py")
        _further_homes.add(str(Path(file).resolve().parents[depth]))


def _user_modules() -> list[ModuleType]:
    """The loaded modules that live under the program's own folder and are not installed
    packages."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    homes = set(_further_homes)
    if file:
        homes.add(str(_home(Path(file).resolve(), getattr(main, "__spec__", None))))
    elif hasattr(sys, "ps1"):
        homes.add(str(Path.cwd()))  # a prompt or a notebook has no file
    if not homes:
        return []
    modules = sys.modules.copy()
    names = _names_beside(frozenset(homes), tuple(modules), tuple(map(id, modules.values())))
    return [modules[name] for name in names]


@lru_cache(maxsize=1)  # the functions of a job are pickled one by one, over the same modules
def _names_beside(homes: frozenset[str], names: tuple[str, ...], _: tuple[int, ...]) -> list[str]:
    """The names of modules below one of these folders. The last argument tells modules apart that
    have one name."""
    found = []
    for name in names:
        module = sys.modules.get(name)
        path = getattr(module, "__file__", None)
        if (
            module is not None
            and path
            and name != "__main__"
            and module.__name__.partition(".")[0] != "flinkpy"
            and any(_lies_beside(path, home) for home in homes)
        ):
            found.append(name)
    return found


def _home(file: Path, spec: object) -> Path:
    """The program's folder; for a module of a package (``python -m jobs.words``) the folder that
    contains the package."""
    package: str = getattr(spec, "parent", None) or ""
    return file.parents[len(package.split(".")) if package else 0]


@cache
def _lies_beside(path: str, home: str) -> bool:
    """Whether a module's file lies under the program's folder and is not an installed package."""
    installed = _installed_folders()
    if path.startswith(installed):  # resolving is slow
        return False
    resolved = str(Path(path).resolve())
    return resolved.startswith(home + "/") and not resolved.startswith(installed)


@cache
def _installed_folders() -> tuple[str, ...]:
    folders = {
        path
        for key, path in sysconfig.get_paths().items()
        if key in ("stdlib", "platstdlib", "purelib", "platlib")
    }
    return tuple(folders | {str(Path(path).resolve()) for path in folders})


@contextmanager
def _by_value(modules: list[ModuleType]) -> Iterator[None]:
    import cloudpickle

    before = set(cloudpickle.list_registry_pickle_by_value())
    fresh = [module for module in modules if module.__name__ not in before]
    for module in fresh:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in fresh:
            cloudpickle.unregister_pickle_by_value(module)
