"""The one timer of a source's reader: readers ask at every poll, so a later call replaces an
earlier one."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.operators.context import ProcessingTimeService, TimerHandle


class ReaderTimer:
    """Calls ``wake_up`` in the task's thread, once for the last ``set``."""

    def __init__(self, timers: ProcessingTimeService, wake_up: Callable[[], None]) -> None:
        self._timers, self._wake_up = timers, wake_up
        self._timer: TimerHandle | None = None

    def set(self, delay_s: float) -> None:
        """In so many seconds."""
        self.cancel()
        self._timer = self._timers.call_later(delay_s, self._fired)

    def _fired(self) -> None:
        self._timer = None
        self._wake_up()

    def cancel(self) -> None:
        """Nothing is called any more."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
