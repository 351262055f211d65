"""Calendar arithmetic on numpy arrays: days and months since 1970, and the days of months."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
DAY_US = 86_400_000_000
# of the years from 1 to 9999, which Python has
_FIRST_MONTH = (1 - 1970) * 12
_LAST_MONTH = (10_000 - 1970) * 12 - 1


def first_days(months: Ints) -> Ints:
    """The first day of each month."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def lengths(months: Ints) -> Ints:
    """The number of days of each month."""
    return first_days(months + 1) - first_days(months)


def months_and_days(days: Ints) -> tuple[Ints, Ints]:
    """The month of each day, and the day of the month counted from 0."""
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months, days - first_days(months)


def later(days: Ints, added: Any) -> Ints:
    """The same day of the month so many months later, or its last day. Raises OverflowError beyond
    the years 1 to 9999."""
    months, at = months_and_days(days)
    months = months + added
    if len(months) and (months.min() < _FIRST_MONTH or months.max() > _LAST_MONTH):
        raise OverflowError("a date leaves the years from 1 to 9999")
    return first_days(months) + np.minimum(at, lengths(months) - 1)


def months_between(start: Ints, end: Ints) -> Ints:
    """The whole months between two moments in microseconds; negative if the second is the earlier
    one."""
    backwards = end < start
    start, end = np.where(backwards, end, start), np.where(backwards, start, end)
    days, time = np.divmod(start, DAY_US)
    months = months_and_days(end // DAY_US)[0] - months_and_days(days)[0]
    count = months - (later(days, months) * DAY_US + time > end)
    return np.where(backwards, -count, count)


def micros_of(parts: dict[str, Ints], length: int) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Microseconds since 1970 of parts of dates and times; and which of them are no date or
    time."""
    zero = np.zeros(length, np.int64)
    year, month, day = parts["year"], parts["month"], parts["day"]
    hour, minute, second = (parts.get(name, zero) for name in ("hour", "minute", "second"))
    wrong = (
        (year < 1)
        | (month < 1)
        | (month > 12)
        | (day < 1)
        | (hour > 23)
        | (minute > 59)
        | (second > 59)
    )
    if "hour12" in parts:
        wrong |= (parts["hour12"] < 1) | (parts["hour12"] > 12)
        hour = parts["hour12"] % 12 + 12 * parts["half"]
    months = np.where(wrong, 0, (year - 1970) * 12 + month - 1)
    wrong |= day > lengths(months)
    return (first_days(months) + day - 1) * DAY_US + (
        (hour * 60 + minute) * 60 + second
    ) * 1_000_000 + parts.get("fraction", zero), wrong
