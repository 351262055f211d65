"""The completed checkpoints that the job keeps: the newest is what it restores from."""

from __future__ import annotations

from collections import deque

from flinkpy.core.lifecycles import JobState
from flinkpy.core.options.checkpointing import CheckpointRetention, CheckpointSettings
from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.scheduler.protocol import Command, DiscardCheckpoint


class CompletedCheckpointStore:
    """Discards those beyond the number to keep, and at the job's end those that are not to outlive it. A checkpoint the job started from and did
    not claim belongs to somebody else, and is never discarded."""

    def __init__(self, settings: CheckpointSettings, commands: list[Command]) -> None:
        self._settings, self._commands = settings, commands
        self._restored: CompletedCheckpoint | None = None
        self.own: deque[CompletedCheckpoint] = deque()  # oldest first

    @property
    def latest(self) -> CompletedCheckpoint | None:
        return self.own[-1] if self.own else self._restored

    def restore(self, checkpoint: CompletedCheckpoint, claim: bool) -> None:
        """The job starts from this one."""
        if claim:
            self.own.append(checkpoint)
        else:
            self._restored = checkpoint

    def add(self, checkpoint: CompletedCheckpoint) -> None:
        """One more is complete."""
        self.own.append(checkpoint)
        while len(self.own) > self._settings.retained:
            self._commands.append(DiscardCheckpoint(self.own.popleft()))

    def job_ends(self, state: JobState) -> None:
        """In this state, which is terminal."""
        if not outlives_job(self._settings.retention, state):
            self._commands += [DiscardCheckpoint(checkpoint) for checkpoint in self.own]
            self.own.clear()

    def __repr__(self) -> str:
        return f"<CompletedCheckpointStore {[checkpoint.checkpoint_id for checkpoint in self.own]}>"


def outlives_job(retention: CheckpointRetention, state: JobState) -> bool:
    """Whether checkpoints are kept when the job ends so."""
    if state is JobState.CANCELED:
        return retention is CheckpointRetention.RETAIN_ON_CANCELLATION
    return state is JobState.FAILED and retention is not CheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
