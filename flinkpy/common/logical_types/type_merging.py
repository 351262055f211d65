"""The common type of several. Flink has two sets of rules, and its results depend on them: SQL's
own forms (arithmetic, comparison, CASE, IN, UNION, VALUES) keep to FLOAT if that comes before
DOUBLE, and do not mix dates with timestamps; functions (COALESCE, GREATEST, ARRAY, ...) take
DOUBLE, and narrow a timestamp beside a date."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flinkpy.common.logical_types.allowed_casts import implicit_cast_allowed
from flinkpy.common.logical_types.logical_type import (
    MOST_DIGITS,
    ArrayType,
    BooleanType,
    CharType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
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
    """The narrowest type that holds the values of all, for SQL's own forms; None if there is none.
    It may be null if one of them may be. NULLs alone have the type NULL.

    >>> from flinkpy.common.logical_types.data_types import DataTypes
    >>> print(common_type([DataTypes.INT(), DataTypes.BIGINT(), DataTypes.DECIMAL(2, 2)]))
    DECIMAL(21, 2)
    >>> print(common_type([DataTypes.CHAR(1).not_null(), DataTypes.CHAR(3).not_null()]))
    VARCHAR(3) NOT NULL
    """
    return _OF_FORMS.common(types)


def common_argument_type(types: Sequence[LogicalType]) -> LogicalType | None:
    """The same for arguments of functions.

    >>> from flinkpy.common.logical_types.data_types import DataTypes
    >>> print(common_argument_type([DataTypes.FLOAT(), DataTypes.DOUBLE()]))
    DOUBLE
    """
    return _OF_FUNCTIONS.common(types)


def comparison_type(left: LogicalType, right: LogicalType) -> LogicalType | None:
    """The type in which two values are compared; None if they cannot be. Text is read as a time
    beside a time, and as TRUE or FALSE beside a BOOLEAN; a date is the beginning of its day beside
    a timestamp. (Flink refuses to compare these two.)

    >>> from flinkpy.common.logical_types.data_types import DataTypes
    >>> print(comparison_type(DataTypes.DATE(), DataTypes.STRING()))
    DATE
    """
    for one, other in ((left, right), (right, left)):
        is_timed = isinstance(one, DateType) and other.is_a(TypeFamily.TIMESTAMP)
        is_read = one.is_a(TypeFamily.CHARACTER_STRING) and (
            other.is_a(TypeFamily.DATETIME) or isinstance(other, BooleanType)
        )
        if is_timed or is_read:
            return computed(other).with_nullable(one.is_nullable or other.is_nullable)
    return common_type([left, right])


_Merge = Callable[[LogicalType, LogicalType], "LogicalType | None"]


@dataclass(frozen=True)
class _Rules:
    """``approximate`` merges two numbers one of which is FLOAT or DOUBLE. ``narrows``: types that
    do not merge become the one to which the others are cast implicitly."""

    approximate: _Merge
    narrows: bool

    def common(self, types: Sequence[LogicalType]) -> LogicalType | None:
        is_nullable = any(each.is_nullable for each in types)
        typed = [each.nullable() for each in types if not isinstance(each, NullType)]
        if not typed:
            return NullType() if types else None
        common = self._merged(typed)
        if common is None and self.narrows:
            common = _narrowed(typed)
        return None if common is None else common.with_nullable(is_nullable)

    def _merged(self, types: Sequence[LogicalType]) -> LogicalType | None:
        first = types[0]
        if isinstance(first, RawType):
            return first if all(each == first for each in types) else None
        if first.is_a(TypeFamily.CONSTRUCTED):
            return self._constructed(types)
        merged: LogicalType | None = computed(first) if len(types) > 1 else first
        for each in types[1:]:
            merged = None if merged is None else self._pair(merged, each)
        return merged

    def _constructed(self, types: Sequence[LogicalType]) -> LogicalType | None:
        first = types[0]
        form = (type(first), len(first.children))
        if any((type(each), len(each.children)) != form for each in types):
            return None
        children = [self.common(parts) for parts in zip(*(each.children for each in types))]
        found = [each for each in children if each is not None]
        return _with_children(first, found) if len(found) == len(children) else None

    def _pair(self, left: LogicalType, right: LogicalType) -> LogicalType | None:
        if left.is_a(TypeFamily.NUMERIC) and right.is_a(TypeFamily.NUMERIC):
            is_exact = left.is_a(TypeFamily.EXACT_NUMERIC) and right.is_a(TypeFamily.EXACT_NUMERIC)
            return _merged_exact(left, right) if is_exact else self.approximate(left, right)
        for family, merge in _MERGED_FAMILIES:
            if left.is_a(family) and right.is_a(family):
                return merge(left, right)
        return computed(left) if type(left) is type(right) else None


def computed(type: LogicalType) -> LogicalType:
    """The type as what a function gives has it: no time attribute any more, and an interval in
    months or in milliseconds, however it was written."""
    if isinstance(type, TimestampType):
        return TimestampType(type.precision, is_nullable=type.is_nullable)
    if isinstance(type, LocalZonedTimestampType):
        return LocalZonedTimestampType(type.precision, is_nullable=type.is_nullable)
    if isinstance(type, YearMonthIntervalType):
        return YearMonthIntervalType(is_nullable=type.is_nullable)
    if isinstance(type, DayTimeIntervalType):
        return DayTimeIntervalType(is_nullable=type.is_nullable)
    return type


def as_decimal(type: LogicalType) -> DecimalType:
    """An exact number as a DECIMAL: an integer counts 3, 5, 10 or 19 digits."""
    if isinstance(type, IntegerType):
        return DecimalType(type.digits, 0, is_nullable=type.is_nullable)
    if isinstance(type, DecimalType):
        return type
    raise TypeError(f"{type} is no exact number")


def _narrowed(types: Sequence[LogicalType]) -> LogicalType | None:
    """The one of them to which all the others are cast implicitly."""
    found = types[0]
    for each in types[1:]:
        if implicit_cast_allowed(found, each):
            found = each
        elif not implicit_cast_allowed(each, found):
            return None
    return found


def _with_children(parent: LogicalType, children: Sequence[LogicalType]) -> LogicalType | None:
    if isinstance(parent, ArrayType):
        return ArrayType(children[0])
    if isinstance(parent, MultisetType):
        return MultisetType(children[0])
    if isinstance(parent, MapType):
        return MapType(children[0], children[1])
    if isinstance(parent, RowType):
        pairs = zip(parent.fields, children)
        return RowType(tuple(RowField(each.name, type, each.description) for each, type in pairs))
    return None


# -- two types of one family -----------------------------------------------------------------------


def _approximate_of_forms(left: LogicalType, right: LogicalType) -> LogicalType:
    """DOUBLE beside a DECIMAL; else the first of FLOAT and DOUBLE, as Flink has it."""
    if isinstance(left, DecimalType) or isinstance(right, DecimalType):
        return DoubleType()
    return left if left.is_a(TypeFamily.APPROXIMATE_NUMERIC) else right


def _approximate_of_functions(left: LogicalType, right: LogicalType) -> LogicalType:
    """DOUBLE if one is; a DECIMAL that comes first makes no difference, as Flink has it."""
    if left.is_a(TypeFamily.EXACT_NUMERIC):
        return right
    return left if isinstance(right, (FloatType, IntegerType)) else DoubleType()


def _merged_exact(left: LogicalType, right: LogicalType) -> LogicalType:
    if isinstance(left, IntegerType) and isinstance(right, IntegerType):
        return left if left.bits >= right.bits else right
    one, other = as_decimal(left), as_decimal(right)
    whole = max(one.precision - one.scale, other.precision - other.scale)
    scale = min(max(one.scale, other.scale), MOST_DIGITS - whole)
    return DecimalType(whole + scale, scale)


def _merged_texts(left: LogicalType, right: LogicalType) -> LogicalType | None:
    """Fixed lengths that differ become a varying one, so that nothing is padded."""
    if not (isinstance(left, SizedType) and isinstance(right, SizedType)):
        return None
    if left == right:
        return left
    length = max(left.length, right.length)
    is_text = isinstance(left, (CharType, VarCharType))
    return VarCharType(length) if is_text else VarBinaryType(length)


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
    """Months with months, milliseconds with milliseconds."""
    return computed(left) if type(left) is type(right) else None


_MERGED_FAMILIES: tuple[tuple[TypeFamily, _Merge], ...] = (
    (TypeFamily.CHARACTER_STRING, _merged_texts),
    (TypeFamily.BINARY_STRING, _merged_texts),
    (TypeFamily.DATETIME, _merged_times),
    (TypeFamily.INTERVAL, _merged_intervals),
)
_OF_FORMS = _Rules(_approximate_of_forms, narrows=False)
_OF_FUNCTIONS = _Rules(_approximate_of_functions, narrows=True)
