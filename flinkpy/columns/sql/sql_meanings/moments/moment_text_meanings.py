"""Functions between times and texts or numbers: DATE_FORMAT, TO_TIMESTAMP, FROM_UNIXTIME and their
like. What cannot be read is null."""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Callable
from typing import Any, TypeVar

from flinkpy.columns.row_functions.moment_functions import placed, zone_of
from flinkpy.columns.sql.call_site import CallSite, Meaning, MeaningOf
from flinkpy.columns.sql.sql_meanings.casts import values_of_texts
from flinkpy.columns.sql.sql_meanings.moments.java_formats import (
    PLAIN_MOMENT,
    read_leniently,
    read_strictly,
    written,
)
from flinkpy.columns.sql.sql_meanings.null_rules import strict, strictly
from flinkpy.common.logical_types.logical_type import LocalZonedTimestampType, TypeFamily

_Value = TypeVar("_Value")
_UTC = datetime.timezone.utc
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=_UTC)
_SECOND = datetime.timedelta(seconds=1)
_UNREADABLE = -(1 << 63)  # what UNIX_TIMESTAMP gives for a text that is no time
_PER_SECOND = {0: 1, 3: 1000}


def _date_format(site: CallSite) -> Meaning:
    """A text is read as a time first."""
    if site.arguments[0].is_a(TypeFamily.CHARACTER_STRING):
        return strict(_text_in_format)
    if isinstance(site.arguments[0], LocalZonedTimestampType):
        zone = zone_of(site.zone)
        return strict(lambda moment, pattern: written(moment.astimezone(zone), pattern))
    return strict(written)


def _text_in_format(text: str, pattern: str) -> str | None:
    moment = read_leniently(text, PLAIN_MOMENT)
    return None if moment is None else written(moment, pattern)


def _to_date(text: str, pattern: str | None = None) -> datetime.date | None:
    if pattern is None:
        return _or_null(values_of_texts.date, text)
    moment = read_leniently(text, pattern)
    return None if moment is None else moment.date()


def _to_timestamp(text: str, pattern: str | None = None) -> datetime.datetime | None:
    if pattern is None:
        moment = _or_null(values_of_texts.moment, text)
    else:
        moment = read_strictly(text, pattern)
    return None if moment is None else _in_milliseconds(moment)


def _or_null(read: Callable[[str], _Value], text: str) -> _Value | None:
    try:
        return read(text)
    except ValueError:
        return None


def _in_milliseconds(moment: datetime.datetime) -> datetime.datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _to_timestamp_ltz(site: CallSite) -> Meaning:
    """Of a number of seconds or milliseconds, or of a text, which is in UTC if no zone is given."""
    is_text = site.arguments[0].is_a(TypeFamily.CHARACTER_STRING)
    return strict(_instant_of_text if is_text else _instant_of_number)


def _instant_of_number(number: Any, precision: int = 3) -> datetime.datetime | None:
    per_second = _PER_SECOND.get(precision)
    if per_second is None:
        raise ValueError(f"TO_TIMESTAMP_LTZ takes the precision 0 or 3, not {precision}")
    try:
        return _EPOCH + datetime.timedelta(milliseconds=int(number * (1000 // per_second)))
    except (OverflowError, ValueError):
        return None


def _instant_of_text(text: str, pattern: str | None = None, zone: str = "UTC") -> Any:
    local = _to_timestamp(text, pattern)
    place = _zone_or_none(zone)
    if local is None or place is None:
        return None
    try:
        return placed(local, place).astimezone(_UTC)
    except OverflowError:
        return None


def _zone_or_none(name: str) -> datetime.tzinfo | None:
    try:
        return zone_of(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _from_unixtime(site: CallSite) -> Meaning:
    zone = zone_of(site.zone)

    def shown(seconds: Any, pattern: str = PLAIN_MOMENT) -> str:
        return written((_EPOCH + int(seconds) * _SECOND).astimezone(zone), pattern)

    return strict(shown)


def _unix_timestamp(site: CallSite) -> Meaning:
    """The seconds since 1970 now, or at the time that a text shows."""
    if not site.arguments:
        return lambda: site.clock.time_ms() // 1000
    zone = zone_of(site.zone)

    def seconds(text: str, pattern: str = PLAIN_MOMENT) -> int:
        local = read_leniently(text, pattern)
        if local is None:
            return _UNREADABLE
        return int((_placed_later(local, zone) - _EPOCH) / _SECOND)

    return strict(seconds)


def _placed_later(local: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    """The instant of a local time. Of one that the clock shows twice it is the later, as for Java's
    SimpleDateFormat; CAST has the earlier."""
    later = local.replace(tzinfo=zone, fold=1)
    is_shown = later.astimezone(_UTC).astimezone(zone).replace(tzinfo=None) == local
    return later if is_shown else placed(local, zone)


def _convert_tz(text: str, source: str, target: str) -> str | None:
    """The text of the same moment elsewhere. A zone that is not known is UTC, as in Java."""
    local = read_leniently(text, PLAIN_MOMENT)
    if local is None:
        return None
    moment = _placed_later(local, _zone_or_none(source) or _UTC)
    return written(moment.astimezone(_zone_or_none(target) or _UTC), PLAIN_MOMENT)


MOMENT_TEXT_MEANINGS: dict[str, MeaningOf] = {
    "DATE_FORMAT": _date_format,
    "TO_DATE": strictly(_to_date),
    "TO_TIMESTAMP": strictly(_to_timestamp),
    "TO_TIMESTAMP_LTZ": _to_timestamp_ltz,
    "FROM_UNIXTIME": _from_unixtime,
    "UNIX_TIMESTAMP": _unix_timestamp,
    "CONVERT_TZ": strictly(_convert_tz),
}
