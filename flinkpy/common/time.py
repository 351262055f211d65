"""Durations and instants, under PyFlink's names."""

from __future__ import annotations

import datetime
from operator import index
from typing import Any

from flinkpy.core.program.program_line import refuse


class Duration(datetime.timedelta):
    """A duration: a ``timedelta`` with Flink's constructors, accepted wherever a ``timedelta`` is.

    >>> Duration.of_seconds(90) == Duration.of_millis(90_000)
    True
    """

    @classmethod
    def of_days(cls, days: int) -> Duration:
        return cls(days=days)

    @classmethod
    def of_hours(cls, hours: int) -> Duration:
        return cls(hours=hours)

    @classmethod
    def of_minutes(cls, minutes: int) -> Duration:
        return cls(minutes=minutes)

    @classmethod
    def of_seconds(cls, seconds: int) -> Duration:
        return cls(seconds=seconds)

    @classmethod
    def of_millis(cls, millis: int) -> Duration:
        return cls(milliseconds=millis)

    @classmethod
    def of_nanos(cls, nanos: int) -> Duration:
        """In whole microseconds; a rest of nanoseconds is cut off."""
        return cls(microseconds=nanos // 1000)

    def to_millis(self) -> int:
        return to_milliseconds(self)


class Instant:
    """A point in time: seconds since 1970-01-01 UTC, and nanoseconds within the second.

    >>> Instant.of_epoch_milli(1500).to_epoch_milli()
    1500
    """

    __slots__ = ("nanos", "seconds")

    def __init__(self, seconds: int, nanos: int) -> None:
        self.seconds, self.nanos = seconds, nanos

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        seconds, millis = divmod(epoch_milli, 1000)
        return Instant(seconds, millis * 1_000_000)

    def to_epoch_milli(self) -> int:
        return self.seconds * 1000 + self.nanos // 1_000_000

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instant) and (self.seconds, self.nanos) == (
            other.seconds,
            other.nanos,
        )

    def __hash__(self) -> int:
        return hash((self.seconds, self.nanos))

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


class Time:
    """A duration in milliseconds, as windows take it.

    >>> Time.minutes(2).to_milliseconds()
    120000
    """

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = _whole(milliseconds)

    def to_milliseconds(self) -> int:
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        return _times(seconds, 1000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        return _times(minutes, 60_000)

    @staticmethod
    def hours(hours: int) -> Time:
        return _times(hours, 3_600_000)

    @staticmethod
    def days(days: int) -> Time:
        return _times(days, 86_400_000)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self._milliseconds == other._milliseconds

    def __hash__(self) -> int:
        return hash(self._milliseconds)

    def __repr__(self) -> str:
        return f"{self._milliseconds} ms"


def _times(count: Any, unit: int) -> Time:
    if isinstance(count, bool) or (
        not isinstance(count, (int, float)) and not hasattr(count, "__index__")
    ):
        raise refuse(f"a Time is made of a number, this is {count!r:.80}")
    return Time(count * unit)


def _whole(milliseconds: Any) -> int:
    if isinstance(milliseconds, float) and milliseconds.is_integer():  # Time.seconds(0.5)
        return int(milliseconds)
    try:
        return index(milliseconds)
    except TypeError:
        raise refuse(
            f"a Time is a whole number of milliseconds, this is {milliseconds!r:.80}"
        ) from None


_LONGEST_MS = datetime.timedelta.max // datetime.timedelta(milliseconds=1)


def checked_milliseconds(span: object, what: str, at_least: int | None = None) -> int:
    """A duration that a program gives, in milliseconds. Raises ProgramError, with the program's
    line and with ``what`` it is of, for anything else and for one of less than ``at_least``.

    >>> checked_milliseconds(Duration.of_seconds(5), "the interval", 1)
    5000
    """
    milliseconds: Any = None
    if isinstance(span, (datetime.timedelta, Time)) or (
        isinstance(span, int) and not isinstance(span, bool)
    ):
        milliseconds = to_milliseconds(span)
    if milliseconds is None or abs(milliseconds) > _LONGEST_MS:
        raise refuse(
            f"{what} is a Duration, a timedelta or a whole number of milliseconds, this is "
            f"{span!r:.80}"
        )
    if at_least is not None and milliseconds < at_least:
        raise refuse(f"{what} is in milliseconds from {at_least} on, this is {milliseconds}")
    return int(milliseconds)


def to_milliseconds(span: datetime.timedelta | Time | int) -> int:
    """A duration of any of these types in milliseconds; a bare number is milliseconds already."""
    if isinstance(span, Time):
        return span.to_milliseconds()
    if isinstance(span, datetime.timedelta):
        return span // datetime.timedelta(milliseconds=1)
    return span
