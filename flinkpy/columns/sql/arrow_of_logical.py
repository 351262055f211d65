"""How SQL's types lie in memory: the Arrow type of each logical type, and back.

Arrow's fields are always nullable: what is NOT NULL is known to the plan. A column of any type may
be encoded as a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from flinkpy.common.logical_types.logical_type import (
    UNBOUNDED,
    ArrayType,
    BigIntType,
    BinaryType,
    BitmapType,
    BooleanType,
    CharType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    MultisetType,
    NullType,
    RawType,
    RowType,
    SizedType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)
from flinkpy.core.errors import ProgramError

_FLAT: dict[type[LogicalType], Any] = {
    BooleanType: pa.bool_(),
    TinyIntType: pa.int8(),
    SmallIntType: pa.int16(),
    IntType: pa.int32(),
    BigIntType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    CharType: pa.string(),
    VarCharType: pa.string(),
    BinaryType: pa.binary(),
    VarBinaryType: pa.binary(),
    DateType: pa.date32(),
    TimeType: pa.time32("ms"),
    YearMonthIntervalType: pa.int32(),
    DayTimeIntervalType: pa.duration("ms"),
    RawType: pa.binary(),
    BitmapType: pa.binary(),
    NullType: pa.null(),
}
_PRECISIONS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def arrow_of(logical: LogicalType) -> Any:
    """The Arrow type of the values of a logical type.

    >>> arrow_of(TimestampType(precision=3))
    TimestampType(timestamp[ms])
    """
    if isinstance(logical, DecimalType):
        return pa.decimal128(logical.precision, logical.scale)
    if isinstance(logical, TimestampType):
        return pa.timestamp(unit_of(logical.precision))
    if isinstance(logical, LocalZonedTimestampType):
        return pa.timestamp(unit_of(logical.precision), "UTC")
    if isinstance(logical, ArrayType):
        return pa.list_(arrow_of(logical.element))
    if isinstance(logical, MapType):
        return pa.map_(arrow_of(logical.key), arrow_of(logical.value))
    if isinstance(logical, MultisetType):
        return pa.map_(arrow_of(logical.element), pa.int32())
    if isinstance(logical, RowType):
        return pa.struct([pa.field(each.name, arrow_of(each.type)) for each in logical])
    found = _FLAT.get(type(logical))
    if found is None:
        raise ProgramError(f"columns cannot hold {logical}")
    return found


def unit_of(precision: int) -> str:
    """Arrow's unit that holds this many digits of a second; at least milliseconds."""
    if precision <= 3:
        return "ms"
    return "us" if precision <= 6 else "ns"


def arrow_schema_of(row: RowType) -> Any:
    """The schema of a table's columns."""
    return pa.schema([pa.field(each.name, arrow_of(each.type)) for each in row])


def logical_of(kind: pa.DataType, nullable: bool = True) -> LogicalType:
    """The logical type that holds the values of any Arrow type. Raises ProgramError if there is
    none.

    >>> print(logical_of(pa.decimal128(15, 2)))
    DECIMAL(15, 2)
    """
    found = _logical_of(kind)
    return found.with_nullable(nullable)


def row_type_of_schema(schema: pa.Schema) -> RowType:
    """The type of the rows of columns. What their fields say of null is kept."""
    return RowType.of(*((field.name, logical_of(field.type, field.nullable)) for field in schema))


_IS_A: list[tuple[Callable[[Any], bool], LogicalType]] = [
    (pa.types.is_boolean, BooleanType()),
    (pa.types.is_int8, TinyIntType()),
    (pa.types.is_int16, SmallIntType()),
    (pa.types.is_uint8, SmallIntType()),
    (pa.types.is_int32, IntType()),
    (pa.types.is_uint16, IntType()),
    (pa.types.is_int64, BigIntType()),
    (pa.types.is_uint32, BigIntType()),
    (pa.types.is_uint64, DecimalType(precision=20, scale=0)),
    (pa.types.is_float16, FloatType()),
    (pa.types.is_float32, FloatType()),
    (pa.types.is_float64, DoubleType()),
    (pa.types.is_string, VarCharType(length=UNBOUNDED)),
    (pa.types.is_large_string, VarCharType(length=UNBOUNDED)),
    (pa.types.is_binary, VarBinaryType(length=UNBOUNDED)),
    (pa.types.is_large_binary, VarBinaryType(length=UNBOUNDED)),
    (pa.types.is_date, DateType()),
    (pa.types.is_duration, DayTimeIntervalType()),
    (pa.types.is_null, NullType()),
]


# Views came later than the oldest release of Arrow that flinkpy takes
_VIEWS = {
    "string_view": VarCharType(length=UNBOUNDED),
    "binary_view": VarBinaryType(length=UNBOUNDED),
}


def _logical_of(kind: pa.DataType) -> LogicalType:
    is_a = pa.types
    if str(kind) in _VIEWS:
        return _VIEWS[str(kind)]
    for belongs, logical in _IS_A:
        if belongs(kind):
            return logical
    if is_a.is_dictionary(kind):
        return _logical_of(kind.value_type)
    if is_a.is_decimal(kind) and kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return DecimalType(precision=kind.precision, scale=kind.scale)
    if is_a.is_fixed_size_binary(kind):
        return BinaryType(length=kind.byte_width)
    if is_a.is_time(kind):
        return TimeType(precision=_PRECISIONS[kind.unit])
    if is_a.is_timestamp(kind):
        precision = _PRECISIONS[kind.unit]
        if kind.tz is None:
            return TimestampType(precision=precision)
        return LocalZonedTimestampType(precision=precision)
    if is_a.is_map(kind):
        key = _logical_of(kind.key_type).not_null()
        return MapType(key, logical_of(kind.item_type, kind.item_field.nullable))
    if is_a.is_list(kind) or is_a.is_large_list(kind) or is_a.is_fixed_size_list(kind):
        return ArrayType(element=logical_of(kind.value_type, kind.value_field.nullable))
    if is_a.is_struct(kind):
        return row_type_of_schema(kind).with_nullable(True)
    raise ProgramError(f"SQL has no type for columns of {kind}; cast them before")


def is_sized(logical: LogicalType) -> bool:
    """Whether the type is text or bytes of a bounded length."""
    return isinstance(logical, SizedType) and logical.length != UNBOUNDED
