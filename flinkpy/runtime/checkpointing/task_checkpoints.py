"""The checkpoints of one task. Its operators' state is frozen at each barrier, on the slot loop;
what the barrier overtakes is gathered; both are written in the thread for files; and then the
JobMaster is told."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from flinkpy.core.clock import SYSTEM_CLOCK, Clock
from flinkpy.core.elements import CheckpointBarrier, SnapshotType
from flinkpy.core.errors import FlinkpyError
from flinkpy.core.exhaustive import assert_never
from flinkpy.core.ids import OperatorId
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.checkpoint_messages import (
    UNMEASURED,
    BeginCheckpoint,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointFromTask,
    CheckpointMetrics,
    CheckpointToTask,
    SnapshotFailed,
    SnapshotTaken,
)
from flinkpy.operators.context import TaskInfo
from flinkpy.runtime.checkpointing.channel_recording import ChannelRecording, RecordedChannel
from flinkpy.runtime.checkpointing.output_barriers import OutputBarriers
from flinkpy.runtime.checkpointing.state_io import Base, write_snapshot
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage
from flinkpy.state.checkpoints.local_backup import LocalBackup
from flinkpy.state.saved_state import FrozenState

LOG = engine_logger(__name__)

# checkpoints that were aborted and may still be written, or that others may build on
REMEMBERED = 64


class Checkpointed(Protocol):
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


class TaskCheckpoints:
    """``run_io`` runs an action in the thread for files; ``send`` tells the JobMaster, from any
    thread; ``begin`` puts a barrier behind what the task's input has given; ``on_notified`` is
    called when operators were told how a checkpoint ended; ``on_stop`` when the barrier of a
    savepoint has passed with which the job stops. ``bases``: the checkpoint that the task was
    restored from, if others may build on it; ``restored_id``: its id. ``outputs`` lets barriers
    overtake what was written before. ``backup`` keeps copies of what is written. ``clock`` says how
    long things take. All calls come from the slot loop's thread."""

    def __init__(
        self,
        task: TaskInfo,
        chain: Checkpointed,
        storage: Callable[[], CheckpointStorage],
        run_io: Callable[[Callable[[], None]], None],
        send: Callable[[CheckpointFromTask], None],
        begin: Callable[[CheckpointBarrier], None],
        on_notified: Callable[[], None],
        on_stop: Callable[[], None] = lambda: None,
        bases: Mapping[int, Base] | None = None,
        outputs: OutputBarriers | None = None,
        restored_id: int | None = None,
        backup: LocalBackup | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._task = task
        self._chain = chain
        self._make_storage = storage
        self._run_io = run_io
        self._send = send
        self._begin = begin
        self._on_notified = on_notified
        self._on_stop = on_stop
        self._outputs = outputs
        self._restored_id = restored_id
        self._backup = backup
        self._clock = clock
        # of checkpoints whose operators' state is frozen
        self._gathering: dict[int, list[ChannelRecording]] = {}
        self._storage: CheckpointStorage | None = None
        # in the thread for files: what was saved in pieces, by checkpoint
        self._bases: dict[int, Base] = dict(bases or {})
        self._aborted: deque[int] = deque(maxlen=REMEMBERED)
        self._held_back: list[CheckpointBarrier] | None = None  # None: barriers may pass
        self._closed = self._ended = False
        self._stop: CheckpointBarrier | None = None  # of the savepoint to stop with
        self.may_stop = False  # that savepoint is complete

    # -- barriers ----------------------------------------------------------------------------------

    def handle_message(self, message: CheckpointToTask) -> None:
        """The JobMaster speaks to the task."""
        if isinstance(message, BeginCheckpoint):
            self._begin_checkpoint(message)
        elif isinstance(message, CheckpointCompleted | CheckpointAborted):
            self._notified(message)
            self._on_notified()
        else:
            assert_never(message)

    def _begin_checkpoint(self, message: BeginCheckpoint) -> None:
        barrier = CheckpointBarrier(message.checkpoint_id, message.timestamp_ms, message.options)
        if self._closed:
            self._begin_behind_the_end(barrier)
        elif self._held_back is None:
            self._begin(barrier)
        else:
            self._held_back.append(barrier)

    def _begin_behind_the_end(self, barrier: CheckpointBarrier) -> None:
        """If it still comes before the end for every consumer. If not, the task ends soon, and the
        JobMaster begins the next checkpoint without it. No consumer may take the end in between."""
        if self._outputs is None:
            return
        with self._outputs.lock:
            if self._outputs.may_overtake_ends(barrier):
                self._begin(barrier)

    @property
    def awaits_stop(self) -> bool:
        """Whether the savepoint to stop with has passed here, and is not over."""
        return self._stop is not None and not self.may_stop

    @property
    def was_drained(self) -> bool:
        """Whether the savepoint to stop with came behind the end of all data: there is nothing to
        go on with."""
        return self._stop is not None and self._stop.options.snapshot_type is SnapshotType.TERMINATE

    def hold_back(self, *barriers: CheckpointBarrier) -> None:
        """The operators are about to finish, one after the other: no barrier may begin in between,
        and these are to begin then."""
        self._held_back = [*(self._held_back or ()), *barriers]

    def release(self) -> None:
        """All operators have finished: their state is whole again."""
        held_back, self._held_back = self._held_back or [], None
        for barrier in held_back:
            self._begin(barrier)

    def close(self) -> None:
        """The end of the partitions has been written, and no barrier can follow it, unless it
        overtakes it."""
        self._closed = True

    def end(self) -> None:
        """The task has ended, in whatever way. Nobody hears it any more, so nothing stays of what
        is being written."""
        self._ended = True
        self._gathering.clear()
        if self._outputs is not None:
            self._outputs.close()

    @property
    def may_overtake(self) -> bool:
        """Whether barriers may come ahead of their turn: not while the operators finish."""
        return self._held_back is None

    def pass_barrier(
        self,
        barrier: CheckpointBarrier,
        in_flight: ChannelRecording | None = None,
        came_ms: int | None = None,
    ) -> None:
        """The barrier has come from all inputs, from the first at ``came_ms``, or begins here, or
        has overtaken what is in flight there. Work that is parked in the chain is done before, as
        no barrier can overtake what an operator has begun. A barrier of the checkpoint that the
        task was restored from takes no snapshot: it marks the end of the in-flight data of that
        checkpoint."""
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

    # -- snapshots ---------------------------------------------------------------------------------

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
        if checkpoint_id in self._aborted:
            _abandon(recordings)
            return
        began = self._clock.monotonic()
        try:
            frozen = self._chain.freeze_state(barrier)
        except FlinkpyError as error:
            _abandon(recordings)
            self._failed(checkpoint_id, error)
            return
        self._gathering[checkpoint_id] = recordings
        frozen_at = self._clock.monotonic()
        self._write_when_gathered(
            barrier, frozen, replace(metrics, sync_ms=round((frozen_at - began) * 1000)), frozen_at
        )
        if barrier.options.snapshot_type.stops_job:
            self._stop = barrier
            self._on_stop()

    def _write_when_gathered(
        self,
        barrier: CheckpointBarrier,
        frozen: Mapping[OperatorId, FrozenState],
        metrics: CheckpointMetrics,
        frozen_at: float,
    ) -> None:
        """As soon as nothing more that is in flight belongs to the checkpoint."""
        recordings = self._gathering.get(barrier.checkpoint_id)
        if recordings is None:
            return
        for each in recordings:
            if not each.is_complete:
                each.when_complete(
                    lambda: self._write_when_gathered(barrier, frozen, metrics, frozen_at)
                )
                return
        del self._gathering[barrier.checkpoint_id]
        channels = [channel for each in recordings for channel in each.channels()]
        self._run_io(lambda: self._write(barrier, frozen, channels, metrics, frozen_at))

    def _write(
        self,
        barrier: CheckpointBarrier,
        frozen: Mapping[OperatorId, FrozenState],
        channels: Sequence[RecordedChannel],
        metrics: CheckpointMetrics,
        frozen_at: float,
    ) -> None:
        """In the thread for files."""
        checkpoint_id = barrier.checkpoint_id
        if self._is_in_vain(checkpoint_id):
            return
        try:
            if self._storage is None:
                self._storage = self._make_storage()
            storage = self._storage.of_snapshot(barrier.options.target)
            snapshot = write_snapshot(
                storage,
                barrier,
                self._task,
                frozen,
                self._base(barrier.options.builds_on),
                channels,
            )
            if self._is_in_vain(checkpoint_id):
                storage.discard_handles(checkpoint_id, snapshot.handles())
                return
            storage.was_saved(checkpoint_id, snapshot.handles())
            self._remember(
                checkpoint_id,
                {
                    operator_id: state.pieces
                    for operator_id, state in snapshot.operators.items()
                    if state.pieces is not None
                },
            )
        except Exception as error:
            self._failed(checkpoint_id, error)
        else:
            written_ms = round((self._clock.monotonic() - frozen_at) * 1000)
            in_flight = sum(each.handle.length for each in snapshot.channels)
            self._send(
                SnapshotTaken(
                    checkpoint_id,
                    snapshot,
                    replace(metrics, async_ms=written_ms, in_flight=in_flight),
                )
            )

    def _base(self, checkpoint_id: int | None) -> Base:
        """What was saved for that checkpoint, which is complete. Older ones will not be built on
        any more."""
        if checkpoint_id is None:
            return {}
        self._bases = {
            number: base for number, base in self._bases.items() if number >= checkpoint_id
        }
        return self._bases.get(checkpoint_id, {})

    def _remember(self, checkpoint_id: int, saved: Base) -> None:
        if saved:
            self._bases[checkpoint_id] = saved
            if len(self._bases) > REMEMBERED:
                del self._bases[min(self._bases)]

    def _is_in_vain(self, checkpoint_id: int) -> bool:
        return self._ended or checkpoint_id in self._aborted

    def _failed(self, checkpoint_id: int, error: Exception) -> None:
        # the JobMaster tells, if it matters
        LOG.info(
            "%s: no state for checkpoint %d", self._task.subtask_name, checkpoint_id, exc_info=error
        )
        self._send(
            SnapshotFailed(
                checkpoint_id,
                str(error)
                if isinstance(error, FlinkpyError)
                else f"{type(error).__name__}: {error}",
            )
        )

    def _notified(self, message: CheckpointCompleted | CheckpointAborted) -> None:
        """The JobMaster says how a checkpoint ended. Raises what a sink's commit raises."""
        is_complete = isinstance(message, CheckpointCompleted)
        if not is_complete:
            self._aborted.append(message.checkpoint_id)
            _abandon(self._gathering.pop(message.checkpoint_id, ()))
        backup = self._backup
        if backup is not None:
            self._run_io(lambda: backup.checkpoint_ended(message.checkpoint_id, is_complete))
        if self._stop is not None and self._stop.checkpoint_id == message.checkpoint_id:
            self._stop_is_over(is_complete)
        self._chain.notify_checkpoint(message.checkpoint_id, is_complete)

    def _stop_is_over(self, is_complete: bool) -> None:
        """A task that was drained cannot go on: if there is no savepoint, it waits for the next
        try, or for the job's restart."""
        self.may_stop = is_complete
        if not is_complete and not self.was_drained:
            self._stop = None

    def __repr__(self) -> str:
        return f"<TaskCheckpoints of {self._task.subtask_name}>"


def _abandon(recordings: Iterable[ChannelRecording]) -> None:
    for each in recordings:
        each.abandon()
