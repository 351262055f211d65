"""The checkpoints of one task. Its operators' state is frozen at each barrier, in the task's
thread; what the barrier overtakes is gathered; both are written in the thread for files
(``snapshot_writer``); and then the JobMaster is told.

How a task stops with a savepoint. Without draining, it stands still behind the savepoint's barrier
until the savepoint is complete, and ends then. In between no input is read, no timer fires and no
result of an asynchronous call comes: whoever starts from the savepoint does all that. If there is
no savepoint after all, the task goes on where it stood, and nothing has happened.

With draining, the input of a source ends when it is told to begin with the barrier. What follows is
the end of any bounded input: event time ends, operators finish, and the barrier comes behind. So it
reaches tasks that have finished, and they wait for the savepoint as they wait for their last
checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from flinkpy.core.clock import SYSTEM_CLOCK, Clock
from flinkpy.core.elements import CheckpointBarrier, SnapshotType
from flinkpy.core.errors import FlinkpyError
from flinkpy.core.exhaustive import assert_never
from flinkpy.core.ids import OperatorId
from flinkpy.graph.checkpoint_messages import (
    UNMEASURED,
    BeginCheckpoint,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointMetrics,
    CheckpointToTask,
)
from flinkpy.runtime.checkpointing.channel_recording import ChannelRecording
from flinkpy.runtime.checkpointing.output_barriers import OutputBarriers
from flinkpy.runtime.checkpointing.snapshot_writer import Snapshot, SnapshotWriter, abandon
from flinkpy.state.snapshots.saved_state import FrozenState


class CheckpointedChain(Protocol):
    """What is saved: the operator chain, but for a simulated task."""

    def process_barrier(
        self, barrier: CheckpointBarrier, then: Callable[[CheckpointBarrier], None]
    ) -> None:
        """Sends the barrier on, and calls ``then`` with it before anything else comes."""
        ...

    def freeze_state(self, barrier: CheckpointBarrier) -> Mapping[OperatorId, FrozenState]:
        """The state of each operator that has some."""
        ...

    def notify_checkpoint(self, checkpoint_id: int, is_complete: bool) -> None:
        """The checkpoint is durable, or will never be."""
        ...


class CheckpointedTask(Protocol):
    """What its checkpoints have a task do: the stream task, but for a simulated one."""

    @property
    def reads_source(self) -> bool:
        """Whether it reads a source, and not to the end yet."""
        ...

    def begin_barrier(self, barrier: CheckpointBarrier) -> None:
        """Puts the barrier behind what the task's input has given: no producer sends it."""
        ...

    def end_input(self) -> None:
        """Ends the source's input here: its operators finish."""
        ...

    def stand_still(self) -> None:
        """Does nothing more with its input until the checkpoints say ``may_stop``, and then leaves;
        or until ``go_on``. A task that has finished waits anyway."""
        ...

    def go_on(self) -> None:
        """The savepoint was given up: stands still no longer, from the next mail on."""
        ...

    def resume(self) -> None:
        """Looks at what it waits for: a checkpoint has ended."""
        ...


class TaskCheckpoints:
    """``outputs`` lets barriers overtake what was written before. ``restored_id`` is the checkpoint
    that the task has started from. ``clock`` says how long things take. All calls come from the
    task's thread."""

    def __init__(
        self,
        task: CheckpointedTask,
        chain: CheckpointedChain,
        snapshots: SnapshotWriter,
        outputs: OutputBarriers | None = None,
        restored_id: int | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._task = task
        self._chain = chain
        self._snapshots = snapshots
        self._outputs = outputs
        self._restored_id = restored_id
        self._clock = clock
        self._held_back: list[CheckpointBarrier] | None = None  # None: barriers may pass
        self._closed = False
        self._stop: CheckpointBarrier | None = None  # of the savepoint to stop with
        self.may_stop = False  # that savepoint is complete

    # -- what the JobMaster says -------------------------------------------------------------------

    def handle_message(self, message: CheckpointToTask) -> None:
        """The JobMaster speaks to the task. Raises what a sink's commit raises."""
        if isinstance(message, BeginCheckpoint):
            self._begin(message)
        elif isinstance(message, CheckpointCompleted):
            self._ended(message.checkpoint_id, is_complete=True)
        elif isinstance(message, CheckpointAborted):
            self._ended(message.checkpoint_id, is_complete=False)
        else:
            assert_never(message)

    def _begin(self, message: BeginCheckpoint) -> None:
        barrier = CheckpointBarrier(message.checkpoint_id, message.timestamp_ms, message.options)
        if self._closed:
            self._begin_behind_the_end(barrier)
        elif self._held_back is None:
            self._begin_barrier(barrier)
        else:
            self._held_back.append(barrier)

    def _begin_behind_the_end(self, barrier: CheckpointBarrier) -> None:
        """If it still comes before the end for every consumer. If not, the task ends when its
        consumers have taken all, and the JobMaster begins the next checkpoint without it."""
        if self._outputs is not None:
            self._outputs.before_the_ends(barrier, lambda: self._begin_barrier(barrier))

    def _begin_barrier(self, barrier: CheckpointBarrier) -> None:
        if barrier.options.snapshot_type is SnapshotType.TERMINATE and self._task.reads_source:
            self.hold_back(barrier)
            self._task.end_input()
        else:
            self._task.begin_barrier(barrier)

    def _ended(self, checkpoint_id: int, *, is_complete: bool) -> None:
        self._snapshots.checkpoint_ended(checkpoint_id, is_complete)
        if self._stop is not None and self._stop.checkpoint_id == checkpoint_id:
            self._stop_is_over(is_complete)
        self._chain.notify_checkpoint(checkpoint_id, is_complete)
        self._task.resume()

    # -- stopping with a savepoint -----------------------------------------------------------------

    def _stop_is_over(self, is_complete: bool) -> None:
        """A task that was drained cannot go on: if there is no savepoint, it waits for the next
        try, or for the job's restart."""
        self.may_stop = is_complete
        if not is_complete and not self.was_drained:
            self._stop = None
            self._task.go_on()

    @property
    def awaits_stop(self) -> bool:
        """Whether the savepoint to stop with has passed here, and is not over."""
        return self._stop is not None and not self.may_stop

    @property
    def was_drained(self) -> bool:
        """Whether the savepoint to stop with came behind the end of all data: there is nothing to
        go on with."""
        return self._stop is not None and self._stop.options.snapshot_type is SnapshotType.TERMINATE

    # -- the end of the task's data ----------------------------------------------------------------

    def hold_back(self, *barriers: CheckpointBarrier) -> None:
        """The operators are about to finish, one after the other: no barrier may begin in between,
        and these are to begin then."""
        self._held_back = [*(self._held_back or ()), *barriers]

    @property
    def may_overtake(self) -> bool:
        """Whether barriers may come ahead of their turn: not while the operators finish."""
        return self._held_back is None

    def release(self) -> None:
        """All operators have finished: their state is whole again."""
        held_back, self._held_back = self._held_back or [], None
        for barrier in held_back:
            self._begin_barrier(barrier)

    def close(self) -> None:
        """The end of the partitions has been written, and no barrier can follow it, unless it
        overtakes it."""
        self._closed = True

    def end(self) -> None:
        """The task has ended, in whatever way."""
        self._snapshots.end()
        if self._outputs is not None:
            self._outputs.close()

    # -- barriers ----------------------------------------------------------------------------------

    def pass_barrier(
        self,
        barrier: CheckpointBarrier,
        in_flight: ChannelRecording | None = None,
        came_ms: int | None = None,
    ) -> None:
        """The barrier has come from all inputs, the first time at ``came_ms``, or begins here, or
        has overtaken what is in flight there. Work that is parked in the chain is done before, as
        no barrier can overtake what an operator has begun. The barrier of the checkpoint that the
        task has started from only says that all has come that was in flight there."""
        if barrier.checkpoint_id == self._restored_id:
            return
        now_ms = self._clock.time_ms()
        came_ms = now_ms if came_ms is None else came_ms
        metrics = CheckpointMetrics(
            max(0, came_ms - barrier.timestamp_ms),
            max(0, now_ms - came_ms),
            is_unaligned=barrier.options.is_unaligned,
        )
        self._chain.process_barrier(
            barrier, lambda passed: self.take_snapshot(passed, in_flight, metrics)
        )

    def take_snapshot(
        self,
        barrier: CheckpointBarrier,
        in_flight: ChannelRecording | None = None,
        metrics: CheckpointMetrics = UNMEASURED,
    ) -> None:
        """The barrier has gone on, as ``metrics`` say, and nothing that came behind it was
        processed. What a function raises fails the checkpoint, and not the task."""
        checkpoint_id = barrier.checkpoint_id
        written = None if self._outputs is None else self._outputs.barrier_written(barrier)
        recordings = [each for each in (in_flight, written) if each is not None]
        if barrier.options.snapshot_type is SnapshotType.TERMINATE:
            # drained, even if there is no savepoint: it must not end as if its source had
            self._await_end_of(barrier)
        if self._snapshots.is_aborted(checkpoint_id):
            abandon(recordings)
            return
        began = self._clock.monotonic()
        try:
            frozen = self._chain.freeze_state(barrier)
        except FlinkpyError as error:
            abandon(recordings)
            self._snapshots.decline(checkpoint_id, error)
            return
        frozen_at = self._clock.monotonic()
        measured = replace(metrics, sync_ms=round((frozen_at - began) * 1000))
        self._snapshots.write(Snapshot(barrier, frozen, recordings, measured, frozen_at))
        if barrier.options.snapshot_type.stops_job:
            self._await_end_of(barrier)

    def _await_end_of(self, stop: CheckpointBarrier) -> None:
        """Stands still until that savepoint is over."""
        self._stop = stop
        self._task.stand_still()

    def __repr__(self) -> str:
        held_back = "" if self._held_back is None else f", {len(self._held_back)} barriers wait"
        return f"<TaskCheckpoints of {self._chain!r}{held_back}>"
