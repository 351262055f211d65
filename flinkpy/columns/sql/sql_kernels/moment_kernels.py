"""Functions of times over whole columns: by value, but for FLOOR, and for the time that it is now,
which all rows of a batch have in common."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.arrays_of_values import scalar_of_value
from flinkpy.columns.sql.arrow_of_logical import arrow_of
from flinkpy.columns.sql.call_site import CallSite, Kernel, KernelOf
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_kernels.logic_kernels import column_of
from flinkpy.columns.sql.sql_meanings.moments.current_meanings import CURRENT_MEANINGS
from flinkpy.columns.sql.sql_meanings.moments.moment_text_meanings import MOMENT_TEXT_MEANINGS
from flinkpy.columns.sql.sql_meanings.moments.moment_unit_meanings import MOMENT_UNIT_MEANINGS
from flinkpy.columns.time_formats import fields_of
from flinkpy.common.logical_types.logical_type import DateType, TimestampType
from flinkpy.core.errors import ProgramError

_FLOORED_BY_ARROW = frozenset({"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"})

_SMALLEST_UNITS = (
    ("fraction", "fraction"),
    ("second", "second"),
    ("minute", "minute"),
    ("hour", "hour"),
    ("hour12", "hour"),
    ("half", "hour"),
)


def _once_per_batch(name: str) -> KernelOf:
    def choose(site: CallSite) -> Kernel:
        meaning = CURRENT_MEANINGS[name](site)

        def kernel(rows: int) -> Any:
            return pa.repeat(scalar_of_value(meaning(), site.result), rows)

        return kernel

    return choose


def _date_format(site: CallSite) -> Kernel:
    """A constant format shows no more than its smallest unit: each of these is written once."""
    write, pattern = by_value("DATE_FORMAT")(site), site.constant(1)
    if not isinstance(site.arguments[0], TimestampType) or not isinstance(pattern, str):
        return write
    try:
        parts = {field.part for field in fields_of(pattern)}
    except ProgramError:
        return write  # which says so if there is a row
    unit = next((unit for part, unit in _SMALLEST_UNITS if part in parts), "day")
    if unit == "fraction":
        return write

    def kernel(rows: int, times: Any, format: Any) -> Any:
        units = pc.floor_temporal(column_of(times, rows), unit=unit).dictionary_encode()
        texts = write(len(units.dictionary), units.dictionary, format)
        return texts.take(units.indices)

    return kernel


def to_unit(name: str) -> KernelOf:
    """``FLOOR(time TO unit)`` in Arrow; by value what may leave the calendar: CEIL, and weeks."""

    def choose(site: CallSite) -> Kernel:
        [kind] = site.arguments
        unit = str(site.options["unit"])
        is_plain = isinstance(kind, (DateType, TimestampType)) and unit in _FLOORED_BY_ARROW
        if name != "FLOOR" or not is_plain:
            return by_value(name)(site)
        target = arrow_of(site.result)

        def kernel(rows: int, times: Any) -> Any:
            times = column_of(times, rows)
            if isinstance(kind, DateType):
                times = times.cast(pa.timestamp("s"))
            return pc.floor_temporal(times, unit=unit.lower()).cast(target)

        return kernel

    return choose


MOMENT_KERNELS: dict[str, KernelOf] = {
    **{name: by_value(name) for name in (*MOMENT_TEXT_MEANINGS, *MOMENT_UNIT_MEANINGS)},
    **{name: _once_per_batch(name) for name in CURRENT_MEANINGS},
    "DATE_FORMAT": _date_format,
}
