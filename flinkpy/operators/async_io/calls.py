"""The calls of an asynchronous function that are under way: begins them, retries them after a
pause, and ends those that take too long.

One timer serves the timeouts of all calls. Calls begin in the order of their deadlines, so only the
oldest call is checked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from flinkpy.core.clock import Clock
from flinkpy.operators.async_io.output_queues import Entry
from flinkpy.operators.context import ProcessingTimeService, TimerHandle

if TYPE_CHECKING:
    from flinkpy.operators.async_io.event_loop import CallLoop  # imports asyncio

ROUNDING_S = 1e-6  # a deadline that is this close counts as reached


class CallsUnderWay:
    """Used by the task's thread; ``loop`` runs the function elsewhere. ``timeout_s`` is 0 for no
    timeout; ``on_timeout`` gets the calls that timed out."""

    def __init__(
        self,
        loop: CallLoop,
        clock: Clock,
        timers: ProcessingTimeService,
        timeout_s: float,
        on_timeout: Callable[[list[Entry]], None],
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._timers = timers
        self._timeout_s = timeout_s
        self._on_timeout = on_timeout
        self._deadlines: dict[Entry, float] = {}  # oldest first; empty without a timeout
        self._pauses: dict[Entry, TimerHandle] = {}  # timers of the pauses before another attempt
        self._timer: TimerHandle | None = None

    def begin(self, entries: list[Entry]) -> None:
        if self._timeout_s:
            self._deadlines.update(
                dict.fromkeys(entries, self._clock.monotonic() + self._timeout_s)
            )
            if self._timer is None:
                self._timer = self._timers.call_later(self._timeout_s, self._end_overdue)
        self._loop.submit(entries)

    def try_again_in(self, delay_s: float, entry: Entry) -> None:
        """Makes another attempt after the delay, within the same timeout."""
        self._pauses[entry] = self._timers.call_later(delay_s, partial(self._try_again, entry))

    def _try_again(self, entry: Entry) -> None:
        del self._pauses[entry]
        entry.attempts += 1
        self._loop.submit([entry])

    def finished(self, entry: Entry) -> None:
        """The call has finished, so it needs no deadline."""
        self._deadlines.pop(entry, None)

    def _end_overdue(self) -> None:
        self._timer = None
        now, late = self._clock.monotonic(), []
        for entry, deadline in self._deadlines.items():
            if deadline > now + ROUNDING_S:
                self._timer = self._timers.call_later(deadline - now, self._end_overdue)
                break
            late.append(entry)
        if not late:
            return
        self._loop.cancel(late)
        for entry in late:
            del self._deadlines[entry]
            pause = self._pauses.pop(entry, None)
            if pause is not None:
                pause.cancel()
        self._on_timeout(late)

    def close(self) -> None:
        """Cancels all calls and ends the loop."""
        for timer in (self._timer, *self._pauses.values()):
            if timer is not None:
                timer.cancel()
        self._loop.close()
