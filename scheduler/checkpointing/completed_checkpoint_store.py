"""The completed checkpoints that the job keeps: the newest is what it restores from."""

from __future__ import annotations

from collections import deque

from flinkpy.core.lifecycles import JobState
from flinkpy.core.options.checkpointing import CheckpointRetention, CheckpointSettings
from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.scheduler.checkpointing.shared_state_registry import SharedStateRegistry
from flinkpy.scheduler.protocol import (
    Command,
    DiscardCheckpoint,
    DiscardOtherCheckpoints,
    RestoreFrom,
)


class CompletedCheckpointStore:
    """Discards checkpoints beyond the number to keep, and at the job's end those that are not to
    outlive it. A checkpoint the job started from and did not claim belongs to somebody else, as
    does a savepoint: it is never discarded. A checkpoint that the job claimed is discarded when the
    job no longer needs it; if the job fails or is cancelled before it has completed one of its own,
    the claimed one stays. ``shared`` knows which files the checkpoints have in common. If there may
    be files of no known checkpoint (``leaves_files``), they are deleted when the job ends."""

    def __init__(self, settings: CheckpointSettings, commands: list[Command]) -> None:
        self._settings, self._commands = settings, commands
        self.shared = SharedStateRegistry()
        self._foreign: CompletedCheckpoint | None = None  # the newest that belongs to somebody else
        self._claimed: CompletedCheckpoint | None = None
        # tasks end, or have begun to, which have not read their input to its end
        self.is_stopping = False
        self.must_end = False  # the savepoint to stop with is complete
        self.leaves_files = False
        self.own: deque[CompletedCheckpoint] = deque()  # oldest first

    @property
    def latest(self) -> CompletedCheckpoint | None:
        newest = self.own[-1] if self.own else None
        if self._foreign is None or (
            newest is not None and newest.checkpoint_id > self._foreign.checkpoint_id
        ):
            return newest
        return self._foreign

    @property
    def base_id(self) -> int | None:
        """The checkpoint that the next one may build on: the newest of the job's own, if
        checkpoints are incremental. Files of a checkpoint that was not claimed may go at any time,
        so the first one after it is full."""
        return self.own[-1].checkpoint_id if self._settings.incremental and self.own else None

    def restore(self, event: RestoreFrom) -> None:
        """The job starts from this one."""
        is_own = event.is_own or event.claim
        for own in (*event.older, event.checkpoint) if is_own else event.older:
            self.own.append(own)
            self.shared.claim(own)
        self._discard_oldest()
        if event.claim:
            self._claimed = event.checkpoint
        if not is_own:
            self._foreign = event.checkpoint

    def add(self, checkpoint: CompletedCheckpoint) -> None:
        """One more is complete."""
        self.own.append(checkpoint)
        self._commands += self.shared.settle(checkpoint.checkpoint_id, checkpoint.shared_files())
        self._discard_oldest()

    def _discard_oldest(self) -> None:
        while len(self.own) > self._settings.retained:
            self._discard(self.own.popleft())

    def add_savepoint(self, checkpoint: CompletedCheckpoint) -> None:
        """Sinks commit for this savepoint, with which the job stops: no failure may lead to an
        older checkpoint, nor have the job go on."""
        self._foreign, self.is_stopping = checkpoint, True
        self.must_end = True

    def job_drains(self) -> None:
        """Sources are told to end their input."""
        self.is_stopping = True

    def job_goes_on(self) -> None:
        """All of it restarts, after a failure: it drains no more, unless the savepoint is
        complete."""
        self.is_stopping = self.must_end

    def job_ends(self, state: JobState) -> None:
        """In this state, which is terminal."""
        if state is not JobState.FINISHED and self.own and self.own[-1] is self._claimed:
            self.shared.disown(self.own.pop().checkpoint_id)
        if not outlives_job(self._settings.retention, state):
            while self.own:
                self._discard(self.own.popleft())
        if self.leaves_files:
            kept = tuple(checkpoint.checkpoint_id for checkpoint in self.own)
            self._commands.append(DiscardOtherCheckpoints(kept, self.shared.files))

    def _discard(self, checkpoint: CompletedCheckpoint) -> None:
        self._commands += [
            DiscardCheckpoint(checkpoint),
            *self.shared.release(checkpoint.checkpoint_id),
        ]

    def __repr__(self) -> str:
        return f"<CompletedCheckpointStore {[checkpoint.checkpoint_id for checkpoint in self.own]}>"


def outlives_job(retention: CheckpointRetention, state: JobState) -> bool:
    """Whether checkpoints are kept when the job ends so."""
    if state is JobState.CANCELED:
        return retention is CheckpointRetention.RETAIN_ON_CANCELLATION
    return (
        state is JobState.FAILED
        and retention is not CheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
    )
