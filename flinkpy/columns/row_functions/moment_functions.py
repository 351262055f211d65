"""Dates and times: what their functions mean for one row."""

from __future__ import annotations

import calendar
import datetime
import re
import zoneinfo
from collections.abc import Callable
from typing import Any

from flinkpy.columns.time_formats import Field, fields_of, number_of, pieces_of, reading
from flinkpy.columns.units import MICROSECONDS, MONTHS, WHOLE_DAYS

_DAY, _MICROSECOND = datetime.timedelta(days=1), datetime.timedelta(microseconds=1)

PARTS: dict[str, Callable[[Any], int]] = {
    "year": lambda moment: moment.year,
    "quarter": lambda moment: (moment.month + 2) // 3,
    "month": lambda moment: moment.month,
    "week": lambda moment: moment.isocalendar()[1],
    "isoyear": lambda moment: moment.isocalendar()[0],
    "day": lambda moment: moment.day,
    "doy": lambda moment: moment.timetuple().tm_yday,
    "isodow": lambda moment: moment.isoweekday(),
    "hour": lambda moment: moment.hour,
    "minute": lambda moment: moment.minute,
    "second": lambda moment: moment.second,
    "millisecond": lambda moment: moment.microsecond // 1000,
    "microsecond": lambda moment: moment.microsecond,
}


def extract(moment: Any, unit: str) -> int:
    return PARTS[unit](moment)


# -- zones -----------------------------------------------------------------------------------------


def zone_of(name: str) -> datetime.tzinfo:
    return zoneinfo.ZoneInfo(name)


def placed(local: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    """The instant of a local time. One that the clock shows twice is the earlier; one that it skips
    is as much later as the clock is put forward."""
    return local.replace(tzinfo=zone, fold=0).astimezone(datetime.timezone.utc).astimezone(zone)


def convert_time_zone(moment: datetime.datetime, zone: str) -> datetime.datetime:
    if moment.tzinfo is None:
        raise TypeError("a timestamp without a zone is no instant")
    return moment.astimezone(zone_of(zone))


def replace_time_zone(moment: datetime.datetime, zone: str | None) -> datetime.datetime:
    local = moment.replace(tzinfo=None)
    return local if zone is None else placed(local, zone_of(zone))


def _in_local_time(change: Callable[..., Any]) -> Callable[..., Any]:
    """A change of local times, for moments with and without a zone."""

    def changed(moment: Any, *arguments: Any, **options: Any) -> Any:
        zone = getattr(moment, "tzinfo", None)
        if zone is None or not isinstance(moment, datetime.datetime):
            return change(moment, *arguments, **options)
        return placed(change(moment.replace(tzinfo=None), *arguments, **options), zone)

    return changed


# -- truncation ------------------------------------------------------------------------------------


def _floored(moment: Any, unit: str) -> Any:
    if isinstance(moment, datetime.time):
        return moment.replace(
            microsecond=0,
            second=moment.second if unit == "second" else 0,
            minute=0 if unit == "hour" else moment.minute,
        )
    if unit not in WHOLE_DAYS:
        return moment.replace(
            microsecond=0,
            second=moment.second if unit == "second" else 0,
            minute=0 if unit == "hour" else moment.minute,
        )
    day = (
        moment.replace(hour=0, minute=0, second=0, microsecond=0)
        if isinstance(moment, datetime.datetime)
        else moment
    )
    if unit == "week":
        return day - day.weekday() * _DAY
    month = {"year": 1, "quarter": (day.month - 1) // 3 * 3 + 1}.get(unit, day.month)
    return day if unit == "day" else day.replace(day=1, month=month)


def floor_to(moment: Any, unit: str) -> Any:
    """An hour and less is taken off the instant; a day and more is taken off the local time."""
    if getattr(moment, "tzinfo", None) is None or unit in WHOLE_DAYS:
        return _in_local_time(_floored)(moment, unit=unit)
    local = moment.replace(tzinfo=None)
    return (moment.astimezone(datetime.timezone.utc) - (local - _floored(local, unit))).astimezone(
        moment.tzinfo
    )


def _ceiled(moment: Any, unit: str) -> Any:
    floor = _floored(moment, unit)
    if floor == moment:
        return moment
    if isinstance(moment, datetime.time):
        whole = (
            datetime.datetime.combine(datetime.date(1970, 1, 1), floor)
            + MICROSECONDS[unit] * _MICROSECOND
        )
        if whole.day > 1:
            raise OverflowError("the next whole unit is on the next day")
        return whole.time()
    return (
        add_months(floor, MONTHS[unit])
        if unit in MONTHS
        else floor + MICROSECONDS[unit] * _MICROSECOND
    )


def ceil_to(moment: Any, unit: str) -> Any:
    if getattr(moment, "tzinfo", None) is None or unit in WHOLE_DAYS:
        return _in_local_time(_ceiled)(moment, unit=unit)
    local = moment.replace(tzinfo=None)
    return (moment.astimezone(datetime.timezone.utc) + (_ceiled(local, unit) - local)).astimezone(
        moment.tzinfo
    )


# -- intervals -------------------------------------------------------------------------------------


def plus(left: Any, right: Any) -> Any:
    """A sum. What has a zone is an instant: Python itself would move what the clock shows."""
    if isinstance(right, datetime.datetime):
        left, right = right, left
    return (
        left + right if _zone(left) is None else (_universal(left) + right).astimezone(left.tzinfo)
    )


def minus(left: Any, right: Any) -> Any:
    """A difference, between instants where there are zones."""
    if isinstance(left, datetime.datetime) and isinstance(right, datetime.datetime):
        return _universal(left) - _universal(right)
    return (
        left - right if _zone(left) is None else (_universal(left) - right).astimezone(left.tzinfo)
    )


def _zone(value: Any) -> Any:
    return value.tzinfo if isinstance(value, datetime.datetime) else None


def _universal(moment: datetime.datetime) -> datetime.datetime:
    return moment if moment.tzinfo is None else moment.astimezone(datetime.timezone.utc)


def interval(number: int, unit: str) -> datetime.timedelta:
    return datetime.timedelta(microseconds=number * MICROSECONDS[unit])


def months_alone(number: int, unit: str) -> Any:
    raise TypeError(f"{unit}s are added to or subtracted from a date or a timestamp")


def _month_later(moment: Any, months: int) -> Any:
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return moment.replace(
        year=year, month=month + 1, day=min(moment.day, calendar.monthrange(year, month + 1)[1])
    )


def add_months(moment: Any, number: int, months: int = 1) -> Any:
    """So many months later, on the same day of the month, or on its last day if it has no such
    day."""
    return _in_local_time(_month_later)(moment, number * months)


def timestamp_diff(start: Any, end: Any, unit: str) -> int:
    """The number of whole units between two moments; negative if the second is the earlier one."""
    start, end = _moment(start), _moment(end)
    if unit in MICROSECONDS:
        elapsed: int = minus(end, start) // _MICROSECOND
        return elapsed // MICROSECONDS[unit] if elapsed >= 0 else -(-elapsed // MICROSECONDS[unit])
    start, end = start.replace(tzinfo=None), end.replace(tzinfo=None)
    return (
        _months_between(start, end) // MONTHS[unit]
        if end >= start
        else -(_months_between(end, start) // MONTHS[unit])
    )


def _months_between(start: datetime.datetime, end: datetime.datetime) -> int:
    months = (end.year - start.year) * 12 + end.month - start.month
    return months - bool(_month_later(start, months) > end)


def _moment(value: Any) -> datetime.datetime:
    return (
        value
        if isinstance(value, datetime.datetime)
        else datetime.datetime(value.year, value.month, value.day)
    )


# -- text ------------------------------------------------------------------------------------------


def read_moment(text: str, format: str, to: str) -> Any:
    """The date or timestamp that the text shows; None if it does not have the format, or there is
    no such day or time."""
    found = re.fullmatch(reading(format), text, re.ASCII)
    if found is None:
        return None
    parts = {field.part: number_of(field)(found[field.part].lower()) for field in fields_of(format)}
    hour = parts.get("hour", 0)
    if "hour12" in parts:
        if not 1 <= parts["hour12"] <= 12:
            return None
        hour = parts["hour12"] % 12 + 12 * parts["half"]
    try:
        moment = datetime.datetime(
            parts["year"],
            parts["month"],
            parts["day"],
            hour,
            parts.get("minute", 0),
            parts.get("second", 0),
            parts.get("fraction", 0),
        )
    except ValueError:
        return None
    return moment.date() if to == "date" else moment


_WRITTEN: dict[str, Callable[[Any], int]] = {
    **PARTS,
    "hour12": lambda moment: (moment.hour + 11) % 12 + 1,
    "half": lambda moment: moment.hour // 12,
    "weekday": lambda moment: moment.isoweekday(),
}


def date_format(moment: Any, format: str) -> str:
    return "".join(
        piece if isinstance(piece, str) else _shown(_moment(moment), piece)
        for piece in pieces_of(format)
    )


def _shown(moment: datetime.datetime, field: Field) -> str:
    if field.part == "fraction":
        return f"{moment.microsecond:06}".ljust(9, "0")[: field.width]
    number = _WRITTEN[field.part](moment)
    if field.century is not None:
        number %= 100
    return field.names[number - field.lowest] if field.names else str(number).zfill(field.width)


STRICT: dict[str, Callable[..., Any]] = {
    "extract": extract,
    "floor_to": floor_to,
    "ceil_to": ceil_to,
    "interval": interval,
    "months": months_alone,
    "add_months": add_months,
    "timestamp_diff": timestamp_diff,
    "read_moment": read_moment,
    "date_format": date_format,
    "convert_time_zone": convert_time_zone,
    "replace_time_zone": replace_time_zone,
}
