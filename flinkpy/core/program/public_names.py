"""Public names show their public module: ``flinkpy.datastream.DataStream``, wherever the class is
defined.

A class is defined in the room that it belongs to, and a public module gives it the name that
programs import it by. ``publish`` makes the class show that module. So representations,
tracebacks and ``help()`` name what programs import, and pickles do: a savepoint is restored also
when the class has moved to another room (docs/decisions/public-names.md)."""

from __future__ import annotations

import sys
from importlib import import_module
from types import FunctionType
from typing import Any, ForwardRef

_defined_in: dict[type | FunctionType, str] = {}


def publish(module: str) -> None:
    """The last line of a public module: the classes and functions in its ``__all__`` that are
    flinkpy's show it as theirs. One that several public modules have shows the shortest of those
    that are imported."""
    names = vars(sys.modules[module])
    for name in names["__all__"]:
        value = names[name]
        if isinstance(value, type | FunctionType) and _takes_over(module, name, value):
            if value not in _defined_in:
                _defined_in[value] = value.__module__
                _keep_annotations(value)
                # of Python 3.13: it would be looked up in the file of the public module
                if "__firstlineno__" in vars(value):
                    delattr(value, "__firstlineno__")
            value.__module__ = module


def is_published(kind: type | FunctionType) -> bool:
    return kind in _defined_in


def defined_in(module: str, name: str) -> Any:
    """What the module defines under this name."""
    return getattr(import_module(module), name)


def module_of_definition(kind: type | FunctionType) -> str:
    """The module that defines it, which is what ``__module__`` says of all others: for what is
    written into state or hashed, and must not change as a name becomes public."""
    return _defined_in.get(kind, kind.__module__)


def _takes_over(module: str, name: str, value: Any) -> bool:
    """Not where it has another name than in its definition: pickle looks for that one. An error
    keeps its module: what a log says of it must not depend on what was imported before."""
    shown = value.__module__
    if not shown.startswith("flinkpy.") or value.__qualname__ != name:
        return False
    if isinstance(value, type) and issubclass(value, BaseException):
        return False
    return value not in _defined_in or _rank(module) < _rank(shown)


def _rank(module: str) -> tuple[int, str]:
    return module.count("."), module


def _keep_annotations(value: type | FunctionType) -> None:
    """``typing.get_type_hints`` looks the names in a class's annotations up in its module, which
    must be the one that defines it. A NamedTuple has forward references already."""
    annotations: dict[str, Any] = {}
    if isinstance(value, type):
        annotations = vars(value).get("__annotations__", annotations)
    for attribute, annotation in annotations.items():
        if isinstance(annotation, str | ForwardRef):
            text = annotation if isinstance(annotation, str) else annotation.__forward_arg__
            annotations[attribute] = ForwardRef(
                text, is_argument=False, module=value.__module__, is_class=True
            )
