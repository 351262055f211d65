"""Unpickles state without the program's own classes, and runs none of its code.

Values of classes that Python, numpy, Arrow or flinkpy define come out as they are. A value of any
other class comes out as an :class:`Unknown`, which shows the name of the class and what the value
was made of. (It is made for honest checkpoints: one that was made to do harm can.)"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable
from enum import EnumMeta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from flinkpy.core.program.moved_modules import module_now

_MODULES = {
    "datetime",
    "decimal",
    "fractions",
    "uuid",
    "collections",
    "zoneinfo",
    "numpy",
    "pyarrow",
    "pandas",
    "flinkpy",
}
_BUILTINS = {
    "bool",
    "bytearray",
    "bytes",
    "complex",
    "dict",
    "float",
    "frozenset",
    "int",
    "list",
    "object",
    "range",
    "set",
    "slice",
    "str",
    "tuple",
}
_OTHERS = {("_codecs", "encode"), ("copyreg", "_reconstructor")}


def load_leniently(data: bytes) -> Any:
    """What was pickled, with stand-ins for what only the program knows.

    >>> load_leniently(pickle.dumps({"a": [1, None]}))
    {'a': [1, None]}
    """
    return _Unpickler(io.BytesIO(data)).load()


class Unknown:
    """A value of a class that was not looked for."""

    def __new__(cls, *arguments: Any, **named: Any) -> Unknown:
        made = super().__new__(cls)
        made.__dict__.update(arguments=arguments, named=named, state=None, parts=[])
        return made

    def __init__(self, *arguments: Any, **named: Any) -> None: ...

    def __setstate__(self, state: object) -> None:
        self.__dict__["state"] = state

    def append(self, part: object) -> None:
        self.__dict__["parts"].append(part)

    def extend(self, parts: Iterable[Any]) -> None:
        self.__dict__["parts"].extend(parts)

    def __setitem__(self, key: object, value: object) -> None:
        self.append((key, value))

    def __call__(self, *arguments: Any, **named: Any) -> Unknown:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        known = self.__dict__
        return _unknown, (
            type(self).__module__,
            type(self).__qualname__,
            known["arguments"],
            known["state"],
            known["parts"],
        )

    def __repr__(self) -> str:
        known = self.__dict__
        shown = [
            *map(repr, known["arguments"]),
            *(f"{name}={value!r}" for name, value in known["named"].items()),
            *map(repr, known["parts"]),
        ]
        state = known["state"]
        # of a class with slots
        if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):
            state = (state[0] or {}) | state[1]
        if isinstance(state, dict):
            shown += [f"{name}={value!r}" for name, value in state.items()]
        elif state is not None:
            shown.append(repr(state))
        return f"{type(self).__qualname__}({', '.join(shown)})"


def _unknown(
    module: str, name: str, arguments: tuple[Any, ...], state: object, parts: list[Any]
) -> Unknown:
    made = _class_of(module, name)(*arguments)
    made.__dict__.update(state=state, parts=parts)
    return made


@lru_cache(maxsize=4096)
def _class_of(module: str, name: str) -> type[Unknown]:
    return type(name.rpartition(".")[2], (Unknown,), {"__module__": module, "__qualname__": name})


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return _member
        if module.partition(".")[0] == "cloudpickle":  # a class that travelled by value
            return _BY_VALUE.get(name) or _class_of(module, name)
        known = (
            name in _BUILTINS
            if module == "builtins"
            else module.partition(".")[0] in _MODULES or (module, name) in _OTHERS
        )
        if known:
            try:
                return super().find_class(module_now(module), name)
            except (ImportError, AttributeError):
                pass
        return _class_of(module, name)

    def persistent_load(self, pid: object) -> Any:
        return _class_of("pickle", "persistent")(pid)


def _member(owner: object, name: str) -> Any:
    """How Python pickles the members of an enum, and zones."""
    if (owner, name) == (ZoneInfo, "_unpickle"):
        return getattr(owner, name)
    return (
        owner[name]
        if isinstance(owner, EnumMeta)
        else _class_of("builtins", "getattr")(owner, name)
    )


def _class_by_value(kind_or_bases: object, name: str, *more: Any) -> Any:
    return _class_of("__main__", name)


def _given(made: object, *more: Any) -> Any:
    return made


_BY_VALUE = {
    "_make_skeleton_class": _class_by_value,
    "_make_skeleton_enum": _class_by_value,
    "_class_setstate": _given,
}
