"""Which values a column of a declared type gives back exactly, and how they come back.

"Exactly" is strict: ``1`` is not exactly ``1.0``, a list not a tuple, ``Decimal("1.0")`` not
``Decimal("1")``. What is not held exactly is pickled beside the column (``exact_column``)."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import islice, pairwise
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.values.arrow_types import arrow_type
from flinkpy.columns.values.conversion import python_values
from flinkpy.common.time import Instant
from flinkpy.common.typeinfo import (
    BasicTypeInfo,
    MapTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from flinkpy.common.types import Row, RowKind, named_row
from flinkpy.core.errors import ProgramError

Holds: TypeAlias = Callable[[Any], bool]

BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
_SECONDS = 1 << 42  # about as far as microseconds in 64 bits go, on both sides of 1970
_INTEGERS = {"BYTE": 7, "SHORT": 15, "INT": 31, "LONG": 63}


def column_type(type_info: TypeInformation | None) -> pa.DataType | None:
    """The Arrow type for values of this type; None if there is no such column: nothing is declared,
    or a part of it is pickled or empty."""
    if type_info is None or not _has_column(type_info):
        return None
    try:
        return arrow_type(type_info)
    except (ProgramError, LookupError):
        return None


def _has_column(type_info: TypeInformation) -> bool:
    if isinstance(type_info, (TupleTypeInfo, RowTypeInfo)):  # Parquet has no structs without fields
        return bool(type_info.field_types) and all(map(_has_column, type_info.field_types))
    if isinstance(type_info, MapTypeInfo):
        return _has_column(type_info.key_type) and _has_column(type_info.value_type)
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        return _has_column(type_info.element_type)
    return not isinstance(type_info, PickledBytesTypeInfo)


# -- which values are held -------------------------------------------------------------------------


def holds(type_info: TypeInformation) -> Holds:
    """Says of a value whether a column of this type gives back the very same. None always is."""
    if isinstance(type_info, BasicTypeInfo):
        return _or_none(_scalar(type_info.name))
    if type_info == BYTES:
        return _or_none(lambda value: type(value) is bytes)
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        element = holds(type_info.element_type)
        return _or_none(lambda value: type(value) is list and all(map(element, value)))
    if isinstance(type_info, MapTypeInfo):
        key, item = holds(type_info.key_type), holds(type_info.value_type)
        return _or_none(
            lambda value: (
                type(value) is dict
                and None not in value
                and all(map(key, value))
                and all(map(item, value.values()))
            )
        )
    if isinstance(type_info, TupleTypeInfo):
        fields = list(map(holds, type_info.field_types))
        return _or_none(lambda value: type(value) is tuple and _fields_hold(fields, value))
    if isinstance(type_info, RowTypeInfo):
        fields, names = list(map(holds, type_info.field_types)), tuple(type_info.field_names)
        return _or_none(
            lambda value: (
                isinstance(value, Row)
                and value._fields == names
                and value.get_row_kind() is RowKind.INSERT
                and _fields_hold(fields, value._values)
            )
        )
    return lambda value: value is None


def _or_none(test: Holds) -> Holds:
    return lambda value: value is None or test(value)


def _fields_hold(fields: Sequence[Holds], values: Sequence[Any]) -> bool:
    return len(values) == len(fields) and all(field(value) for field, value in zip(fields, values))


def _scalar(name: str) -> Holds:
    if name in _INTEGERS:
        limit = 1 << _INTEGERS[name]
        return lambda value: type(value) is int and -limit <= value < limit
    return _SCALARS[name]


def _is_text(value: object) -> bool:
    if type(value) is not str:
        return False
    try:
        return value.isascii() or value.encode() is not None
    except UnicodeEncodeError:  # a lone surrogate
        return False


def _is_short_float(value: object) -> bool:
    if type(value) is not float:
        return False
    try:
        return value != value or struct.unpack("f", struct.pack("f", value))[0] == value
    except OverflowError:
        return False


def _is_decimal(value: object) -> bool:
    """Whether it has 18 digits behind the point, as the column gives it back."""
    if type(value) is not Decimal or not value.is_finite():
        return False
    sign, digits, exponent = value.as_tuple()
    return exponent == -18 and len(digits) <= 38 and not (sign and not value)


def _is_moment(value: object) -> bool:
    return type(value) is datetime.datetime and value.tzinfo is None and value.fold == 0


_SCALARS: dict[str, Holds] = {
    "STRING": _is_text,
    "CHAR": _is_text,
    "BOOLEAN": lambda value: type(value) is bool,
    "DOUBLE": lambda value: type(value) is float,
    "FLOAT": _is_short_float,
    "BIG_INT": lambda value: type(value) is int and abs(value) < 10**38,
    "BIG_DEC": _is_decimal,
    "SQL_DATE": lambda value: type(value) is datetime.date,
    "SQL_TIME": lambda value: (
        type(value) is datetime.time and value.tzinfo is None and value.fold == 0
    ),
    "SQL_TIMESTAMP": _is_moment,
    "INSTANT": lambda value: (
        type(value) is Instant
        and value.nanos % 1000 == 0
        and 0 <= value.nanos < 10**9
        and abs(value.seconds) < _SECONDS
    ),
}


# -- how they come back ----------------------------------------------------------------------------


def values_of(column: Any, type_info: TypeInformation) -> list[Any]:
    """The values of an Arrow array of the type's column.

    >>> values_of(
    ...     pa.array([{"f0": 1, "f1": "a"}, None]), Types.TUPLE([Types.LONG(), Types.STRING()])
    ... )
    [(1, 'a'), None]
    """
    if isinstance(type_info, BasicTypeInfo):
        return _scalars(column, type_info.name)
    if type_info == BYTES:
        return python_values(column)
    if isinstance(type_info, (TupleTypeInfo, RowTypeInfo)):
        parts = [
            values_of(each, field) for each, field in zip(column.flatten(), type_info.field_types)
        ]
        found: list[Any] = list(zip(*parts))
        if isinstance(type_info, RowTypeInfo):
            names = tuple(type_info.field_names)
            found = [named_row(names, each) for each in found]
        return _with_nulls(found, column)
    if isinstance(type_info, MapTypeInfo):
        return _maps(column, type_info)
    if not isinstance(type_info, PrimitiveArrayTypeInfo):
        raise ProgramError(f"{type_info!r} has no column")
    elements = iter(values_of(column.flatten(), type_info.element_type))
    return [
        None if length is None else list(islice(elements, length))
        for length in pc.list_value_length(column).to_pylist()
    ]


def _with_nulls(values: list[Any], column: Any) -> list[Any]:
    return (
        [value if there else None for value, there in zip(values, column.is_valid().to_pylist())]
        if column.null_count
        else values
    )


def _scalars(column: Any, name: str) -> list[Any]:
    if name == "BIG_INT":
        return [None if value is None else int(value) for value in column.to_pylist()]
    if name == "INSTANT":
        counts = column.cast(pa.int64()).to_pylist()
        return [
            None if count is None else Instant(count // 1_000_000, count % 1_000_000 * 1000)
            for count in counts
        ]
    return python_values(column)


def _maps(column: Any, type_info: MapTypeInfo) -> list[Any]:
    ends = column.offsets.to_pylist()
    start, end = (ends[0], ends[-1]) if ends else (0, 0)
    keys = values_of(column.keys.slice(start, end - start), type_info.key_type)
    items = values_of(column.items.slice(start, end - start), type_info.value_type)
    found = [
        dict(zip(keys[a - start : b - start], items[a - start : b - start]))
        for a, b in pairwise(ends)
    ]
    return _with_nulls(found, column)
