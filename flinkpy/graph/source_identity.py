"""The identity of a source as text: its class and its configuration. It must be the same in every
run, so it does not depend on memory addresses, on the order of a set, or on the code of a
function."""

from __future__ import annotations

import datetime
import decimal
import enum
import pathlib
import types
import uuid
from collections.abc import Collection, Mapping, Set
from typing import Any

from flinkpy.core.program.public_names import module_of_definition

PLAIN = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    decimal.Decimal,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    datetime.tzinfo,
    pathlib.PurePath,
    uuid.UUID,
    range,
)
DEEPEST = 12
MOST = 10_000  # values of a collection that are described; of the rest only the number counts


def described(value: Any, depth: int = 0) -> str:
    """A text that is equal for equal configurations.

    >>> described({"b": {2, 1}, "a": [1.5, None]})
    "dict{'a': list[1.5, None], 'b': set[1, 2]}"
    """
    kind = type(value).__qualname__
    if isinstance(value, enum.Enum):
        return f"{kind}.{value.name}"
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, type | types.FunctionType):
        return f"{module_of_definition(value)}.{value.__qualname__}"
    if isinstance(value, types.BuiltinFunctionType | types.MethodType):
        return f"{value.__module__}.{value.__qualname__}"
    if depth >= DEEPEST:
        return kind
    if isinstance(value, Mapping):
        entries = (
            f"{described(key, depth + 1)}: {described(each, depth + 1)}"
            for key, each in value.items()
        )
        return f"{kind}{{{', '.join(sorted(entries))}}}"
    if isinstance(value, list | tuple | Set) and isinstance(value, Collection):
        found = [described(each, depth + 1) for each in list(value)[:MOST]]
        behind = [f"{len(value)} in all"] if len(value) > MOST else []
        return (
            f"{kind}[{', '.join([*(sorted(found) if isinstance(value, Set) else found), *behind])}]"
        )
    told_apart_by = getattr(value, "told_apart_by", None)
    if callable(told_apart_by):
        return f"{kind}({described(told_apart_by(), depth + 1)})"
    return f"{kind}({described(vars(value), depth + 1)})" if hasattr(value, "__dict__") else kind
