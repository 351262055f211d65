"""EXTRACT, and the functions of one part of a date or a time. A moment is taken in the zone of the
session."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from flinkpy.columns.row_functions.moment_functions import PARTS, zone_of
from flinkpy.columns.sql.call_site import CallSite, Meaning, MeaningOf
from flinkpy.columns.sql.sql_meanings.null_rules import strict
from flinkpy.common.logical_types.logical_type import (
    DateType,
    DayTimeIntervalType,
    LocalZonedTimestampType,
    YearMonthIntervalType,
)
from flinkpy.core.errors import ProgramError

_EPOCH = datetime.datetime(1970, 1, 1)
_SECOND = datetime.timedelta(seconds=1)

# The functions that give one part, and its unit
UNITS = {
    "YEAR": "YEAR",
    "QUARTER": "QUARTER",
    "MONTH": "MONTH",
    "WEEK": "WEEK",
    "DAYOFYEAR": "DOY",
    "DAYOFMONTH": "DAY",
    "DAYOFWEEK": "DOW",
    "HOUR": "HOUR",
    "MINUTE": "MINUTE",
    "SECOND": "SECOND",
}

_OF_MOMENTS: dict[str, Callable[[Any], int]] = {
    **{unit.upper(): part for unit, part in PARTS.items()},
    "DOW": lambda moment: moment.isoweekday() % 7 + 1,
    "NANOSECOND": lambda moment: moment.microsecond * 1000,
    "EPOCH": lambda moment: (moment - _EPOCH) // _SECOND,
    "DECADE": lambda moment: moment.year // 10,
    "CENTURY": lambda moment: (moment.year + 99) // 100,
    "MILLENNIUM": lambda moment: (moment.year + 999) // 1000,
}
_OF_MILLISECONDS: dict[str, tuple[int, int]] = {  # so many milliseconds, and how many of them
    "DAY": (86_400_000, 1 << 62),
    "HOUR": (3_600_000, 24),
    "MINUTE": (60_000, 60),
    "SECOND": (1000, 60),
    "MILLISECOND": (1, 1000),
}


def part_of(site: CallSite, unit: str) -> Meaning:
    """The part of the argument that a unit names. Raises ProgramError if its type has none."""
    kind = site.arguments[0]
    if isinstance(kind, YearMonthIntervalType):
        return strict(_part_of_months(unit))
    if isinstance(kind, DayTimeIntervalType):
        return strict(_part_of_milliseconds(unit))
    part = _OF_MOMENTS.get(unit)
    if part is None:
        raise ProgramError(f"a {kind.text()} has no {unit}")
    found = part
    if isinstance(kind, LocalZonedTimestampType):
        zone = zone_of(site.zone)
        return strict(lambda moment: found(moment.astimezone(zone).replace(tzinfo=None)))
    if isinstance(kind, DateType):
        midnight = datetime.time()
        return strict(lambda day: found(datetime.datetime.combine(day, midnight)))
    return strict(found)


def _part_of_months(unit: str) -> Callable[[int], int]:
    if unit not in ("YEAR", "QUARTER", "MONTH"):
        raise ProgramError(f"an interval of months has no {unit}")

    def part(months: int) -> int:
        size = {"YEAR": abs(months) // 12, "QUARTER": abs(months) % 12 // 3}.get(
            unit, abs(months) % 12
        )
        found = -size if months < 0 else size
        return found + 1 if unit == "QUARTER" else found

    return part


def _part_of_milliseconds(unit: str) -> Callable[[int], int]:
    if unit not in _OF_MILLISECONDS:
        raise ProgramError(f"an interval of days and seconds has no {unit}")
    length, count = _OF_MILLISECONDS[unit]

    def part(millis: int) -> int:
        size = abs(millis) // length % count
        return -size if millis < 0 else size

    return part


def extract(site: CallSite) -> Meaning:
    """``EXTRACT(unit FROM time)``."""
    return part_of(site, str(site.options["unit"]))


def _function_of(unit: str) -> MeaningOf:
    return lambda site: part_of(site, unit)


CALENDAR_PART_MEANINGS: dict[str, MeaningOf] = {
    "EXTRACT": extract,
    **{name: _function_of(unit) for name, unit in UNITS.items()},
}
