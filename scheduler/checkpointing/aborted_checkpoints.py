"""The checkpoints that were aborted, and of which something may still come: acknowledgements of
tasks, whose files have to be discarded, and the word that a manifest is gone."""

from __future__ import annotations

from flinkpy.scheduler.checkpointing.pending_checkpoint import PendingCheckpoint


class AbortedCheckpoints:
    """The latest few. Those in ``lingering`` were aborted while they were stored, and may still be
    there."""

    KEPT = 16

    def __init__(self) -> None:
        self._latest: dict[int, PendingCheckpoint] = {}
        self.lingering: set[int] = set()

    def add(self, pending: PendingCheckpoint, *, lingers: bool) -> None:
        if lingers:
            self.lingering.add(pending.checkpoint_id)
        self._latest[pending.checkpoint_id] = pending
        if len(self._latest) > self.KEPT:
            del self._latest[next(iter(self._latest))]

    def get(self, checkpoint_id: int) -> PendingCheckpoint | None:
        return self._latest.get(checkpoint_id)

    def is_gone(self, checkpoint_id: int) -> None:
        """What was stored of it has been removed."""
        self.lingering.discard(checkpoint_id)
