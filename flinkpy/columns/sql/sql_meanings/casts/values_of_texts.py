"""Values as Flink's CAST reads them from text. What cannot be read raises ValueError."""

from __future__ import annotations

import calendar
import datetime
import re
from decimal import Decimal
from typing import NoReturn

_INTEGER = re.compile(r"([+-]?)(\d*)(\.\d*)?", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_FLOAT = re.compile(r"[+-]?(NaN|Infinity|((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)[dDfF]?)", re.ASCII)
_DAY = re.compile(r"(\d{1,4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?", re.ASCII)
_TIME = re.compile(r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?)?", re.ASCII)
_MOMENT = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{0,9}))?)?", re.ASCII
)
_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_LAST_DAY = 31
_BLANK = " \t\n\r\x0b\x0c"


def _refuse(text: str, what: str) -> NoReturn:
    raise ValueError(f"{text!r:.60} is not {what}")


def boolean(text: str) -> bool:
    """``true``, ``t``, ``yes``, ``y``, ``1`` and their opposites, in any case."""
    word = text.strip(_BLANK).lower()
    if word not in _TRUE and word not in _FALSE:
        _refuse(text, "a truth value")
    return word in _TRUE


def integer(text: str, bits: int) -> int:
    """A whole number; digits behind a point are cut."""
    found = _INTEGER.fullmatch(text.strip(_BLANK))
    if found is None or not (found[2] or len(found[3] or "") > 1):
        _refuse(text, "a number")
    size = int(found[2] or "0")
    value = -size if found[1] == "-" else size
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        _refuse(text, f"a number of {bits} bits")
    return value


def floating(text: str) -> float:
    """A number, NaN or Infinity."""
    word = text.strip(_BLANK)
    if not _FLOAT.fullmatch(word):
        _refuse(text, "a number")
    if word[-1] in "dDfF":
        word = word[:-1]
    return float(word)


def decimal(text: str) -> Decimal:
    """A number with any digits."""
    word = text.strip(_BLANK)
    if not _DECIMAL.fullmatch(word):
        _refuse(text, "a number")
    return Decimal(word)


def date(text: str) -> datetime.date:
    """``2024-5-3``; what follows a blank is left out, as is a day or a month that is not there."""
    word = text.split(" ", 1)[0] if text[:1] != " " else text.strip(_BLANK)
    found = _DAY.fullmatch(word)
    if found is None:
        _refuse(text, "a date")
    try:
        return datetime.date(int(found[1]), int(found[2] or 1), int(found[3] or 1))
    except ValueError:
        _refuse(text, "a date")


def time(text: str) -> datetime.time:
    """``10:11:12.345``; what is not there is 0."""
    found = _TIME.fullmatch(text.strip(_BLANK))
    if found is None:
        _refuse(text, "a time")
    try:
        return datetime.time(
            int(found[1]), int(found[2] or 0), int(found[3] or 0), _microseconds(found[4])
        )
    except ValueError:
        _refuse(text, "a time")


def moment(text: str) -> datetime.datetime:
    """``2024-05-31 10:11:12.345``; the time may be left out. A day up to 31 that its month lacks is
    the month's last one, and 24:00:00 is the beginning of the next day."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        _refuse(text, "a timestamp")
    year, month, day, hour, minute, second = (int(each or 0) for each in found.groups()[:6])
    fraction = _microseconds(found[7])
    is_end = (hour, minute, second, fraction) == (24, 0, 0, 0)
    try:
        if day <= _LAST_DAY:
            day = min(day, calendar.monthrange(year, month)[1])
        on = datetime.date(year, month, day) + datetime.timedelta(days=is_end)
        at = datetime.time() if is_end else datetime.time(hour, minute, second, fraction)
        return datetime.datetime.combine(on, at)
    except (ValueError, OverflowError):
        _refuse(text, "a timestamp")


def _microseconds(fraction: str | None) -> int:
    return int((fraction or "")[:6].ljust(6, "0"))
