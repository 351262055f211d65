"""Texts as values of a declared type, for formats that hold values as text: cells of CSV, and in
JSON dates, times, decimals, bytes and the keys of maps. A text that is no value of the type raises
ValueError.

Numbers, dates and times are written as ``text_values`` writes them, and in ISO 8601. A time with a
zone is an instant: a ``SQL_TIMESTAMP`` refuses a text with a zone, an ``INSTANT`` one without."""

from __future__ import annotations

import base64
import datetime
import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from flinkpy.common.time import Instant
from flinkpy.common.typeinfo import BasicTypeInfo, TypeInformation, Types

Parse: TypeAlias = Callable[[str], Any]

NAMED_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_FLOATS_BY_NAME = {
    **{name.lower(): value for name, value in NAMED_FLOATS.items()},
    "inf": math.inf,
    "-inf": -math.inf,
    "-nan": math.nan,
}
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DAY = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
_TIME = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
_HOUR_AND_MORE = r"([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?)?"
_DATE_TEXT, _TIME_TEXT = re.compile(_DAY), re.compile(_TIME)
_MOMENT_TEXT = re.compile(rf"{_DAY}(?:[T ]{_HOUR_AND_MORE}(Z|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)?)?")
_BLANKS = " \t"
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def whole(text: str) -> int:
    """An integer of any size."""
    if text.isascii() and text.isdigit():
        return int(text)
    stripped = text.strip(_BLANKS)
    if not _WHOLE.fullmatch(stripped):
        raise ValueError(f"{text!r:.80} is no whole number")
    return int(stripped)


def double(text: str) -> float:
    """A float, ``NaN``, ``Infinity`` or ``-Infinity``."""
    # Python's float takes more than numbers
    if text.isascii() and "_" not in text and text[:1] > " " and text[-1:] > " ":
        try:
            number = float(text)
            if number - number == 0.0:  # neither infinite nor NaN
                return number
        except ValueError:
            pass
    stripped = text.strip(_BLANKS)
    named = _FLOATS_BY_NAME.get(stripped.lower())
    if named is not None:
        return named
    if not _NUMBER.fullmatch(stripped):
        raise ValueError(f"{text!r:.80} is no number")
    return finite(float(stripped), text)


def finite(number: float, given: object) -> float:
    """The float. Raises ValueError if it became infinite on the way from what was given."""
    if math.isinf(number):
        raise ValueError(f"{given!r:.80} is too large for a DOUBLE")
    return number


def short_float(value: float) -> float:
    """The float with 32 bits that is nearest, as a Python float."""
    try:
        short: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise ValueError(f"{value!r} is too large for a FLOAT") from None
    return short


def decimal(text: str) -> Decimal:
    """All digits as they are."""
    stripped = text.strip(_BLANKS)
    if not _NUMBER.fullmatch(stripped) and stripped.lower() not in _FLOATS_BY_NAME:
        raise ValueError(f"{text!r:.80} is no number")
    return Decimal(stripped)


def boolean(text: str) -> bool:
    """``true`` or ``false``, in any case."""
    named = {"true": True, "false": False}.get(text.strip(_BLANKS).lower())
    if named is None:
        raise ValueError(f"{text!r:.80} is neither true nor false")
    return named


def from_base64(text: str) -> bytes:
    """The bytes that the text holds."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError(f"{text!r:.80} is no Base64, in which texts hold bytes") from None


def date(text: str) -> datetime.date:
    """``2024-05-01``"""
    found = _DATE_TEXT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r:.80} is no date, such as 2024-05-01")
    return datetime.date(*map(int, found.groups()))


def time_of_day(text: str) -> datetime.time:
    """``12:30:00.5``, without a zone"""
    found = _TIME_TEXT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r:.80} is no time of day, such as 12:30:00")
    hour, minute, second, fraction = found.groups()
    nanos = _nanos(fraction)
    if nanos % 1000:
        raise ValueError(f"{text!r:.80} has parts of microseconds")
    return datetime.time(int(hour), int(minute), int(second or 0), nanos // 1000)


def timestamp(text: str) -> datetime.datetime:
    """``2024-05-01 12:30:00.5``, without a zone"""
    moment, nanos, zone = _moment(text)
    if zone is not None:
        raise ValueError(f"{text!r:.80} has a zone, and the type has none; declare Types.INSTANT()")
    if nanos % 1000:
        raise ValueError(f"{text!r:.80} has parts of microseconds")
    return moment + datetime.timedelta(microseconds=nanos // 1000)


def instant(text: str) -> datetime.datetime | Instant:
    """``2024-05-01 12:30:00.5+02:00`` as a datetime in UTC; an Instant if it has parts of
    microseconds."""
    moment, nanos, zone = _moment(text)
    if zone is None:
        raise ValueError(
            f"{text!r:.80} has no zone, and an instant needs one; declare Types.SQL_TIMESTAMP()"
        )
    try:
        utc = moment.replace(tzinfo=datetime.timezone.utc) - _offset(zone)
    except OverflowError:
        raise ValueError(f"{text!r:.80} is no datetime in UTC") from None
    return utc_of((utc - _EPOCH) // datetime.timedelta(seconds=1), nanos)


def utc_of(seconds: int, nanos: int) -> datetime.datetime | Instant:
    """The instant as a datetime in UTC; as an Instant if it has parts of microseconds, or is not in
    Python's years."""
    try:
        moment = _EPOCH + datetime.timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError:
        return Instant(seconds, nanos)
    return Instant(seconds, nanos) if nanos % 1000 else moment


def _moment(text: str) -> tuple[datetime.datetime, int, str | None]:
    found = _MOMENT_TEXT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r:.80} is no datetime, such as 2024-05-01 12:30:00")
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    moment = datetime.datetime(
        int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0)
    )
    return moment, _nanos(fraction), zone


def _nanos(fraction: str | None) -> int:
    return int(fraction.ljust(9, "0")) if fraction else 0


def _offset(zone: str) -> datetime.timedelta:
    if zone == "Z":
        return datetime.timedelta(0)
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError(f"{zone!r} is no distance from UTC")
    span = datetime.timedelta(hours=hours, minutes=minutes)
    return -span if zone[0] == "-" else span


def in_range(type_info: TypeInformation) -> Callable[[int], int]:
    """What gives the number itself, or raises ValueError if it is outside the integers of the
    type."""
    low, high = bounds(type_info)
    if low is None or high is None:
        return lambda number: number
    within = range(low, high + 1)

    def check(number: int) -> int:
        if number not in within:
            raise ValueError(
                f"{number!r:.80} is outside {low} .. {high}, the numbers of {type_info!r}"
            )
        return number

    return check


def bounds(type_info: TypeInformation) -> tuple[int | None, int | None]:
    """The least and the greatest integer of a type; None where there is none."""
    bits = {"BYTE": 8, "SHORT": 16, "INT": 32, "LONG": 64}.get(getattr(type_info, "name", ""))
    return (None, None) if bits is None else (-(1 << bits - 1), (1 << bits - 1) - 1)


_PARSERS: dict[str, Parse] = {
    "STRING": str,
    "CHAR": str,
    "BOOLEAN": boolean,
    "BIG_INT": whole,
    "DOUBLE": double,
    "FLOAT": lambda text: short_float(double(text)),
    "BIG_DEC": decimal,
    "SQL_DATE": date,
    "SQL_TIME": time_of_day,
    "SQL_TIMESTAMP": timestamp,
    "INSTANT": instant,
}


def parser_of(type_info: TypeInformation) -> Parse | None:
    """What makes a value of the type from its text; None for types whose values have parts.

    >>> parser_of(Types.INSTANT())("2024-05-01T12:30:00+02:00")
    datetime.datetime(2024, 5, 1, 10, 30, tzinfo=datetime.timezone.utc)
    """
    if type_info == Types.PRIMITIVE_ARRAY(Types.BYTE()):
        return from_base64
    if not isinstance(type_info, BasicTypeInfo):
        return None
    if bounds(type_info) != (None, None):
        check = in_range(type_info)
        return lambda text: check(whole(text))
    return _PARSERS[type_info.name]
