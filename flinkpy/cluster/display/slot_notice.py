"""A job without slots says so: beside its state where progress is drawn, and where nothing is drawn, in a log perhaps, by one line after a while."""

from __future__ import annotations

from typing import TextIO

from flinkpy.actors.gateways import JobDetails
from flinkpy.core.clock import SYSTEM_CLOCK, Clock
from flinkpy.core.lifecycles import ExecutionState

_WITH_SLOTS = (ExecutionState.DEPLOYING, ExecutionState.INITIALIZING, ExecutionState.RUNNING)


def waiting_for_slots(details: JobDetails) -> int:
    """How many subtasks wait for a slot while none of the job runs; one that has begun and waits for more goes on meanwhile."""
    states = [vertex.states for vertex in details.vertices]
    if any(each.get(state) for each in states for state in _WITH_SLOTS):
        return 0
    return sum(each.get(ExecutionState.SCHEDULED, 0) for each in states)


class SlotNotice:
    """Told how the job goes, it writes to ``stream`` only when the job has long waited for slots, and when it has got them after all. ``hint``: where
    to look for who holds them."""

    interval_s = 5.0
    patience_s = 10.0

    def __init__(self, stream: TextIO, hint: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._stream, self._hint, self._clock = stream, hint, clock
        self._since: float | None = None
        self._told = False

    def update(self, details: JobDetails) -> None:
        """Looks whether it still waits."""
        waiting, now = waiting_for_slots(details), self._clock.monotonic()
        if not waiting:
            if self._told:
                self._say(f"job {details.overview.name!r} has its slots now")
            self._since, self._told = None, False
        elif self._since is None:
            self._since = now
        elif not self._told and now - self._since >= self.patience_s:
            self._told = True
            self._say(f"job {details.overview.name!r} waits for slots: none of its {waiting} subtasks has one yet; {self._hint} "
                      "(it fails when slot.request.timeout is over)")

    def close(self) -> None:
        """Nothing of it stays on the screen but what it said."""

    def _say(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()
