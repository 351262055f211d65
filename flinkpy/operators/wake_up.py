"""One timer of the task, which serves all moments of processing time that an operator waits for."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.operators.context import ProcessingTimeService, TimerHandle


class WakeUp:
    """Is set for the earliest moment it is given, and calls ``due`` with the last millisecond that
    is over: that moment or a later one.

    As in Flink, a moment is due when its millisecond is over: what is processed within that
    millisecond still belongs to it."""

    def __init__(self, time: ProcessingTimeService, due: Callable[[int], None]) -> None:
        self._time, self._due = time, due
        self._set: tuple[int, TimerHandle] | None = None

    def at(self, moment: int | None) -> None:
        """Wakes up no later than when ``moment`` is over; None means that there is nothing to wait
        for."""
        if moment is None or (self._set is not None and self._set[0] <= moment):
            return
        self.cancel()
        delay_s = max(0, moment + 1 - self._time.now_ms()) / 1000
        self._set = moment, self._time.call_later(delay_s, self._fire)

    def _fire(self) -> None:
        self._set = None
        self._due(self._time.now_ms() - 1)

    def cancel(self) -> None:
        """Cancels the timer; ``at`` may set it again."""
        if self._set is not None:
            self._set[1].cancel()
            self._set = None
