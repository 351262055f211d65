"""Times written and read with the pattern letters of Java. Flink reads some functions' texts with
the older class of Java, which carries what is too large into the next field, and others with the
newer one, which is strict."""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Callable

from flinkpy.columns.row_functions.moment_functions import date_format
from flinkpy.columns.time_formats import Field, fields_of, number_of, pieces_of, reading
from flinkpy.core.errors import ProgramError

PLAIN_MOMENT = "yyyy-MM-dd HH:mm:ss"
_MOST_DIGITS = 9
_LAST_DAY = 31


def written(moment: datetime.datetime, pattern: str) -> str:
    """The moment in this format. Raises ValueError for a pattern that has no meaning."""
    _known(pattern)
    return date_format(moment, pattern)


def read_leniently(text: str, pattern: str) -> datetime.datetime | None:
    """The moment at the start of the text: the 32nd day of a month is the first of the next one.
    None if it does not have the format."""
    expression, readers = _lenient(pattern)
    found = expression.match(text)
    if found is None:
        return None
    parts = {part: read(found[part].lower()) for part, read in readers.items()}
    months = parts.get("year", 1970) * 12 + parts.get("month", 1) - 1
    try:
        start = datetime.datetime(months // 12, months % 12 + 1, 1)
        return start + datetime.timedelta(
            days=parts.get("day", 1) - 1,
            hours=_hour(parts),
            minutes=parts.get("minute", 0),
            seconds=parts.get("second", 0),
            milliseconds=parts.get("fraction", 0),
        )
    except (ValueError, OverflowError):
        return None


def read_strictly(text: str, pattern: str) -> datetime.datetime | None:
    """The moment that the whole text shows, or None. What the format does not have is that of
    1970-01-01 00:00:00; a day that its month lacks is the month's last one."""
    expression, readers = _strict(pattern)
    found = expression.fullmatch(text)
    if found is None:
        return None
    parts = {part: read(found[part].lower()) for part, read in readers.items()}
    month, day = parts.get("month", 1), parts.get("day", 1)
    try:
        start = datetime.datetime(
            parts.get("year", 1970),
            month,
            1,
            _hour(parts),
            parts.get("minute", 0),
            parts.get("second", 0),
            parts.get("fraction", 0),
        )
        if not 1 <= day <= _LAST_DAY:
            return None
        while True:
            try:
                return start.replace(day=day)
            except ValueError:
                day -= 1
    except ValueError:
        return None


def _hour(parts: dict[str, int]) -> int:
    if "hour12" in parts:
        return parts["hour12"] % 12 + 12 * parts.get("half", 0)
    return parts.get("hour", 0)


@functools.lru_cache(maxsize=256)
def _known(pattern: str) -> list[str]:
    """The parts of a format. Raises ValueError for a letter that has no meaning."""
    if "%" in pattern:
        raise ValueError(f"the format {pattern!r} has a %; use Java's letters, as in yyyy-MM-dd")
    try:
        return [each.part for each in fields_of(pattern)]
    except ProgramError as error:
        raise ValueError(str(error)) from None


def _check_readable(pattern: str) -> None:
    parts = _known(pattern)
    doubled = {part for part in parts if parts.count(part) > 1}
    if doubled:
        raise ValueError(f"the format {pattern!r} has the {min(doubled)} twice")


@functools.lru_cache(maxsize=256)
def _lenient(pattern: str) -> tuple[re.Pattern[str], dict[str, Callable[[str], int]]]:
    _check_readable(pattern)
    pieces = pieces_of(pattern)
    expressions = []
    for piece, following in zip(pieces, (*pieces[1:], "")):
        if isinstance(piece, str):
            expressions.append(re.escape(piece))
        elif piece.names:
            names = "|".join(sorted(piece.names, key=len, reverse=True))
            expressions.append(rf"\s*(?P<{piece.part}>(?i:{names}))")
        else:
            is_beside = isinstance(following, Field) and not following.names
            digits = f"{{1,{piece.width if is_beside else _MOST_DIGITS}}}"
            expressions.append(rf"\s*(?P<{piece.part}>[0-9]{digits})")
    readers = {
        each.part: int if each.part == "fraction" else number_of(each)
        for each in fields_of(pattern)
    }
    return re.compile("".join(expressions)), readers


@functools.lru_cache(maxsize=256)
def _strict(pattern: str) -> tuple[re.Pattern[str], dict[str, Callable[[str], int]]]:
    _check_readable(pattern)
    readers = {each.part: number_of(each) for each in fields_of(pattern)}
    return re.compile(reading(pattern)), readers
