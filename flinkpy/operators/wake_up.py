"""One timer of the task for all the moments of processing time that an operator waits for."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.operators.context import ProcessingTimeService, TimerHandle


class WakeUp:
    """Set for the earliest moment it is told; calls ``due`` with the last millisecond that is over, which is that moment or a later one.

    A moment has come when its millisecond is over, as in Flink: what is processed in that millisecond still belongs to it.
    """

    def __init__(self, time: ProcessingTimeService, due: Callable[[int], None]) -> None:
        self._time, self._due = time, due
        self._set: tuple[int, TimerHandle] | None = None

    def at(self, moment: int | None) -> None:
        """Not later than when this moment is over; None: there is none."""
        if moment is None or (self._set is not None and self._set[0] <= moment):
            return
        self.cancel()
        delay_s = max(0, moment + 1 - self._time.now_ms()) / 1000
        self._set = moment, self._time.call_later(delay_s, self._fire)

    def _fire(self) -> None:
        self._set = None
        self._due(self._time.now_ms() - 1)

    def cancel(self) -> None:
        """It is not needed any more, until it is set again."""
        if self._set is not None:
            self._set[1].cancel()
            self._set = None
