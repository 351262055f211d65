"""How a task spends its time: busy in its steps, held back by its consumers, or idle for want of input. Two looks at the clock per step."""

from __future__ import annotations

from enum import Enum

from flinkpy.core.clock import Clock


class Waiting(Enum):
    """What a suspended task waits for."""

    INPUT = "INPUT"
    OUTPUT = "OUTPUT"


class BusyTime:
    """Adds up seconds; what goes on now counts too."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.busy = 0.0
        self._waited = {Waiting.INPUT: 0.0, Waiting.OUTPUT: 0.0}
        self._waiting: tuple[Waiting, float] | None = None

    def wait(self, reason: Waiting) -> None:
        """The task is suspended from now on."""
        self.resume()
        self._waiting = reason, self._clock.monotonic()

    def resume(self) -> None:
        """It is not suspended any more."""
        if self._waiting is not None:
            reason, since = self._waiting
            self._waited[reason] += self._clock.monotonic() - since
            self._waiting = None

    @property
    def reason(self) -> Waiting | None:
        """What it waits for now."""
        return self._waiting[0] if self._waiting is not None else None

    def waited(self, reason: Waiting) -> float:
        """Seconds waited for that, up to now."""
        waiting = self._waiting
        running = self._clock.monotonic() - waiting[1] if waiting is not None and waiting[0] is reason else 0.0
        return self._waited[reason] + running
