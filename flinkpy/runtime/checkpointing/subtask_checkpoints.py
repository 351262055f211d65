"""The checkpoints of one task. Its operators' state is frozen at each barrier, on the slot loop; written in the thread for files; and then the
JobMaster is told."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from flinkpy.core.elements import CheckpointBarrier
from flinkpy.core.errors import FlinkpyError
from flinkpy.core.ids import OperatorId
from flinkpy.graph.checkpoint_messages import (
    BeginCheckpoint,
    CheckpointAborted,
    CheckpointCompleted,
    FromTask,
    SnapshotFailed,
    SnapshotTaken,
    ToTask,
)
from flinkpy.operators.context import TaskInfo
from flinkpy.runtime.checkpointing.state_io import write_snapshot
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage
from flinkpy.state.saved_state import FrozenState

LOG = logging.getLogger(__name__)

REMEMBERED = 64  # checkpoints that were aborted, and may still be written


class Checkpointed(Protocol):
    """What is saved: the operator chain, but for a simulated task."""

    def process_barrier(self, barrier: CheckpointBarrier, then: Callable[[CheckpointBarrier], None]) -> None:
        """Sends the barrier on, and calls ``then`` with it before anything else comes."""
        ...

    def freeze_state(self, barrier: CheckpointBarrier) -> Mapping[OperatorId, FrozenState]:
        """The state of each operator that has some."""
        ...

    def notify_checkpoint(self, checkpoint_id: int, is_complete: bool) -> None:
        """The checkpoint is durable, or will never be."""
        ...


class SubtaskCheckpoints:
    """``run_io`` runs an action in the thread for files; ``send`` tells the JobMaster, from any thread; ``begin`` puts a barrier behind what the
    task's input has given; ``on_notified`` is called when operators were told how a checkpoint ended. All calls come from the slot loop's thread."""

    def __init__(
        self, task: TaskInfo, chain: Checkpointed, storage: Callable[[], CheckpointStorage],
        run_io: Callable[[Callable[[], None]], None],
        send: Callable[[FromTask], None], begin: Callable[[CheckpointBarrier], None], on_notified: Callable[[], None],
    ) -> None:
        self._task, self._chain, self._make_storage, self._run_io, self._send = task, chain, storage, run_io, send
        self._begin, self._on_notified = begin, on_notified
        self._storage: CheckpointStorage | None = None
        self._aborted: deque[int] = deque(maxlen=REMEMBERED)
        self._held_back: list[CheckpointBarrier] | None = None  # None: barriers may pass
        self._closed = self._ended = False

    # -- barriers ------------------------------------------------------------------------------------------------------------

    def handle_message(self, message: ToTask) -> None:
        """The JobMaster speaks to the task."""
        if not isinstance(message, BeginCheckpoint):
            self._notified(message)
            self._on_notified()
        elif not self._closed:
            barrier = CheckpointBarrier(message.checkpoint_id, message.timestamp_ms)
            if self._held_back is None:
                self._begin(barrier)
            else:
                self._held_back.append(barrier)

    def hold_back(self) -> None:
        """The operators are about to finish, one after the other: no barrier may begin in between."""
        self._held_back = []

    def release(self) -> None:
        """All operators have finished: their state is whole again."""
        held_back, self._held_back = self._held_back or [], None
        for barrier in held_back:
            self._begin(barrier)

    def close(self) -> None:
        """The end of the partitions has been written, and no barrier can follow it."""
        self._closed = True

    def end(self) -> None:
        """The task has ended, in whatever way. Nobody hears it any more, so nothing stays of what is being written."""
        self._ended = True

    def pass_barrier(self, barrier: CheckpointBarrier) -> None:
        """The barrier has come from all inputs, or begins here."""
        self._chain.process_barrier(barrier, self.take_snapshot)

    # -- snapshots -----------------------------------------------------------------------------------------------------------

    def take_snapshot(self, barrier: CheckpointBarrier) -> None:
        """The barrier has gone on, and nothing that came behind it was processed. What a function raises fails the checkpoint, and not the task."""
        checkpoint_id = barrier.checkpoint_id
        if checkpoint_id in self._aborted:
            return
        try:
            frozen = self._chain.freeze_state(barrier)
        except FlinkpyError as error:
            self._failed(checkpoint_id, error)
            return
        self._run_io(lambda: self._write(checkpoint_id, frozen))

    def _write(self, checkpoint_id: int, frozen: Mapping[OperatorId, FrozenState]) -> None:
        """In the thread for files."""
        if self._is_in_vain(checkpoint_id):
            return
        try:
            if self._storage is None:
                self._storage = self._make_storage()
            snapshot = write_snapshot(self._storage, checkpoint_id, self._task, frozen)
            if self._is_in_vain(checkpoint_id):
                handles = [handle for state in snapshot.operators.values() for handle in state.handles()]
                self._storage.discard_handles(checkpoint_id, handles)
                return
        except Exception as error:
            self._failed(checkpoint_id, error)
        else:
            self._send(SnapshotTaken(checkpoint_id, snapshot))

    def _is_in_vain(self, checkpoint_id: int) -> bool:
        return self._ended or checkpoint_id in self._aborted

    def _failed(self, checkpoint_id: int, error: Exception) -> None:
        LOG.info("%s: no state for checkpoint %d", self._task.subtask_name, checkpoint_id, exc_info=error)  # the JobMaster tells, if it matters
        self._send(SnapshotFailed(checkpoint_id, str(error) if isinstance(error, FlinkpyError) else f"{type(error).__name__}: {error}"))

    def _notified(self, message: CheckpointCompleted | CheckpointAborted) -> None:
        """The JobMaster says how a checkpoint ended. Raises what a sink's commit raises."""
        is_complete = isinstance(message, CheckpointCompleted)
        if not is_complete:
            self._aborted.append(message.checkpoint_id)
        self._chain.notify_checkpoint(message.checkpoint_id, is_complete)

    def __repr__(self) -> str:
        return f"<SubtaskCheckpoints of {self._task.subtask_name}>"
