"""Which type can be cast to which, as in Flink: implicitly (arguments of functions are widened
without a word), or only where CAST is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Union

from flinkpy.common.logical_types.logical_type import (
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
    NullType,
    RawType,
    SizedType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    TypeFamily,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)

_Source = Union[TypeFamily, "type[LogicalType]"]
_Rules = dict["type[LogicalType]", tuple[_Source, ...]]

_TEXT = TypeFamily.CHARACTER_STRING
_NUMBER = TypeFamily.NUMERIC
_EXACT = TypeFamily.EXACT_NUMERIC
_TO_INTEGER = (_NUMBER, _TEXT, BooleanType)
_TO_TEXT = (TypeFamily.PREDEFINED, TypeFamily.CONSTRUCTED, RawType, BitmapType)

# A type, and those that become it without a word.
_IMPLICIT: _Rules = {
    CharType: (CharType,),
    VarCharType: (_TEXT,),
    BooleanType: (BooleanType,),
    BinaryType: (BinaryType,),
    VarBinaryType: (TypeFamily.BINARY_STRING,),
    DecimalType: (_NUMBER,),
    TinyIntType: (TinyIntType,),
    SmallIntType: (TinyIntType, SmallIntType),
    IntType: (TinyIntType, SmallIntType, IntType),
    BigIntType: (TypeFamily.INTEGER_NUMERIC,),
    FloatType: (_EXACT, FloatType),
    DoubleType: (_NUMBER,),
    DateType: (DateType, TimestampType),
    TimeType: (TimeType, TimestampType),
    TimestampType: (TypeFamily.TIMESTAMP,),
    LocalZonedTimestampType: (TypeFamily.TIMESTAMP,),
    YearMonthIntervalType: (YearMonthIntervalType,),
    DayTimeIntervalType: (DayTimeIntervalType,),
}

# A type, and what else CAST turns into it.
_EXPLICIT: _Rules = {
    CharType: _TO_TEXT,
    VarCharType: _TO_TEXT,
    BooleanType: (_TEXT, _NUMBER),
    BinaryType: (_TEXT, VarBinaryType, RawType),
    VarBinaryType: (_TEXT, RawType),
    DecimalType: (_TEXT, BooleanType),
    TinyIntType: _TO_INTEGER,
    SmallIntType: _TO_INTEGER,
    IntType: _TO_INTEGER,
    BigIntType: _TO_INTEGER,
    FloatType: (_NUMBER, _TEXT, BooleanType),
    DoubleType: (_TEXT, BooleanType),
    DateType: (TypeFamily.TIMESTAMP, _TEXT),
    TimeType: (TypeFamily.TIMESTAMP, _TEXT),
    TimestampType: (TypeFamily.DATETIME, _TEXT),
    LocalZonedTimestampType: (TypeFamily.DATETIME, _TEXT),
    YearMonthIntervalType: (_EXACT, _TEXT),
    DayTimeIntervalType: (_EXACT, _TEXT),
}


def implicit_cast_allowed(source: LogicalType, target: LogicalType) -> bool:
    """Whether a value of ``source`` may stand where ``target`` is wanted, without CAST. What may be
    null is no NOT NULL."""
    return _allowed(source, target, (_IMPLICIT,))


def explicit_cast_allowed(source: LogicalType, target: LogicalType) -> bool:
    """Whether CAST(source AS target) is allowed. Nullability does not count: CAST keeps that of its
    argument."""
    return _allowed(source.not_null(), target, (_IMPLICIT, _EXPLICIT))


def _allowed(source: LogicalType, target: LogicalType, tables: tuple[_Rules, ...]) -> bool:
    if source.is_nullable and not target.is_nullable:
        return False
    if isinstance(source, NullType) or source.nullable() == target.nullable():
        return True
    if target.is_a(TypeFamily.CONSTRUCTED):
        return _same_form(source, target) and all(
            _allowed(part, wanted, tables) for part, wanted in zip(source.children, target.children)
        )
    if source.is_a(_EXACT) and target.is_a(TypeFamily.INTERVAL):
        return " TO " not in target.text() and _listed(source, target, tables)
    return _listed(source, target, tables)


def _same_form(source: LogicalType, target: LogicalType) -> bool:
    return type(source) is type(target) and len(source.children) == len(target.children)


def _listed(source: LogicalType, target: LogicalType, tables: tuple[_Rules, ...]) -> bool:
    return any(
        source.is_a(each) if isinstance(each, TypeFamily) else isinstance(source, each)
        for table in tables
        for each in table.get(type(target), ())
    )


def cast_can_fail(source: LogicalType, target: LogicalType) -> bool:
    """Whether CAST may meet a value that it cannot turn into ``target``: text that is no number, no
    date, no truth; a float that is no decimal (NaN). What is only too large wraps round or becomes
    null, as in Flink."""
    if source.is_a(_TEXT):
        return not (target.is_a(_TEXT) or target.is_a(TypeFamily.BINARY_STRING))
    if source.is_a(TypeFamily.APPROXIMATE_NUMERIC) and isinstance(target, DecimalType):
        return True
    return any(
        cast_can_fail(part, wanted) for part, wanted in zip(source.children, target.children)
    )


def cast_changes_nothing(source: LogicalType, target: LogicalType) -> bool:
    """Whether each value of ``source`` is one of ``target`` as it is, so that the planner needs no
    cast: nullability may be given up, short text stands where long text may, names of fields and
    marks of time attributes do not count."""
    if source.is_nullable and not target.is_nullable:
        return False
    if source.children:
        return _same_form(source, target) and all(
            cast_changes_nothing(part, wanted)
            for part, wanted in zip(source.children, target.children)
        )
    if isinstance(source, SizedType) and isinstance(target, (VarCharType, VarBinaryType)):
        return source.is_a(_TEXT) == target.is_a(_TEXT) and source.length <= target.length
    if source.is_a(TypeFamily.INTERVAL):
        return type(source) is type(target)
    return _plain(source) == _plain(target)


def _plain(type: LogicalType) -> LogicalType:
    """Without nullability and without a mark."""
    if isinstance(type, (TimestampType, LocalZonedTimestampType)):
        return replace(type, is_nullable=True, time_attribute=None)
    return type.nullable()
