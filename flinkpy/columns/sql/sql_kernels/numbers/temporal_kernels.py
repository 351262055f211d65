"""Arithmetic of dates, times and intervals over whole columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.arrow_of_logical import arrow_of
from flinkpy.columns.sql.call_site import CallSite, Kernel
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_kernels.logic_kernels import column_of
from flinkpy.columns.sql.sql_meanings.moments.temporal_arithmetic import is_between_times
from flinkpy.common.logical_types.logical_type import (
    DateType,
    DayTimeIntervalType,
    IntegerType,
    LocalZonedTimestampType,
    TimestampType,
    YearMonthIntervalType,
)

INT = pa.int64()
_DAY = 86_400_000  # milliseconds
_EXACT = frozenset({"+", "-", "negate", "abs", "identity"})


def temporal_kernel(name: str, sign: str, site: CallSite) -> Kernel:
    """The kernel of an operation whose result is a time or an interval."""
    if is_between_times(sign, site):
        return lambda rows, until, since: column_of(pc.subtract(until, since), rows)
    kinds = set(map(type, site.arguments))
    is_of_days = kinds == {DateType, DayTimeIntervalType} and isinstance(site.result, DateType)
    if sign in ("+", "-") and is_of_days:
        return _moving_days(sign)
    if sign in ("+", "-") and _moves_a_moment(site):
        return _moving(sign, arrow_of(site.result))
    is_interval = isinstance(site.result, (DayTimeIntervalType, YearMonthIntervalType))
    if is_interval and (sign in _EXACT or _multiplies_whole(sign, site)):
        return _of_intervals(sign, site)
    return by_value(name)(site)


def _moves_a_moment(site: CallSite) -> bool:
    kinds = set(map(type, site.arguments))
    return isinstance(site.result, (TimestampType, LocalZonedTimestampType)) and kinds == {
        type(site.result),
        DayTimeIntervalType,
    }


def _moving(sign: str, kind: pa.DataType) -> Kernel:
    operate = pc.add if sign == "+" else pc.subtract

    def kernel(rows: int, left: Any, right: Any) -> Any:
        if pa.types.is_duration(left.type):
            left, right = right, left
        moved = operate(left.cast(kind, safe=False), right.cast(pa.duration(kind.unit)))
        return column_of(moved, rows)

    return kernel


def _moving_days(sign: str) -> Kernel:
    """Dates by whole days; a part of a day counts as the day before."""

    def kernel(rows: int, left: Any, right: Any) -> Any:
        if pa.types.is_duration(left.type):
            left, right = right, left
        millis = column_of(right.cast(INT), rows)
        millis = millis if sign == "+" else pc.negate(millis)
        below = pc.if_else(pc.less(millis, 0), _DAY - 1, 0)
        days = pc.divide(pc.subtract(millis, below), _DAY)
        moved = pc.add(column_of(left, rows).cast(pa.int32()).cast(INT), days)
        return moved.cast(pa.int32()).cast(pa.date32())

    return kernel


def _multiplies_whole(sign: str, site: CallSite) -> bool:
    whole = (IntegerType, DayTimeIntervalType, YearMonthIntervalType)
    return sign == "*" and all(isinstance(each, whole) for each in site.arguments)


def _of_intervals(sign: str, site: CallSite) -> Kernel:
    kind = arrow_of(site.result)
    counted_in = pa.int32() if pa.types.is_int32(kind) else INT
    operate = {
        "+": pc.add,
        "-": pc.subtract,
        "*": pc.multiply,
        "negate": pc.negate,
        "abs": pc.abs,
        "identity": lambda value: value,
    }[sign]

    def kernel(rows: int, *operands: Any) -> Any:
        counted = [each.cast(INT).cast(counted_in, safe=False) for each in operands]
        return column_of(operate(*counted).cast(kind), rows)

    return kernel
