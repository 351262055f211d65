"""The common type of several: the type of CASE, COALESCE, UNION, VALUES and IN, and the one in
which two values are compared. The rules are Flink's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flinkpy.common.logical_types.allowed_casts import implicit_cast_allowed
from flinkpy.common.logical_types.logical_type import (
    MOST_DIGITS,
    ArrayType,
    CharType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    IntegerType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    MultisetType,
    NullType,
    RawType,
    RowField,
    RowType,
    SizedType,
    TimestampType,
    TimeType,
    TypeFamily,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)


def common_type(types: Sequence[LogicalType]) -> LogicalType | None:
    """The narrowest type that holds the values of all; None if there is none. It may be null if one
    of them may be. NULLs alone have the type NULL.

    >>> from flinkpy.common.logical_types.data_types import DataTypes
    >>> print(common_type([DataTypes.INT(), DataTypes.BIGINT(), DataTypes.DECIMAL(2, 2)]))
    DECIMAL(21, 2)
    >>> print(common_type([DataTypes.CHAR(1).not_null(), DataTypes.CHAR(3).not_null()]))
    VARCHAR(3) NOT NULL
    """
    is_nullable = any(each.is_nullable for each in types)
    typed = [each.nullable() for each in types if not isinstance(each, NullType)]
    if not typed:
        return NullType() if types else None
    common = _merged(typed) or _widest(typed)
    return None if common is None else common.with_nullable(is_nullable)


def comparison_type(left: LogicalType, right: LogicalType) -> LogicalType | None:
    """The type in which two values are compared; None if they cannot be. Text is read as a time
    beside a time, and a date is the beginning of its day beside a timestamp.

    >>> from flinkpy.common.logical_types.data_types import DataTypes
    >>> print(comparison_type(DataTypes.DATE(), DataTypes.STRING()))
    DATE
    """
    for one, other in ((left, right), (right, left)):
        is_timed = isinstance(one, DateType) and other.is_a(TypeFamily.TIMESTAMP)
        is_read = one.is_a(TypeFamily.CHARACTER_STRING) and other.is_a(TypeFamily.DATETIME)
        if is_timed or is_read:
            return unmarked(other).with_nullable(one.is_nullable or other.is_nullable)
    return common_type([left, right])


def _merged(types: Sequence[LogicalType]) -> LogicalType | None:
    first = types[0]
    if isinstance(first, RawType):
        return first if all(each == first for each in types) else None
    if first.is_a(TypeFamily.CONSTRUCTED):
        return _merged_constructed(types)

    merged: LogicalType | None = unmarked(first) if len(types) > 1 else first
    for each in types[1:]:
        merged = None if merged is None else _merged_pair(merged, each)
    return merged


def _widest(types: Sequence[LogicalType]) -> LogicalType | None:
    """The one of them to which all the others are cast implicitly."""
    widest = types[0]
    for each in types[1:]:
        if implicit_cast_allowed(widest, each):
            widest = each
        elif not implicit_cast_allowed(each, widest):
            return None
    return widest


def _merged_constructed(types: Sequence[LogicalType]) -> LogicalType | None:
    first = types[0]
    alike = all(
        type(each) is type(first) and len(each.children) == len(first.children) for each in types
    )
    if not alike:
        return None
    children = []
    for parts in zip(*(each.children for each in types)):
        child = common_type(parts)
        if child is None:
            return None
        children.append(child)
    return _with_children(first, children)


def _with_children(parent: LogicalType, children: Sequence[LogicalType]) -> LogicalType | None:
    if isinstance(parent, ArrayType):
        return ArrayType(children[0])
    if isinstance(parent, MultisetType):
        return MultisetType(children[0])
    if isinstance(parent, MapType):
        return MapType(children[0], children[1])
    if isinstance(parent, RowType):
        return RowType(
            tuple(
                RowField(each.name, child, each.description)
                for each, child in zip(parent.fields, children)
            )
        )
    return None


def _merged_pair(left: LogicalType, right: LogicalType) -> LogicalType | None:
    for family, merge in _MERGED_FAMILIES:
        if left.is_a(family) and right.is_a(family):
            return merge(left, right)
    return unmarked(left) if type(left) is type(right) else None


def _merged_texts(left: LogicalType, right: LogicalType) -> LogicalType | None:
    """Fixed lengths that differ become a varying one, so that nothing is padded."""
    if not (isinstance(left, SizedType) and isinstance(right, SizedType)):
        return None
    if left == right:
        return left
    length = max(left.length, right.length)
    is_text = isinstance(left, (CharType, VarCharType))
    return VarCharType(length) if is_text else VarBinaryType(length)


def _merged_numbers(left: LogicalType, right: LogicalType) -> LogicalType | None:
    approximate = [each for each in (left, right) if each.is_a(TypeFamily.APPROXIMATE_NUMERIC)]
    if not approximate:
        return _merged_exact(left, right)
    has_decimal = isinstance(left, DecimalType) or isinstance(right, DecimalType)
    if has_decimal or any(isinstance(each, DoubleType) for each in approximate):
        return DoubleType()
    return approximate[0]


def _merged_exact(left: LogicalType, right: LogicalType) -> LogicalType:
    if isinstance(left, IntegerType) and isinstance(right, IntegerType):
        return left if left.bits >= right.bits else right
    one, other = as_decimal(left), as_decimal(right)
    whole = max(one.precision - one.scale, other.precision - other.scale)
    scale = min(max(one.scale, other.scale), MOST_DIGITS - whole)
    return DecimalType(whole + scale, scale)


def as_decimal(type: LogicalType) -> DecimalType:
    """An exact number as a DECIMAL: an integer counts 3, 5, 10 or 19 digits."""
    if isinstance(type, IntegerType):
        return DecimalType(type.digits, 0, is_nullable=type.is_nullable)
    if isinstance(type, DecimalType):
        return type
    raise TypeError(f"{type} is no exact number")


def _merged_times(left: LogicalType, right: LogicalType) -> LogicalType | None:
    if isinstance(left, TimeType) and isinstance(right, TimeType):
        return TimeType(max(left.precision, right.precision))
    if isinstance(left, DateType) or isinstance(right, DateType):
        return left if left == right else None
    both = (TimestampType, LocalZonedTimestampType)
    if not (isinstance(left, both) and isinstance(right, both)):
        return None
    precision = max(left.precision, right.precision)
    if isinstance(left, TimestampType) and isinstance(right, TimestampType):
        return TimestampType(precision)
    return LocalZonedTimestampType(precision)


def _merged_intervals(left: LogicalType, right: LogicalType) -> LogicalType | None:
    """Months with months, milliseconds with milliseconds, in whatever units they were written."""
    if left == right:
        return left
    if isinstance(left, YearMonthIntervalType) and isinstance(right, YearMonthIntervalType):
        return YearMonthIntervalType()
    if isinstance(left, DayTimeIntervalType) and isinstance(right, DayTimeIntervalType):
        return DayTimeIntervalType()
    return None


def unmarked(type: LogicalType) -> LogicalType:
    """The type without the mark of a time attribute, which times of several columns and results of
    functions have not."""
    if isinstance(type, TimestampType):
        return TimestampType(type.precision, is_nullable=type.is_nullable)
    if isinstance(type, LocalZonedTimestampType):
        return LocalZonedTimestampType(type.precision, is_nullable=type.is_nullable)
    return type


_Merge = Callable[[LogicalType, LogicalType], "LogicalType | None"]
_MERGED_FAMILIES: tuple[tuple[TypeFamily, _Merge], ...] = (
    (TypeFamily.CHARACTER_STRING, _merged_texts),
    (TypeFamily.BINARY_STRING, _merged_texts),
    (TypeFamily.NUMERIC, _merged_numbers),
    (TypeFamily.DATETIME, _merged_times),
    (TypeFamily.INTERVAL, _merged_intervals),
)
