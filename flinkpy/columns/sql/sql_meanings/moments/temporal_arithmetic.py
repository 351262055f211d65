"""Arithmetic of dates, times and intervals."""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Callable
from decimal import ROUND_DOWN, Decimal
from typing import Any

from flinkpy.columns.sql.call_site import CallSite, Meaning
from flinkpy.columns.sql.sql_meanings.null_rules import strict
from flinkpy.columns.sql.sql_meanings.number_rules import DIVISION_BY_ZERO, wrapped
from flinkpy.common.logical_types.logical_type import (
    DateType,
    LocalZonedTimestampType,
    TimestampType,
    TimeType,
    TypeFamily,
    YearMonthIntervalType,
)

_MILLISECOND = datetime.timedelta(milliseconds=1)
_DAY_MILLIS = 86_400_000


def temporal_arithmetic(sign: str, site: CallSite) -> Meaning:
    """The meaning of an operation whose result is a time or an interval."""
    if is_between_times(sign, site):
        return strict(lambda until, since: (until - since) // _MILLISECOND)
    if site.result.is_a(TypeFamily.INTERVAL):
        return strict(_of_intervals(sign, 32 if _counts_months(site.result) else 64))
    at = next(
        (at for at, each in enumerate(site.arguments) if each.is_a(TypeFamily.INTERVAL)), None
    )
    if at is None or sign not in ("+", "-"):
        kinds = " and ".join(each.text() for each in site.arguments)
        raise TypeError(f"{sign} does not take {kinds}")
    move = months_later if _counts_months(site.arguments[at]) else later(site.result)
    factor = 1 if sign == "+" else -1
    if at == 0:
        return strict(lambda interval, moment: move(moment, factor * interval))
    return strict(lambda moment, interval: move(moment, factor * interval))


def is_between_times(sign: str, site: CallSite) -> bool:
    """Whether two timestamps of whole milliseconds give the interval between them."""
    moments = (TimestampType, LocalZonedTimestampType)
    return sign == "-" and all(isinstance(each, moments) for each in site.arguments)


def _counts_months(kind: Any) -> bool:
    return isinstance(kind, YearMonthIntervalType)


def _of_intervals(sign: str, bits: int) -> Callable[..., int]:
    def multiplied(left: Any, right: Any) -> int:
        return wrapped(int(left * right), bits)

    def divided(interval: int, number: Any) -> int:
        if not number:
            raise ZeroDivisionError(DIVISION_BY_ZERO)
        found = Decimal(interval) / Decimal(number)
        return wrapped(int(found.to_integral_value(ROUND_DOWN)), bits)

    operations: dict[str, Callable[..., int]] = {
        "+": lambda left, right: wrapped(left + right, bits),
        "-": lambda left, right: wrapped(left - right, bits),
        "*": multiplied,
        "/": divided,
        "negate": lambda value: wrapped(-value, bits),
        "identity": lambda value: value,
        "abs": lambda value: wrapped(abs(value), bits),
    }
    return operations[sign]


def later(kind: Any) -> Callable[[Any, int], Any]:
    """Moves a time by milliseconds to what the type has."""
    if isinstance(kind, TimeType):
        return _time_later
    return _date_later if isinstance(kind, DateType) else _moment_later


def _moment_later(moment: Any, millis: int) -> Any:
    if not isinstance(moment, datetime.datetime):  # a date, where the result has a time
        moment = datetime.datetime.combine(moment, datetime.time())
    return moment + millis * _MILLISECOND


def _date_later(day: datetime.date, millis: int) -> datetime.date:
    return day + datetime.timedelta(days=millis // _DAY_MILLIS)


def _time_later(time: datetime.time, millis: int) -> datetime.time:
    start = datetime.datetime.combine(datetime.date(2000, 1, 1), time)
    return (start + (millis % _DAY_MILLIS) * _MILLISECOND).time()


def months_later(day: Any, months: int) -> Any:
    """The same day of a later month, or its last day if it has fewer; as in Flink, the time of a
    day stays."""
    if isinstance(day, datetime.time):
        return day
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return day.replace(year=year, month=month + 1, day=min(day.day, last))
