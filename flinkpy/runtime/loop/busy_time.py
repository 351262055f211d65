"""How a task spends its time: busy in its steps, held back by its consumers, or idle without input. It reads the clock twice per step."""

from __future__ import annotations

from enum import Enum

from flinkpy.core.clock import Clock


class Waiting(Enum):
    """What a suspended task waits for."""

    INPUT = "INPUT"
    OUTPUT = "OUTPUT"


class BusyTime:
    """Adds up seconds, including those of the current step or wait. A task whose step ends with a ``reason`` waits for that until its next step."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._busy = self._for_input = self._for_output = 0.0
        self._in_step = False
        self.reason: Waiting | None = None  # what the task waits for now
        self._between: Waiting | None = None  # what the time since the last step counts for
        self._since = 0.0

    def step_begins(self) -> None:
        """The wait until now is over."""
        now = self._clock.monotonic()
        if self._between is Waiting.INPUT:
            self._for_input += now - self._since
        elif self._between is Waiting.OUTPUT:
            self._for_output += now - self._since
        self._between, self._since, self._in_step = None, now, True

    def step_ends(self) -> float:
        """The task was busy since the step began; gives the seconds."""
        now = self._clock.monotonic()
        taken = now - self._since
        self._in_step = False
        self._busy += taken
        self._between, self._since = self.reason, now
        return taken

    def stop(self) -> None:
        """The task has ended."""
        self.step_begins()
        self.reason, self._in_step = None, False

    @property
    def busy(self) -> float:
        """Seconds spent in steps, up to now: a function that does not return for long is busy meanwhile."""
        return self._busy + (self._clock.monotonic() - self._since if self._in_step else 0.0)

    def waited(self, reason: Waiting) -> float:
        """Seconds waited for that, up to now."""
        running = self._clock.monotonic() - self._since if self._between is reason else 0.0
        return running + (self._for_input if reason is Waiting.INPUT else self._for_output)
