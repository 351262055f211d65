"""The type that a value shows, where none is declared: of keys, and of states without a type."""

from __future__ import annotations

import datetime

from flinkpy.common.typeinfo import PickledBytesTypeInfo, TypeInformation, Types
from flinkpy.common.types import Row
from flinkpy.state.canonical.typed_values import BYTES, column_type

_SCALARS: dict[type, TypeInformation] = {
    bool: Types.BOOLEAN(),
    int: Types.LONG(),
    float: Types.DOUBLE(),
    str: Types.STRING(),
    bytes: BYTES,
    datetime.date: Types.SQL_DATE(),
    datetime.time: Types.SQL_TIME(),
    datetime.datetime: Types.SQL_TIMESTAMP(),
}


def seen_type(value: object) -> TypeInformation | None:
    """A type with a column for values like this one; None if there is none.

    >>> seen_type(("a", 1)), seen_type([0.5]), seen_type(object()) is None
    (Types.TUPLE([Types.STRING(), Types.LONG()]), Types.LIST(Types.DOUBLE()), True)
    """
    found = _seen(value)
    return None if column_type(found) is None else found


def _seen(value: object) -> TypeInformation:
    scalar = _SCALARS.get(type(value))
    if scalar is not None:
        return scalar
    if type(value) is tuple:
        return Types.TUPLE(list(map(_seen, value)))
    if type(value) is list and value:
        return Types.LIST(_seen(value[0]))
    if type(value) is dict and value:
        key, item = next(iter(value.items()))
        return Types.MAP(_seen(key), _seen(item))
    if isinstance(value, Row) and value._fields:
        return Types.ROW_NAMED(list(value._fields), list(map(_seen, value._values)))
    return Types.PICKLED_BYTE_ARRAY()


def completed_type(declared: TypeInformation | None, value: object) -> TypeInformation | None:
    """The declared type, or what the value shows if nothing is declared, or not the types of its
    parts."""
    if declared is not None and column_type(declared) is not None:
        return declared
    return seen_type(value) if declared is None or _is_open(declared) else None


def _is_open(declared: TypeInformation) -> bool:
    """Whether the program says only that it is a list or a map, or nothing."""
    parts = [
        part
        for name in ("element_type", "key_type", "value_type")
        if (part := getattr(declared, name, None)) is not None
    ]
    return isinstance(declared, PickledBytesTypeInfo) or any(
        isinstance(part, PickledBytesTypeInfo) for part in parts
    )
