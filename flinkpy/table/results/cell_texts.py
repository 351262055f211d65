"""Values as Flink prints them: those of a CAST to STRING."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from flinkpy.columns.sql.sql_meanings.bitmaps.bitmap_meanings import bitmap_text
from flinkpy.columns.sql.sql_meanings.bitmaps.roaring_format import numbers_of_roaring
from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    BitmapType,
    DayTimeIntervalType,
    FloatType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    MultisetType,
    RowType,
    TimestampType,
    TimeType,
    YearMonthIntervalType,
)

NULL = "<NULL>"


def text_of(logical: LogicalType, zone: str = "UTC", null: str = NULL) -> Callable[[Any], str]:
    """What gives the text of a value of this type; ``null`` where there is none."""
    inner = _text_of(logical, zone)
    return lambda value: null if value is None else inner(value)


def _text_of(logical: LogicalType, zone: str) -> Callable[[Any], str]:
    if isinstance(logical, LocalZonedTimestampType):
        return _zoned(zone, logical.precision)
    if isinstance(logical, TimestampType):
        return lambda value: _moment(value, logical.precision)
    if isinstance(logical, TimeType):
        return lambda value: _time(value, logical.precision)
    if isinstance(logical, FloatType):
        return single_float_text
    if isinstance(logical, YearMonthIntervalType):
        return _months
    if isinstance(logical, DayTimeIntervalType):
        return _days_to_seconds
    if isinstance(logical, ArrayType):
        element = _nested(logical.element, zone)
        return lambda values: f"[{', '.join(map(element, values))}]"
    if isinstance(logical, (MapType, MultisetType)):
        return _map_text(logical, zone)
    if isinstance(logical, BitmapType):
        return lambda value: bitmap_text(numbers_of_roaring(value))
    if isinstance(logical, RowType):
        parts = [_nested(field.type, zone) for field in logical]
        return lambda row: f"({', '.join(part(each) for part, each in zip(parts, row))})"
    return cell_text


def _nested(logical: LogicalType, zone: str) -> Callable[[Any], str]:
    inner = _text_of(logical, zone)
    return lambda value: "NULL" if value is None else inner(value)


def _map_text(logical: MapType | MultisetType, zone: str) -> Callable[[Any], str]:
    key = _nested(logical.key if isinstance(logical, MapType) else logical.element, zone)
    value = _nested(logical.value, zone) if isinstance(logical, MapType) else str

    def text(entries: Any) -> str:
        pairs = entries.items() if isinstance(entries, Mapping) else entries
        return f"{{{', '.join(f'{key(each)}={value(of)}' for each, of in pairs)}}}"

    return text


def cell_text(value: object) -> str:
    """The text of a value of which the type says no more.

    >>> [cell_text(each) for each in (None, True, 1.0, 1e10, b"a", "b")]
    ['null', 'TRUE', '1.0', '1.0E10', "x'61'", 'b']
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, list):
        return f"[{', '.join(map(cell_text, value))}]"
    return str(value)


def float_text(value: float) -> str:
    """A DOUBLE as Java writes it.

    >>> [float_text(each) for each in (0.1, 100.0, 1e7, 1.5e-5, float("nan"))]
    ['0.1', '100.0', '1.0E7', '1.5E-5', 'NaN']
    """
    return _java_text(value, repr(value))


def single_float_text(value: float) -> str:
    """A FLOAT as Java writes it: the fewest digits that give it again.

    >>> single_float_text(0.10000000149011612)
    '0.1'
    """
    import numpy as np

    if math.isnan(value) or math.isinf(value):
        return float_text(value)
    shortest = np.format_float_positional(np.float32(value), unique=True, trim="0")
    return _java_text(value, str(shortest))


def _java_text(value: float, digits: str) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = f"{Decimal(digits):f}"
        return text if "." in text else f"{text}.0"
    sign, figures, exponent = Decimal(digits).normalize().as_tuple()
    assert isinstance(exponent, int)
    first, rest = figures[0], "".join(map(str, figures[1:])) or "0"
    return f"{'-' if sign else ''}{first}.{rest}E{exponent + len(figures) - 1}"


def _moment(value: datetime.datetime, precision: int) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}{_fraction(value.microsecond, precision)}"


def _zoned(zone: str, precision: int) -> Callable[[Any], str]:
    there = ZoneInfo(zone)

    def text(value: datetime.datetime) -> str:
        known = value if value.tzinfo is not None else value.replace(tzinfo=datetime.timezone.utc)
        return _moment(known.astimezone(there), precision)

    return text


def _time(value: datetime.time, precision: int) -> str:
    return f"{value:%H:%M:%S}{_fraction(value.microsecond, precision)}"


def _fraction(microseconds: int, precision: int) -> str:
    return f".{f'{microseconds:06d}'.ljust(9, '0')[:precision]}" if precision else ""


def _months(value: int) -> str:
    years, months = divmod(abs(value), 12)
    return f"{'-' if value < 0 else '+'}{years}-{months:02d}"


def _days_to_seconds(value: int | datetime.timedelta) -> str:
    if isinstance(value, datetime.timedelta):
        value = value // datetime.timedelta(milliseconds=1)
    days, rest = divmod(abs(value), 86_400_000)
    hours, rest = divmod(rest, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    sign = "-" if value < 0 else "+"
    return f"{sign}{days} {hours:02d}:{minutes:02d}:{rest // 1000:02d}.{rest % 1000:03d}"
