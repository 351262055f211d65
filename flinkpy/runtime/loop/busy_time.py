"""How a task spends its time: busy in its steps, held back by its consumers, or idle without input.
It reads the clock twice per step.

A task that could go on and waits for its turn in the loop's thread is busy, as one of Flink's is
whose thread waits for a processor. So the three always add up to the whole, and the task that
limits a job shows as busy whether it shares its thread or not."""

from __future__ import annotations

from enum import Enum

from flinkpy.core.clock import Clock


class Waiting(Enum):
    """What a suspended task waits for."""

    INPUT = "INPUT"
    OUTPUT = "OUTPUT"


class BusyTime:
    """Adds up seconds, including those of the current step or wait. A task whose step ends with a
    ``reason`` waits for that until its next step."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._busy = self._for_input = self._for_output = 0.0
        self.reason: Waiting | None = None  # what the task waits for now
        # what the time counts for that passes now; None: busy
        self._counts_for: Waiting | None = None
        self._since: float | None = None  # None: there was no step yet, or the task has ended

    def step_begins(self) -> None:
        """The wait until now is over."""
        now = self._clock.monotonic()
        if self._since is not None:
            self._count(now - self._since)
        self._counts_for, self._since = None, now

    def step_ends(self) -> float:
        """The task was busy since the step began; gives the seconds."""
        if self._since is None:  # the step was the last one
            return 0.0
        now = self._clock.monotonic()
        taken = now - self._since
        self._busy += taken
        self._counts_for, self._since = self.reason, now
        return taken

    def stop(self) -> None:
        """The task has ended."""
        if self._since is not None:
            self._count(self._clock.monotonic() - self._since)
        self.reason = self._counts_for = self._since = None

    def _count(self, seconds: float) -> None:
        if self._counts_for is Waiting.INPUT:
            self._for_input += seconds
        elif self._counts_for is Waiting.OUTPUT:
            self._for_output += seconds
        else:
            self._busy += seconds

    @property
    def busy(self) -> float:
        """Seconds of steps and of waiting for the next one, up to now: a function that does not
        return for long is busy meanwhile."""
        return self._busy + self._passing(None)

    def waited(self, reason: Waiting) -> float:
        """Seconds waited for that, up to now."""
        return self._passing(reason) + (
            self._for_input if reason is Waiting.INPUT else self._for_output
        )

    def _passing(self, kind: Waiting | None) -> float:
        since = self._since  # read once: this may be another thread
        return (
            self._clock.monotonic() - since
            if since is not None and self._counts_for is kind
            else 0.0
        )
