"""Time that moves only when a test sets it, and timers that depend on it."""

from __future__ import annotations

from collections.abc import Callable

# a delay in seconds is not always a whole number of milliseconds in floating point
_ROUNDING_MS = 1e-6


class ManualClock:
    """A clock in whole milliseconds that stands still until the test sets it.

    >>> clock = ManualClock(); clock.set_ms(1500); clock.time_ms(), clock.monotonic()
    (1500, 1.5)
    """

    def __init__(self, start_ms: int = 0) -> None:
        self._now_ms = start_ms

    def monotonic(self) -> float:
        return self._now_ms / 1000

    def time_ms(self) -> int:
        return self._now_ms

    def time_ns(self) -> int:
        return self._now_ms * 1_000_000

    def set_ms(self, now_ms: int) -> None:
        """Sets the time. Raises ValueError for a time in the past."""
        if now_ms < self._now_ms:
            raise ValueError(f"time does not go back (from {self._now_ms} ms to {now_ms} ms)")
        self._now_ms = now_ms

    def advance_ms(self, milliseconds: int) -> None:
        self.set_ms(self._now_ms + milliseconds)


class ManualTimers:
    """The processing-time timers of operators under test: they fire, in order, when the time is
    set."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.pending: list[ManualTimer] = []

    def now_ms(self) -> int:
        return self.clock.time_ms()

    def call_later(self, delay_s: float, action: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(self, self.clock.time_ms() + delay_s * 1000, action)
        self.pending.append(timer)
        return timer

    def set_ms(self, now_ms: int) -> None:
        """Sets the time; fires the timers that are due, and those that they add if these are due
        too."""
        self.clock.set_ms(now_ms)
        while self.pending:
            timer = min(self.pending, key=lambda timer: timer.due_ms)
            if timer.due_ms > now_ms + _ROUNDING_MS:
                break
            self.pending.remove(timer)
            timer.action()


class ManualTimer:
    """One processing-time timer."""

    def __init__(self, timers: ManualTimers, due_ms: float, action: Callable[[], None]) -> None:
        self._timers = timers
        self.due_ms = due_ms
        self.action = action

    def cancel(self) -> None:
        if self in self._timers.pending:
            self._timers.pending.remove(self)
