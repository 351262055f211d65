"""Functions of times and a unit: FLOOR and CEIL, TIMESTAMPADD, TIMESTAMPDIFF; and OVERLAPS."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from flinkpy.columns.row_functions.moment_functions import zone_of
from flinkpy.columns.sql.call_site import CallSite, Meaning, MeaningOf
from flinkpy.columns.sql.sql_meanings.moments.temporal_arithmetic import later, months_later
from flinkpy.columns.sql.sql_meanings.null_rules import strict
from flinkpy.columns.sql.sql_meanings.number_rules import wrapped
from flinkpy.common.logical_types.logical_type import (
    DateType,
    LocalZonedTimestampType,
    TimeType,
    TypeFamily,
    YearMonthIntervalType,
)
from flinkpy.core.errors import ProgramError

_MIDNIGHT = datetime.time()
_FIRST_DAY = datetime.date(1970, 1, 1)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_MILLIS = {
    "WEEK": 7 * 86_400_000,
    "DAY": 86_400_000,
    "HOUR": 3_600_000,
    "MINUTE": 60_000,
    "SECOND": 1000,
    "MILLISECOND": 1,
}
_MONTHS = {
    "MILLENNIUM": 12_000,
    "CENTURY": 1200,
    "DECADE": 120,
    "YEAR": 12,
    "QUARTER": 3,
    "MONTH": 1,
}
_FROM_YEAR_1 = frozenset({"MILLENNIUM", "CENTURY"})  # they begin with the years 1, 101, 1001


def _unit(site: CallSite, name: str) -> str:
    unit = str(site.options["unit"])
    if unit not in _MILLIS and unit not in _MONTHS:
        known = ", ".join([*_MONTHS, *_MILLIS])
        raise ProgramError(f"{name} does not take the unit {unit}; there are {known}")
    return unit


# -- FLOOR and CEIL --------------------------------------------------------------------------------


def rounded_to_unit(site: CallSite, upwards: bool) -> Meaning:
    """The start of the unit that a time is in, or of the next one. A week begins on Sunday."""
    name = "CEIL" if upwards else "FLOOR"
    unit = _unit(site, name)
    kind = site.arguments[0]

    def rounded(local: datetime.datetime) -> datetime.datetime:
        start = _start(local, unit)
        if not upwards or start == local:
            return start
        if unit in _MONTHS:
            following: datetime.datetime = months_later(start, _MONTHS[unit])
            return following
        return start + _MILLIS[unit] * _MILLISECOND

    if isinstance(kind, TimeType):
        if unit in _MONTHS or unit in ("WEEK", "DAY"):
            raise ProgramError(f"{name} of a {kind.text()} takes HOUR or less, not {unit}")
        return strict(lambda time: rounded(datetime.datetime.combine(_FIRST_DAY, time)).time())
    if isinstance(kind, DateType):
        return strict(lambda day: rounded(datetime.datetime.combine(day, _MIDNIGHT)).date())
    if isinstance(kind, LocalZonedTimestampType):
        zone = zone_of(site.zone)

        def rounded_there(moment: datetime.datetime) -> datetime.datetime:
            local = moment.astimezone(zone).replace(tzinfo=None)
            return moment + (rounded(local) - local)

        return strict(rounded_there)
    return strict(rounded)


def _start(local: datetime.datetime, unit: str) -> datetime.datetime:
    day = local.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "WEEK":
        return day - datetime.timedelta(days=day.isoweekday() % 7)
    if unit in _MONTHS:
        first = 12 if unit in _FROM_YEAR_1 else 0
        months = day.year * 12 + day.month - 1 - first
        year, month = divmod(months // _MONTHS[unit] * _MONTHS[unit] + first, 12)
        return day.replace(year=year, month=month + 1, day=1)
    return local - (local - day) % (_MILLIS[unit] * _MILLISECOND)


# -- adding and subtracting ------------------------------------------------------------------------


def _timestampadd(site: CallSite) -> Meaning:
    unit = _unit(site, "TIMESTAMPADD")
    if unit in _MONTHS:
        return strict(lambda amount, time: months_later(time, amount * _MONTHS[unit]))
    move = later(site.result)
    return strict(lambda amount, time: move(time, amount * _MILLIS[unit]))


def _timestampdiff(site: CallSite) -> Meaning:
    """Whole units from the first time to the second."""
    unit = _unit(site, "TIMESTAMPDIFF")

    def difference(start: Any, end: Any) -> int:
        start, end = _naive(start), _naive(end)
        if unit in _MONTHS:
            return _cut(_months_between(start, end), _MONTHS[unit])
        millis = (end - _EPOCH) // _MILLISECOND - (start - _EPOCH) // _MILLISECOND
        return wrapped(_cut(millis, _MILLIS[unit]), 32)

    return strict(difference)


_EPOCH = datetime.datetime(1970, 1, 1)


def _naive(value: Any) -> datetime.datetime:
    """A date or a time of the day as a moment; an instant in UTC."""
    if isinstance(value, datetime.datetime):
        return value if value.tzinfo is None else _in_utc(value)
    if isinstance(value, datetime.time):
        return datetime.datetime.combine(_FIRST_DAY, value)
    return datetime.datetime.combine(value, _MIDNIGHT)


def _in_utc(moment: datetime.datetime) -> datetime.datetime:
    return moment.astimezone(datetime.timezone.utc).replace(tzinfo=None)


def _cut(number: int, unit: int) -> int:
    return number // unit if number >= 0 else -(-number // unit)


def _months_between(start: datetime.datetime, end: datetime.datetime) -> int:
    """Days decide, and times of the day only between equal days."""
    first, last = start.date(), end.date()
    months = _months_of_days(first, last) if first <= last else -_months_of_days(last, first)
    if months_later(first, months) == last and end.time() < start.time():
        months -= 1
    return months


def _months_of_days(first: datetime.date, last: datetime.date) -> int:
    months = (last.year - first.year) * 12 + last.month - first.month
    return months if months == 0 or months_later(first, months) <= last else months - 1


# -- OVERLAPS --------------------------------------------------------------------------------------


def _overlaps(site: CallSite) -> Meaning:
    """Whether two spans have a moment in common, their ends among them."""
    first, second = _end_of(site, 1), _end_of(site, 3)

    def overlap(start: Any, end: Any, other: Any, other_end: Any) -> bool:
        one = sorted((_naive(start), _naive(first(start, end))))
        two = sorted((_naive(other), _naive(second(other, other_end))))
        return one[0] <= two[1] and two[0] <= one[1]

    return strict(overlap)


def _end_of(site: CallSite, at: int) -> Callable[[Any, Any], Any]:
    kind = site.arguments[at]
    if not kind.is_a(TypeFamily.INTERVAL):
        return lambda start, end: end
    if isinstance(kind, YearMonthIntervalType):
        return months_later
    return later(site.arguments[at - 1])


MOMENT_UNIT_MEANINGS: dict[str, MeaningOf] = {
    "TIMESTAMPADD": _timestampadd,
    "TIMESTAMPDIFF": _timestampdiff,
    "OVERLAPS": _overlaps,
}
