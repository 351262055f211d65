"""What the JobMaster does about checkpoints when the scheduler says so. Nothing so far: tasks and files do not know of checkpoints yet."""

from __future__ import annotations

from flinkpy.scheduler.protocol import (
    DiscardCheckpoint,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    StoreCheckpoint,
    TriggerCheckpoint,
)


class CheckpointActions:
    """Carries out the commands of the checkpoint coordinator."""

    def trigger_checkpoint(self, command: TriggerCheckpoint) -> None:
        """Snapshots the enumerators, and tells the tasks."""

    def store_checkpoint(self, command: StoreCheckpoint) -> None:
        """Writes the manifest."""

    def discard_checkpoint(self, command: DiscardCheckpoint) -> None:
        """Deletes state and manifest."""

    def notify_complete(self, command: NotifyCheckpointComplete) -> None:
        """Tells the tasks."""

    def notify_aborted(self, command: NotifyCheckpointAborted) -> None:
        """Tells the tasks."""
