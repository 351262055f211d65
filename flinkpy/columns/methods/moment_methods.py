"""The methods of expressions for dates, times and intervals."""

from __future__ import annotations

import zoneinfo
from typing import Any

from flinkpy.columns.methods.expression_base import E, ExpressionBase
from flinkpy.columns.units import (
    PARTS_OF_DAYS,
    PARTS_OF_TIMES,
    TRUNCATED_TO,
    TimeIntervalUnit,
    unit_name,
)
from flinkpy.core.errors import ProgramError


class MomentMethods(ExpressionBase[E]):
    """Methods of dates and times. A timestamp with a zone is read in its local time."""

    __slots__ = ()

    def extract(self, time_interval_unit: TimeIntervalUnit | str) -> E:
        """A part of a date or time as a number: ``"year"``, ``"quarter"``, ``"month"``, ``"week"``
        (of ISO 8601, with ``"isoyear"``), ``"day"``, ``"doy"`` (of the year), ``"isodow"`` (of the
        week: Monday is 1), ``"hour"``, ``"minute"``, ``"second"``, ``"millisecond"`` or
        ``"microsecond"`` (of the second).

        >>> from flinkpy.table.expressions import col
        >>> col("at").extract(TimeIntervalUnit.HOUR)
        col('at').extract('hour')
        """
        return self._call(
            "extract",
            unit=unit_name(time_interval_unit, (*PARTS_OF_DAYS, *PARTS_OF_TIMES), "extract()"),
        )

    def floor(self, time_interval_unit: TimeIntervalUnit | str | None = None) -> E:
        """The greatest whole number that is not greater; with a unit, the beginning of the date's
        or time's ``"year"``, ``"quarter"``, ``"month"``, ``"week"`` (a Monday), ``"day"``,
        ``"hour"``, ``"minute"`` or ``"second"``."""
        if time_interval_unit is None:
            return self._call("floor")
        return self._call("floor_to", unit=unit_name(time_interval_unit, TRUNCATED_TO, "floor()"))

    def ceil(self, time_interval_unit: TimeIntervalUnit | str | None = None) -> E:
        """The smallest whole number that is not smaller; with a unit, the beginning of the next
        one, or the date or time itself if it is a beginning."""
        if time_interval_unit is None:
            return self._call("ceil")
        return self._call("ceil_to", unit=unit_name(time_interval_unit, TRUNCATED_TO, "ceil()"))

    def convert_time_zone(self, zone: str) -> E:
        """The same instant, shown in another zone."""
        return self._call("convert_time_zone", zone=_zone(zone, "convert_time_zone()"))

    def replace_time_zone(self, zone: str | None) -> E:
        """The same local time in this zone, or without a zone (None). A time that the clock shows
        twice is the earlier one; one that the clock skips is as much later as the clock is put
        forward."""
        return self._call(
            "replace_time_zone", zone=None if zone is None else _zone(zone, "replace_time_zone()")
        )


class IntervalMethods(ExpressionBase[E]):
    """An interval of so many units, to be added to or subtracted from a date or timestamp. Months,
    quarters and years keep the day of the month, or take the last day of a month that is
    shorter."""

    __slots__ = ()

    @property
    def year(self) -> E:
        return self._call("months", unit="year")

    @property
    def quarter(self) -> E:
        return self._call("months", unit="quarter")

    @property
    def month(self) -> E:
        return self._call("months", unit="month")

    @property
    def week(self) -> E:
        return self._call("interval", unit="week")

    @property
    def day(self) -> E:
        return self._call("interval", unit="day")

    @property
    def hour(self) -> E:
        return self._call("interval", unit="hour")

    @property
    def minute(self) -> E:
        return self._call("interval", unit="minute")

    @property
    def second(self) -> E:
        return self._call("interval", unit="second")

    @property
    def milli(self) -> E:
        return self._call("interval", unit="millisecond")

    years, quarters, months, weeks, days, hours = year, quarter, month, week, day, hour
    minutes, seconds, millis = minute, second, milli


def _zone(zone: Any, where: str) -> str:
    try:
        zoneinfo.ZoneInfo(zone)
    except (TypeError, ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise ProgramError(
            f"{where} takes the name of a zone such as 'Europe/Oslo', this is {zone!r:.80}"
        ) from None
    return str(zone)
