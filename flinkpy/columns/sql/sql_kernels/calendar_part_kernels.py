"""EXTRACT, and the functions of one part of a date or a time, over whole columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.call_site import CallSite, Kernel, KernelOf
from flinkpy.columns.sql.sql_kernels.cast_kernels import local_moments
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_kernels.logic_kernels import column_of
from flinkpy.columns.sql.sql_meanings.calendar_part_meanings import UNITS
from flinkpy.common.logical_types.logical_type import (
    DateType,
    LocalZonedTimestampType,
    TimestampType,
)

_PARTS: dict[str, Callable[[Any], Any]] = {
    "YEAR": pc.year,
    "QUARTER": pc.quarter,
    "MONTH": pc.month,
    "WEEK": pc.iso_week,
    "ISOYEAR": pc.iso_year,
    "DAY": pc.day,
    "DOY": pc.day_of_year,
    "DOW": lambda moments: pc.day_of_week(moments, count_from_zero=False, week_start=7),
    "ISODOW": lambda moments: pc.day_of_week(moments, count_from_zero=False, week_start=1),
    "HOUR": pc.hour,
    "MINUTE": pc.minute,
    "SECOND": pc.second,
    "MILLISECOND": pc.millisecond,
}


def _part(name: str, unit: str | None) -> KernelOf:
    def choose(site: CallSite) -> Kernel:
        wanted = str(site.options["unit"]) if unit is None else unit
        part = _PARTS.get(wanted)
        kind = site.arguments[0]
        if part is None or not isinstance(kind, (DateType, TimestampType, LocalZonedTimestampType)):
            return by_value(name)(site)
        get = part

        def kernel(rows: int, moments: Any) -> Any:
            moments = column_of(moments, rows)
            if isinstance(kind, DateType):
                moments = moments.cast(pa.timestamp("s"))
            elif isinstance(kind, LocalZonedTimestampType):
                moments = local_moments(moments, site.zone)
            return get(moments).cast(pa.int64())

        return kernel

    return choose


CALENDAR_PART_KERNELS: dict[str, KernelOf] = {
    "EXTRACT": _part("EXTRACT", None),
    **{name: _part(name, unit) for name, unit in UNITS.items()},
}
