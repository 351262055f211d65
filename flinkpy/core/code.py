"""The user's code on its way to the workers: lambdas, classes of ``__main__``, and the modules that lie beside the program.

What is importable everywhere (installed packages) travels by name. What is not — ``__main__``, notebooks, and every module under the
program's own folder — travels by value, so that it is there on every node, and two jobs with a ``helpers.py`` each never meet.
"""

from __future__ import annotations

import io
import pickle
import sys
import sysconfig
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import _lru_cache_wrapper, cache, cached_property, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from flinkpy.core.errors import ProgramError


def dumps(value: Any, what: str = "the program") -> bytes:
    """Pickles ``value`` with the user's code by value; raises ProgramError that names ``what`` cannot travel."""
    def pickled(part: Any) -> bytes:
        file = io.BytesIO()
        _pickler()(file, protocol=5).dump(part)
        return file.getvalue()

    with _by_value(_user_modules()):
        try:
            return pickled(value)
        except Exception as error:
            raise ProgramError(f"{what} cannot be sent to the workers: {_explained(value, pickled) or _in_general(error)}") from error


@cache
def _pickler() -> Any:
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        dispatch_table = ChainMap({_lru_cache_wrapper: _reduced_cache, cached_property: _reduced_property}, cloudpickle.Pickler.dispatch_table)

    return Pickler


def _reduced_cache(cached: Any) -> str | tuple[Any, ...]:
    """A function under ``functools.lru_cache`` pickles itself by name, wherever it is from. One of the program's own travels as what it is made of,
    and begins with an empty cache."""
    import cloudpickle

    module, name = getattr(cached, "__module__", ""), getattr(cached, "__qualname__", "")
    if module != "__main__" and module not in cloudpickle.list_registry_pickle_by_value():
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is cached:
            return str(name)
    return _cached, (cached.__wrapped__, cached.cache_parameters())


def _cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return lru_cache(**parameters)(function)


def _reduced_property(cached: cached_property[Any]) -> tuple[Any, ...]:
    """Before Python 3.12 it holds a lock, and no class of the program that has one could travel."""
    return _property, (cached.func, cached.attrname)


def _property(function: Callable[[Any], Any], name: str) -> cached_property[Any]:
    made = cached_property(function)
    made.attrname = name
    return made


def _explained(value: Any, pickled: Callable[[Any], bytes]) -> str | None:
    from flinkpy.core.unpicklable import explain

    try:
        return explain(value, pickled)
    except Exception:  # of the user's objects, when they are asked what they are made of
        return None


def _in_general(error: Exception) -> str:
    return (f"{error}. Open connections, locks, files and generators belong into open() of a function class, not into what the function "
            "captures")


def loads(data: bytes) -> Any:
    """Opens what :func:`dumps` made."""
    return pickle.loads(data)


def _user_modules() -> list[ModuleType]:
    """The loaded modules that live under the program's own folder and are not installed packages."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if not file and not hasattr(sys, "ps1"):
        return []
    home = str(_home(Path(file).resolve(), getattr(main, "__spec__", None)) if file else Path.cwd())  # of a prompt or a notebook: where it is
    found = []
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if path and name != "__main__" and _lies_beside(path, home) and module.__name__.partition(".")[0] != "flinkpy":
            found.append(module)
    return found


def _home(file: Path, spec: Any) -> Path:
    """The program's folder; of a module of a package (``python -m jobs.words``) the one the package lies in."""
    package: str = getattr(spec, "parent", None) or ""
    return file.parents[len(package.split(".")) if package else 0]


@cache
def _lies_beside(path: str, home: str) -> bool:
    """Whether a module's file is under the program's folder, and no installed package."""
    installed = _installed_folders()
    if path.startswith(installed):  # resolving is slow
        return False
    resolved = str(Path(path).resolve())
    return resolved.startswith(home + "/") and not resolved.startswith(installed)


@cache
def _installed_folders() -> tuple[str, ...]:
    folders = {path for key, path in sysconfig.get_paths().items() if key in ("stdlib", "platstdlib", "purelib", "platlib")}
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
