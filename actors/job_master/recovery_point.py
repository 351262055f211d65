"""Where a job goes on that a JobMaster takes over from one that has died."""

from __future__ import annotations

from flinkpy.actors.job_store import JobStore
from flinkpy.core.ids import JobId
from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.scheduler.checkpointing.checkpoint_numbers import first_number
from flinkpy.scheduler.protocol import RestoreFrom, SnapshotRequested
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage


def where_to_go_on(
    job_id: JobId, storage: CheckpointStorage, store: JobStore, generation: int
) -> RestoreFrom | None:
    """The savepoint that the job was stopping with, if it is complete; else the newest checkpoint;
    None if there is none. Blocks. Raises CheckpointDamagedError if that is not intact, FencingError
    if another JobManager leads, and OSError if the store fails.

    Sinks may have committed for the savepoint, and then the job can neither go back behind it nor
    read on: it ends, once they all have.

    What is found is kept before any task starts from it. A newer manifest may still appear, whose
    writer was slow or died, and the next JobManager must not go on from that: tasks of this one may
    have cleared away what sinks had prepared for it."""
    complete = store.counting(job_id, storage.complete())
    found = _being_stopped(job_id, storage, store, complete)
    if found is None and complete:
        found = RestoreFrom(complete[-1], is_own=True, older=complete[:-1])
    newest = None if found is None else found.checkpoint.checkpoint_id
    store.take(job_id, newest or 0, first_number(newest, generation))
    return found


def _being_stopped(
    job_id: JobId,
    storage: CheckpointStorage,
    store: JobStore,
    complete: tuple[CompletedCheckpoint, ...],
) -> RestoreFrom | None:
    stops = store.stopping(job_id)
    savepoint = None if stops is None else _complete_savepoint(stops, storage)
    if stops is None or savepoint is None:
        store.go_on(job_id)
        return None
    return RestoreFrom(savepoint, older=complete, stops=stops)


def _complete_savepoint(
    stops: SnapshotRequested, storage: CheckpointStorage
) -> CompletedCheckpoint | None:
    """None if it was not completed: then nothing of it stays."""
    of_savepoint = storage.of_snapshot(stops.options.target)
    for savepoint in of_savepoint.complete():
        return savepoint
    of_savepoint.discard_unfinished(0)
    return None
