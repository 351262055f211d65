"""The pickler of what the program itself defines: cloudpickle, where that loses nothing of the
program.

It keeps the file of each function, so that an error names the user's line: cloudpickle from 3.1.3
on forgets it. Public classes travel under the module that defines them, so that a worker imports
what its tasks need, and not the API. Functions with a cache travel without it, and a
cached_property without its lock."""

from __future__ import annotations

import io
import sys
from collections import ChainMap
from collections.abc import Callable
from functools import _lru_cache_wrapper, cache, cached_property, lru_cache
from types import CodeType, FunctionType
from typing import Any

from flinkpy.core.program.public_names import defined_in, is_published, module_of_definition


def dumps_any(value: object) -> bytes:
    """Pickles also what cannot be imported: lambdas, and classes of ``__main__``. Raises whatever
    its parts raise.

    >>> import pickle
    >>> pickle.loads(dumps_any(lambda: 1)).__code__.co_filename == (lambda: 1).__code__.co_filename
    True
    """
    file = io.BytesIO()
    program_pickler()(file, protocol=5).dump(value)
    return file.getvalue()


@cache
def program_pickler() -> Any:
    """The class of the pickler."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        dispatch_table = ChainMap(
            {
                _lru_cache_wrapper: _reduced_cache,
                cached_property: _reduced_property,
                CodeType: _reduced_code,
            },
            cloudpickle.Pickler.dispatch_table,
        )

        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, (type, FunctionType)) and is_published(value):
                return defined_in, (module_of_definition(value), value.__qualname__)
            return super().reducer_override(value)

    return Pickler


def _reduced_code(code: CodeType) -> tuple[Any, ...]:
    import cloudpickle

    return _code, (code.co_filename, *cloudpickle.Pickler.dispatch_table[CodeType](code))


def _code(file: str, make: Callable[..., CodeType], parts: tuple[Any, ...]) -> CodeType:
    return make(*parts).replace(co_filename=file)


def _reduced_cache(cached: Any) -> str | tuple[Any, ...]:
    """Pickles a function under ``functools.lru_cache``, which by itself always pickles by name. If
    it is the program's own, it travels by value and starts with an empty cache."""
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
    """Before Python 3.12 a cached_property holds a lock, so a class of the program that has one
    could not be pickled."""
    return _property, (cached.func, cached.attrname)


def _property(function: Callable[[Any], Any], name: str) -> cached_property[Any]:
    made = cached_property(function)
    made.attrname = name
    return made
