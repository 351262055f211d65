"""Writes what a task saves at a checkpoint, in the thread for files, and tells the JobMaster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from flinkpy.core.clock import Clock
from flinkpy.core.elements import CheckpointBarrier
from flinkpy.core.errors import FlinkpyError
from flinkpy.core.ids import OperatorId
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.checkpoint_messages import (
    CheckpointFromTask,
    CheckpointMetrics,
    SnapshotFailed,
    SnapshotTaken,
)
from flinkpy.operators.context import TaskInfo
from flinkpy.runtime.checkpointing.channel_recording import ChannelRecording
from flinkpy.runtime.checkpointing.state_io import Base, write_snapshot
from flinkpy.runtime.files.worker_files import WorkerFiles
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage
from flinkpy.state.snapshots.saved_state import FrozenState

LOG = engine_logger(__name__)

# checkpoints that were aborted and may still be written, or that others may build on
REMEMBERED = 64


@dataclass(frozen=True)
class Snapshot:
    """What a task saves: its operators' state as it was at the barrier, and what the barrier
    overtook, which may still be gathered. ``frozen_at`` is when the state was frozen."""

    barrier: CheckpointBarrier
    frozen: Mapping[OperatorId, FrozenState]
    in_flight: Sequence[ChannelRecording]
    metrics: CheckpointMetrics
    frozen_at: float


class SnapshotWriter:
    """Writes the snapshots of one task. ``send`` reports to the JobMaster, from any thread;
    ``bases``: the checkpoint that the task was restored from, if others may build on it;
    ``had_finished``: all its operators had finished there; ``clock`` says how long it takes to
    write. All calls come from the task's thread."""

    def __init__(
        self,
        task: TaskInfo,
        storage: Callable[[], CheckpointStorage],
        files: WorkerFiles,
        send: Callable[[CheckpointFromTask], None],
        bases: Mapping[int, Base],
        clock: Clock,
        *,
        had_finished: bool = False,
    ) -> None:
        self._task = task
        self._had_finished = had_finished
        self._make_storage = storage
        self._files = files
        self._send = send
        self._clock = clock
        # snapshots that are still gathered, by checkpoint
        self._gathering: dict[int, Snapshot] = {}
        self._aborted: deque[int] = deque(maxlen=REMEMBERED)
        self._ended = False
        # in the thread for files: what was saved in pieces, by checkpoint
        self._bases: dict[int, Base] = dict(bases)
        self._storage: CheckpointStorage | None = None

    def write(self, snapshot: Snapshot) -> None:
        """Writes it as soon as nothing more that is in flight belongs to the checkpoint."""
        self._gathering[snapshot.barrier.checkpoint_id] = snapshot
        self._write_when_gathered(snapshot)

    def _write_when_gathered(self, snapshot: Snapshot) -> None:
        if self._gathering.get(snapshot.barrier.checkpoint_id) is not snapshot:
            return
        for each in snapshot.in_flight:
            if not each.is_complete:
                each.when_complete(lambda: self._write_when_gathered(snapshot))
                return
        del self._gathering[snapshot.barrier.checkpoint_id]
        self._files.run_io(lambda: self._write(snapshot))

    def decline(self, checkpoint_id: int, error: Exception) -> None:
        """There is no state for the checkpoint. From any thread."""
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

    def checkpoint_ended(self, checkpoint_id: int, is_complete: bool) -> None:
        """The checkpoint is durable, or will never be: then nothing is written for it any more."""
        if not is_complete:
            self._aborted.append(checkpoint_id)
            given_up = self._gathering.pop(checkpoint_id, None)
            if given_up is not None:
                abandon(given_up.in_flight)
        backup = self._files.backup
        if backup is not None:
            self._files.run_io(lambda: backup.checkpoint_ended(checkpoint_id, is_complete))

    def is_aborted(self, checkpoint_id: int) -> bool:
        return checkpoint_id in self._aborted

    def end(self) -> None:
        """The task has ended. Nobody hears it any more, so nothing stays of what is being
        written."""
        self._ended = True
        self._gathering.clear()

    # -- in the thread for files -------------------------------------------------------------------

    def _write(self, taken: Snapshot) -> None:
        barrier, checkpoint_id = taken.barrier, taken.barrier.checkpoint_id
        if self._is_in_vain(checkpoint_id):
            return
        channels = [channel for each in taken.in_flight for channel in each.channels()]
        try:
            if self._storage is None:
                self._storage = self._make_storage()
            storage = self._storage.of_snapshot(barrier.options.target)
            base = self._base(barrier.options.builds_on)
            snapshot = write_snapshot(storage, barrier, self._task, taken.frozen, base, channels)
            if self._had_finished:
                snapshot = replace(snapshot, had_finished=True)
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
            self.decline(checkpoint_id, error)
        else:
            metrics = replace(
                taken.metrics,
                async_ms=round((self._clock.monotonic() - taken.frozen_at) * 1000),
                in_flight=sum(each.handle.length for each in snapshot.channels),
            )
            self._send(SnapshotTaken(checkpoint_id, snapshot, metrics))

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

    def __repr__(self) -> str:
        return f"<SnapshotWriter of {self._task.subtask_name}>"


def abandon(recordings: Iterable[ChannelRecording]) -> None:
    """Nobody needs what they gather."""
    for each in recordings:
        each.abandon()
