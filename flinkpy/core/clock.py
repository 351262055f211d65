"""Whatever needs the time takes a :class:`Clock` as an argument. Only this file reads the real
clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

# seconds; with 0 a thread may have its turn back before another one has noticed
_SHORTEST_PAUSE = 1e-5


class Clock(Protocol):
    """A source of time."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back."""
        ...

    def time_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        ...

    def time_ns(self) -> int:
        """Nanoseconds since 1970-01-01 UTC; cheaper to read than ``time_ms``."""
        ...


class SystemClock:
    """The machine's clock."""

    monotonic = staticmethod(time.monotonic)
    time_ns = staticmethod(time.time_ns)

    def time_ms(self) -> int:
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock that moves only when told, for tests and the simulation.

    >>> clock = ManualClock(); clock.advance(1.5); clock.monotonic()
    1.5
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def monotonic(self) -> float:
        return self._now

    def time_ms(self) -> int:
        return int(self._now * 1000)

    def time_ns(self) -> int:
        return self.time_ms() * 1_000_000

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"time does not go back ({seconds} s)")
        self._now += seconds


@dataclass(frozen=True)
class StoppedClock:
    """A clock that always shows the same time: a query of BATCH takes one for all its rows."""

    milliseconds: int

    def monotonic(self) -> float:
        return self.milliseconds / 1000

    def time_ms(self) -> int:
        return self.milliseconds

    def time_ns(self) -> int:
        return self.milliseconds * 1_000_000


SYSTEM_CLOCK: Clock = SystemClock()
# seconds of processor time of the calling thread: what it waits is not in it
thread_time = time.thread_time


class Turns:
    """Lets a thread in the background do long work in short turns. Only one thread of a process
    runs Python at a time; one that has work waits up to 5 ms until another one lets it.
    ``give_way`` is called between pieces of the work."""

    def __init__(
        self,
        turn_s: float = 0.002,
        monotonic: Callable[[], float] = time.perf_counter,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._turn_s = turn_s
        self._monotonic = monotonic
        self._pause = pause
        self._began = monotonic()

    def give_way(self) -> None:
        """Lets another thread run, if this one has had its turn. If no other one wants to, it goes
        on at once."""
        if self._monotonic() - self._began >= self._turn_s:
            self._pause(_SHORTEST_PAUSE)
            self._began = self._monotonic()
