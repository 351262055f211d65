"""Values as Flink's CAST writes them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from flinkpy.columns.row_functions.moment_functions import zone_of
from flinkpy.columns.sql.sql_meanings.bitmaps.bitmap_meanings import bitmap_text
from flinkpy.columns.sql.sql_meanings.number_rules import single
from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    BinaryType,
    BitmapType,
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
    RowType,
    TimestampType,
    TimeType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)

Text: TypeAlias = Callable[[Any], str]
_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7  # floats beyond are written with an exponent


def text_of(kind: LogicalType, zone: str) -> Text | None:
    """The function that writes values of this type that are not null; None if CAST has no text for
    them."""
    if isinstance(kind, (ArrayType, MapType, MultisetType, RowType)):
        return _nested_text(kind, zone)
    if isinstance(kind, (TimestampType, LocalZonedTimestampType)):
        precision = kind.precision
        if isinstance(kind, TimestampType):
            return lambda moment: moment_text(moment, precision)
        local = zone_of(zone)
        return lambda moment: moment_text(moment.astimezone(local), precision)
    if isinstance(kind, TimeType):
        digits = min(kind.precision, 3)
        return lambda time: f"{time:%H:%M:%S}{_fraction(time.microsecond, digits)}"
    return str if isinstance(kind, IntegerType) else _FLAT.get(type(kind))


def _nested_text(kind: LogicalType, zone: str) -> Text | None:
    inside = [text_of(each, zone) for each in kind.children]
    known = [each for each in inside if each is not None]
    if len(known) < len(inside):
        return None
    parts = [_or_null(each) for each in known]
    if isinstance(kind, ArrayType):
        [of_element] = parts
        return lambda values: f"[{', '.join(map(of_element, values))}]"
    if isinstance(kind, RowType):
        return lambda row: f"({', '.join(write(each) for write, each in zip(parts, row))})"
    of_key, of_value = parts if len(parts) == 2 else (parts[0], str)
    return lambda entries: _map_text(entries, of_key, of_value)


def _map_text(entries: dict[Any, Any], of_key: Text, of_value: Text) -> str:
    return "{" + ", ".join(f"{of_key(key)}={of_value(each)}" for key, each in entries.items()) + "}"


def _or_null(write: Text) -> Text:
    return lambda value: "NULL" if value is None else write(value)


def moment_text(moment: datetime.datetime, precision: int) -> str:
    """The date and the time of the day, with so many digits of the second."""
    day = f"{moment.year:04}-{moment.month:02}-{moment.day:02}"
    return f"{day} {moment:%H:%M:%S}{_fraction(moment.microsecond, precision)}"


def _fraction(microsecond: int, digits: int) -> str:
    return "." + f"{microsecond:06}000"[:digits] if digits else ""


def double_text(value: float) -> str:
    """As Java writes a double: the shortest digits that mean it, at least one behind the point."""
    return _float_text(value, repr(value))


def float_text(value: float) -> str:
    """As Java writes a float of 32 bits."""
    if value != value or math.isinf(value):
        return double_text(value)
    shortest = next(
        shown
        for shown in (f"{value:.{digits}e}" for digits in range(17))
        if single(float(shown)) == value
    )
    return _float_text(value, shortest)


def _float_text(value: float, shown: str) -> str:
    if value != value:
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    _, digits, exponent = Decimal(shown).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    assert isinstance(exponent, int)
    point = len(digits) + exponent  # so many digits stand before the point
    if value and not _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return f"{sign}{text[0]}.{text[1:] or '0'}E{point - 1}"
    if point <= 0 or not value:
        return f"{sign}0.{'0' * -point if value else ''}{text}"
    return f"{sign}{text[:point].ljust(point, '0')}.{text[point:] or '0'}"


def months_text(months: int) -> str:
    """``+1-02``: years and months."""
    years, rest = divmod(abs(months), 12)
    return f"{'-' if months < 0 else '+'}{years}-{rest:02}"


def milliseconds_text(millis: int) -> str:
    """``+1 02:03:04.005``: days and the time of a day."""
    seconds, rest = divmod(abs(millis), 1000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    sign = "-" if millis < 0 else "+"
    return f"{sign}{days} {hour:02}:{minute:02}:{second:02}.{rest:03}"


def _of_bytes(value: bytes) -> str:
    return value.decode("utf-8", "replace")


_FLAT: dict[type[LogicalType], Text] = {
    BooleanType: lambda value: "TRUE" if value else "FALSE",
    DoubleType: double_text,
    FloatType: float_text,
    DecimalType: lambda value: format(value, "f"),
    CharType: str,
    VarCharType: str,
    BinaryType: _of_bytes,
    VarBinaryType: _of_bytes,
    DateType: lambda day: f"{day.year:04}-{day.month:02}-{day.day:02}",
    YearMonthIntervalType: months_text,
    DayTimeIntervalType: milliseconds_text,
    BitmapType: bitmap_text,
    NullType: str,
}
