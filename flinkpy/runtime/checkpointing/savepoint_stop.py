"""How a task stops with a savepoint.

Without draining, the task stands still behind the savepoint's barrier until the savepoint is
complete, and ends then. In between no input is read, no timer fires and no result of an
asynchronous call comes: whoever starts from the savepoint does all that. If there is no savepoint
after all, the task goes on where it stood, and nothing has happened.

With draining, the input of a source ends when it is told to begin with the barrier. What follows is
the end of any bounded input: event time ends, operators finish, and the barrier comes behind. So it
reaches tasks that have finished, and they wait for the savepoint as they wait for their last
checkpoint."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.core.elements import CheckpointBarrier, SnapshotType
from flinkpy.core.mailbox import MailboxProcessor
from flinkpy.runtime.checkpointing.task_checkpoints import TaskCheckpoints

CHECKPOINT_MAIL = "checkpoint"  # what the JobMaster says of checkpoints


class SavepointStop:
    """Of one task. ``process`` is the task's default action while it has input; ``end_input`` ends
    a source's input; ``pass_barrier`` puts a barrier behind what the input has given; ``rest`` has
    the default action wait until it is resumed; ``leave`` ends the task where it stands."""

    def __init__(
        self,
        processor: MailboxProcessor,
        checkpoints: Callable[[], TaskCheckpoints],
        process: Callable[[], None],
        *,
        is_source: bool,
        end_input: Callable[[], None],
        pass_barrier: Callable[[CheckpointBarrier], None],
        rest: Callable[[], None],
        leave: Callable[[], None],
    ) -> None:
        self._processor = processor
        self._checkpoints = checkpoints
        self._process = process
        self._is_source = is_source
        self._end_input = end_input
        self._pass_barrier = pass_barrier
        self._rest = rest
        self._leave = leave

    @property
    def _has_input(self) -> bool:
        return self._processor.default_action == self._process

    def begin(self, barrier: CheckpointBarrier) -> None:
        """The barrier begins at this task."""
        if (
            barrier.options.snapshot_type is SnapshotType.TERMINATE
            and self._is_source
            and self._has_input
        ):
            self._checkpoints().hold_back(barrier)
            self._end_input()
        else:
            self._pass_barrier(barrier)

    def stop(self) -> None:
        """The barrier of a savepoint to stop with has passed. A task that has finished waits
        anyway."""
        if self._has_input:
            self._processor.admit_only(CHECKPOINT_MAIL)
            self._processor.default_action = self._stand_still

    def leave_at_once(self) -> None:
        """The job has stopped with the savepoint that the task starts from. What was to be
        committed is, since the operators are open."""
        self._processor.admit_only(CHECKPOINT_MAIL)
        self._processor.default_action = self._leave

    def _stand_still(self) -> None:
        """The default action until the savepoint is complete, or was given up."""
        checkpoints = self._checkpoints()
        if checkpoints.may_stop:
            self._leave()
        elif checkpoints.awaits_stop:
            self._rest()
        else:
            self._processor.default_action = self._process
            self._processor.admit_only(None)
