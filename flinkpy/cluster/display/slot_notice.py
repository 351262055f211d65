"""Tells the user that a job waits for slots: beside its state where progress is drawn; elsewhere,
for example in a log, by one line after a while."""

from __future__ import annotations

from typing import TextIO

from flinkpy.actors.gateways import JobDetails
from flinkpy.core.clock import SYSTEM_CLOCK, Clock
from flinkpy.core.lifecycles import ExecutionState

_WITH_SLOTS = (ExecutionState.DEPLOYING, ExecutionState.INITIALIZING, ExecutionState.RUNNING)


def waiting_for_slots(details: JobDetails) -> int:
    """The number of subtasks that wait for a slot; 0 when any subtask of the job has one, as the
    job then makes progress."""
    states = [vertex.states for vertex in details.vertices]
    if any(each.get(state) for each in states for state in _WITH_SLOTS):
        return 0
    return sum(each.get(ExecutionState.SCHEDULED, 0) for each in states)


class SlotNotice:
    """Writes to ``stream`` when the job has waited long for slots, and again when it gets them.
    ``hint`` says where to look for the jobs that hold the slots."""

    interval_s = 5.0
    patience_s = 10.0

    def __init__(self, stream: TextIO, hint: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._stream = stream
        self._hint = hint
        self._clock = clock
        self._since: float | None = None
        self._told = False

    def update(self, details: JobDetails) -> None:
        """Checks whether the job still waits."""
        waiting, now = waiting_for_slots(details), self._clock.monotonic()
        if not waiting:
            if self._told:
                self._say(f"job {details.overview.name!r} has its slots now")
            self._since, self._told = None, False
        elif self._since is None:
            self._since = now
        elif not self._told and now - self._since >= self.patience_s:
            self._told = True
            self._say(
                f"job {details.overview.name!r} waits for slots: none of its {waiting} "
                f"subtasks has one yet; {self._hint} "
                "(it fails when slot.request.timeout is over)"
            )

    def close(self) -> None:
        """There is nothing to remove from the screen."""

    def _say(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()
