"""CAST and TRY_CAST between all types, as Flink does them. Casts that Flink does not have are
refused when the statement is planned; here they raise ProgramError."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from flinkpy.columns.row_functions.moment_functions import placed, zone_of
from flinkpy.columns.sql.call_site import CallSite, Meaning, MeaningOf
from flinkpy.columns.sql.sql_meanings.casts import values_of_texts
from flinkpy.columns.sql.sql_meanings.casts.texts_of_values import text_of
from flinkpy.columns.sql.sql_meanings.number_rules import fitted, single, wrapped
from flinkpy.common.logical_types.logical_type import (
    UNBOUNDED,
    ArrayType,
    BinaryType,
    BooleanType,
    CharType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    MultisetType,
    NullType,
    RowType,
    SizedType,
    TimestampType,
    TimeType,
    TypeFamily,
)
from flinkpy.core.errors import ProgramError

Cast: TypeAlias = Callable[[Any], Any]

_UTC = datetime.timezone.utc
# what 64 bits of nanoseconds hold
_OF_NANOSECONDS = (
    datetime.datetime(1677, 9, 21, 0, 12, 44),
    datetime.datetime(2262, 4, 11, 23, 47, 16),
)
_EPOCH_DAY = datetime.date(1970, 1, 1)
_EXACT_BITS = 50  # an integer of so many bits is exact as a float, with one bit to spare


def cast_of(source: LogicalType, target: LogicalType, zone: str) -> Cast:
    """The cast of values that are not null. It raises ValueError or ArithmeticError for a value
    that cannot be cast, and gives None for a number that is too large for a DECIMAL."""
    found: Cast | None = None
    if isinstance(source, NullType):
        return lambda value: None
    if isinstance(target, SizedType):
        found = _to_sized(source, target, zone)
    elif source.is_a(TypeFamily.CHARACTER_STRING):
        found = _of_text(target, zone)
    elif isinstance(target, (ArrayType, MapType, MultisetType, RowType)):
        found = _nested(source, target, zone)
    elif target.is_a(TypeFamily.DATETIME):
        found = _to_moment(source, target, zone)
    elif target.is_a(TypeFamily.NUMERIC) or isinstance(target, BooleanType):
        found = _to_number(source, target)
    elif _is_same(source, target):
        found = _same
    if found is None:
        raise ProgramError(f"{source.text()} cannot be cast to {target.text()}")
    return found


def _same(value: Any) -> Any:
    return value


def _is_same(source: LogicalType, target: LogicalType) -> bool:
    if _is_interval(target):
        return type(source) is type(target) or isinstance(source, IntegerType)
    return source.with_nullable(True) == target.with_nullable(True)


def _is_interval(kind: LogicalType) -> bool:
    return kind.is_a(TypeFamily.INTERVAL)


# -- text and bytes --------------------------------------------------------------------------------


def _to_sized(source: LogicalType, target: SizedType, zone: str) -> Cast | None:
    """Texts and bytes: CHAR and BINARY fill up, all of them cut."""
    if target.is_a(TypeFamily.CHARACTER_STRING):
        write: Callable[[Any], Any] | None = text_of(source, zone)
    elif source.is_a(TypeFamily.CHARACTER_STRING):
        write = str.encode
    else:
        write = _same if source.is_a(TypeFamily.BINARY_STRING) else None
    if write is None or target.length == UNBOUNDED:
        return write
    length, to_value = target.length, write
    if isinstance(target, CharType):
        return lambda value: to_value(value)[:length].ljust(length)
    if isinstance(target, BinaryType):
        return lambda value: to_value(value)[:length].ljust(length, b"\0")
    return lambda value: to_value(value)[:length]


def _of_text(target: LogicalType, zone: str) -> Cast | None:
    if isinstance(target, IntegerType):
        bits = target.bits
        return lambda text: values_of_texts.integer(text, bits)
    if isinstance(target, DecimalType):
        kind = target
        return lambda text: _decimal_of_text(text, kind)
    if isinstance(target, FloatType):
        return lambda text: single(values_of_texts.floating(text))
    if isinstance(target, TimeType):
        return _then(values_of_texts.time, _cut_to(target.precision))
    if isinstance(target, TimestampType):
        return _then(values_of_texts.moment, _cut_to(target.precision))
    if isinstance(target, LocalZonedTimestampType):
        local = zone_of(zone)
        cut = _cut_to(target.precision)
        return lambda text: _instant(cut(values_of_texts.moment(text)), local)
    plain: dict[type[LogicalType], Cast] = {
        BooleanType: values_of_texts.boolean,
        DoubleType: values_of_texts.floating,
        DateType: values_of_texts.date,
    }
    return plain.get(type(target))


def _decimal_of_text(text: str, kind: DecimalType) -> Decimal:
    """A number that is too large is no number of this type; the same in a number becomes null."""
    found = fitted(values_of_texts.decimal(text), kind)
    if found is None:
        raise ValueError(f"{text!r:.60} has more digits than {kind.text()}")
    return found


def _then(first: Cast, second: Cast) -> Cast:
    return lambda value: second(first(value))


# -- numbers ---------------------------------------------------------------------------------------


def _to_number(source: LogicalType, target: LogicalType) -> Cast | None:
    if isinstance(source, BooleanType):
        return _same if isinstance(target, BooleanType) else _of_integer(target)
    if isinstance(target, BooleanType):
        return bool if source.is_a(TypeFamily.NUMERIC) else None
    if isinstance(source, IntegerType) or _is_interval(source):
        return _of_integer(target)
    if isinstance(source, DecimalType):
        return _of_decimal(target)
    if isinstance(source, (FloatType, DoubleType)):
        return _of_float(target)
    return None


def _of_integer(target: LogicalType) -> Cast:
    if isinstance(target, IntegerType):
        bits = target.bits
        return lambda value: wrapped(int(value), bits)
    if isinstance(target, DecimalType):
        kind = target
        return lambda value: fitted(Decimal(value), kind)
    return _single_of_integer if isinstance(target, FloatType) else float


def _single_of_integer(value: int) -> float:
    """Rounded once, where the way over a float of 64 bits would round twice."""
    size = abs(value)
    beyond = max(0, size.bit_length() - _EXACT_BITS)
    kept = size >> beyond
    if kept << beyond != size:
        kept |= 1
    found = single(math.ldexp(kept, beyond))
    return -found if value < 0 else found


def _of_decimal(target: LogicalType) -> Cast:
    if isinstance(target, IntegerType):
        bits = target.bits
        return lambda value: wrapped(int(value), bits)
    if isinstance(target, DecimalType):
        kind = target
        return lambda value: fitted(value, kind)
    return (lambda value: single(float(value))) if isinstance(target, FloatType) else float


def _of_float(target: LogicalType) -> Cast:
    if isinstance(target, IntegerType):
        bits = target.bits
        # Java goes over 32 bits to the shorter ones, and only its first step saturates
        return lambda value: wrapped(_saturated(value, max(bits, 32)), bits)
    if isinstance(target, DecimalType):
        return lambda value: fitted(_decimal_of(value), target)
    return single if isinstance(target, FloatType) else float


def _saturated(value: float, bits: int) -> int:
    if value != value:
        return 0
    limit = 1 << (bits - 1)
    if value >= limit:
        return limit - 1
    return -limit if value < -limit else int(value)


def _decimal_of(value: float) -> Decimal:
    if value != value or math.isinf(value):
        raise ValueError(f"{value} is not a DECIMAL")
    return Decimal(repr(value))


# -- dates and times -------------------------------------------------------------------------------


def _to_moment(source: LogicalType, target: LogicalType, zone: str) -> Cast | None:
    if not source.is_a(TypeFamily.DATETIME):
        return None
    if isinstance(source, DateType) and isinstance(target, DateType):
        return _same
    if isinstance(source, TimeType) and isinstance(target, TimeType):
        return _cut_to(target.precision)
    local = zone_of(zone)
    to_local = _local(source, local)
    if isinstance(target, DateType):
        return lambda value: to_local(value).date()
    if isinstance(target, TimeType):
        cut = _cut_to(target.precision)
        return lambda value: cut(to_local(value).time())
    assert isinstance(target, (TimestampType, LocalZonedTimestampType))
    cut = _cut_to(target.precision)
    if isinstance(target, TimestampType):
        return lambda value: cut(to_local(value))
    if isinstance(source, LocalZonedTimestampType):
        return cut
    return lambda value: _instant(cut(to_local(value)), local)


def _local(source: LogicalType, zone: datetime.tzinfo) -> Cast:
    """The local time of a value: a date begins at midnight, a time is on the first day of 1970."""
    if isinstance(source, DateType):
        return lambda day: datetime.datetime.combine(day, datetime.time())
    if isinstance(source, TimeType):
        return lambda time: datetime.datetime.combine(_EPOCH_DAY, time)
    if isinstance(source, LocalZonedTimestampType):
        return lambda moment: moment.astimezone(zone).replace(tzinfo=None)
    return _same


def _instant(local: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    return placed(local, zone).astimezone(_UTC)


def _cut_to(precision: int) -> Cast:
    """Moments and times with so many digits of the second."""
    if precision > 6:
        return counted_in_nanoseconds
    unit = 10 ** max(0, 6 - precision)
    return lambda moment: moment.replace(microsecond=moment.microsecond // unit * unit)


def counted_in_nanoseconds(moment: Any) -> Any:
    """The same value. Raises ValueError for a moment that 64 bits of nanoseconds do not hold."""
    if isinstance(moment, datetime.datetime):
        first, last = _OF_NANOSECONDS
        shown = moment.replace(tzinfo=None)
        if not first <= shown <= last:
            raise ValueError(
                f"{shown} is beyond a TIMESTAMP of more than 6 digits, which spans the years 1677 "
                "to 2262; write TIMESTAMP(6)"
            )
    return moment


# -- nested values ---------------------------------------------------------------------------------


def _nested(source: LogicalType, target: LogicalType, zone: str) -> Cast | None:
    pairs = list(zip(source.children, target.children))
    if type(source) is not type(target) or len(source.children) != len(target.children):
        return None
    casts = [_or_null(cast_of(have, wanted, zone)) for have, wanted in pairs]
    if isinstance(target, ArrayType):
        [of_element] = casts
        return lambda values: [of_element(each) for each in values]
    if isinstance(target, RowType):
        return lambda row: tuple(change(each) for change, each in zip(casts, row))
    of_key, of_value = casts if len(casts) == 2 else (casts[0], _same)
    return lambda entries: {of_key(key): of_value(each) for key, each in entries.items()}


def _or_null(change: Cast) -> Cast:
    return lambda value: None if value is None else change(value)


# -- the functions ---------------------------------------------------------------------------------


def cast(site: CallSite) -> Meaning:
    """``CAST(value AS type)``."""
    return _or_null(cast_of(site.arguments[0], site.result, site.zone))


def try_cast(site: CallSite) -> Meaning:
    """``TRY_CAST(value AS type)``: null where CAST fails."""
    change = cast(site)

    def changed(value: Any) -> Any:
        try:
            return change(value)
        except (ValueError, ArithmeticError):
            return None

    return changed


def field(site: CallSite) -> Meaning:
    """A part of a row by number."""
    index = site.options["index"]
    assert isinstance(index, int)
    return lambda row: None if row is None else row[index]


CAST_MEANINGS: dict[str, MeaningOf] = {
    "CAST": cast,
    "TRY_CAST": try_cast,
    "REINTERPRET": lambda site: _same,
    "FIELD": field,
}
