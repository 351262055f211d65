"""Where a job goes on that another JobManager has run: at its newest checkpoint, or not at all, if
it was stopping with a savepoint."""

from __future__ import annotations

from contextlib import suppress

import pytest

from flinkpy.actors.job_master.recovery_point import where_to_go_on
from flinkpy.actors.job_store import JobStore
from flinkpy.core.elements import CheckpointOptions, SnapshotType
from flinkpy.core.errors import CheckpointDamagedError, FencingError
from flinkpy.core.ids import FencingToken, JobId
from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.scheduler.protocol import RestoreFrom, SnapshotRequested
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage
from flinkpy.state.checkpoints.fenced_store import FencedStore
from flinkpy.testing.simulation.simulated_file_store import (
    HAPPENS,
    Happens,
    SimulatedFileStore,
    StorageCrash,
    StorageFault,
    fault_at,
)

JOB, TARGET = JobId("ab12"), "simulated://store/savepoints/mine"
STOP = SnapshotRequested("mine", CheckpointOptions(SnapshotType.SUSPEND, TARGET))


class Leader:
    """A JobManager, in a term of its own."""

    def __init__(self, files: SimulatedFileStore) -> None:
        store = FencedStore(files, "simulated://store/ha")
        term = store.take_term(FencingToken("x"))
        self.store, self.generation = JobStore(store, term), term.number - 1
        self.storage = CheckpointStorage.of(
            {"execution.checkpointing.dir": "simulated://store/checkpoints"},
            JOB,
            lambda location: files,
        )

    def take(self, checkpoint_id: int, target: str | None = None) -> CompletedCheckpoint:
        return self.storage.of_snapshot(target).store(CompletedCheckpoint(checkpoint_id, 0, {}))

    def find(self) -> RestoreFrom | None:
        return where_to_go_on(JOB, self.storage, self.store, self.generation)


def test_a_job_without_checkpoints_begins_anew() -> None:
    assert Leader(SimulatedFileStore()).find() is None


def test_a_job_goes_on_at_its_newest_checkpoint_and_owns_the_older_ones() -> None:
    first, second = (Leader(files := SimulatedFileStore())).take(1), Leader(files).take(2)
    assert Leader(files).find() == RestoreFrom(second, is_own=True, older=(first,))


def test_a_checkpoint_that_appears_when_another_one_runs_the_job_counts_for_nobody() -> None:
    """Tasks of that other one may have cleared away what sinks had prepared for it."""
    slow = Leader(files := SimulatedFileStore())
    first = slow.take(1)
    second = Leader(files)
    assert second.find() == RestoreFrom(first, is_own=True)
    slow.take(2)
    assert second.find() == RestoreFrom(first, is_own=True)
    own = second.take(2001)
    third = Leader(files)
    assert third.find() == RestoreFrom(own, is_own=True, older=(first,))
    second.take(2002)
    newest = third.take(5001)
    assert Leader(files).find() == RestoreFrom(newest, is_own=True, older=(first, own))


def test_a_first_checkpoint_that_appears_when_the_job_has_begun_anew_counts_for_nobody() -> None:
    slow = Leader(files := SimulatedFileStore())
    assert Leader(files).find() is None
    slow.take(1)
    assert Leader(files).find() is None


def test_who_finds_a_job_and_leads_no_more_starts_nothing() -> None:
    late = Leader(files := SimulatedFileStore())
    late.take(1)
    Leader(files)
    with pytest.raises(FencingError):
        late.find()


def test_a_job_that_was_stopping_starts_from_its_savepoint_which_is_not_its_own() -> None:
    leader = Leader(files := SimulatedFileStore())
    checkpoint = leader.take(1)
    leader.store.stop(JOB, STOP)
    savepoint = leader.take(2, TARGET)
    assert (
        Leader(files).find()
        == Leader(files).find()
        == RestoreFrom(savepoint, older=(checkpoint,), stops=STOP)
    )


def test_a_savepoint_that_was_not_completed_counts_for_nobody_and_leaves_nothing() -> None:
    leader = Leader(files := SimulatedFileStore())
    checkpoint = leader.take(1)
    leader.store.stop(JOB, STOP)
    files.files[f"{TARGET}/state"] = b"half of it"
    assert Leader(files).find() == RestoreFrom(checkpoint, is_own=True)
    assert not [file for file in files.files if file.startswith(TARGET) or "stopping" in file]
    leader.take(2, TARGET)  # by one that has not noticed that others lead
    assert Leader(files).find() == RestoreFrom(checkpoint, is_own=True)


def test_a_job_does_not_go_on_behind_a_savepoint_that_is_damaged() -> None:
    leader = Leader(files := SimulatedFileStore())
    leader.take(1)
    leader.store.stop(JOB, STOP)
    leader.take(2, TARGET)
    files.files[f"{TARGET}/_metadata"] = b"{"
    with pytest.raises(CheckpointDamagedError, match="savepoints/mine"):
        Leader(files).find()


@pytest.mark.parametrize("happens", HAPPENS)
@pytest.mark.parametrize("step", range(16))
def test_whatever_step_the_process_dies_in_a_savepoint_that_was_told_of_is_found(
    step: int, happens: Happens
) -> None:
    """Half a manifest is never seen, as on disks and in object stores."""
    leader = Leader(files := SimulatedFileStore())
    checkpoint, savepoint = leader.take(1), None
    files.faults = fault_at(
        files.steps + step, StorageFault("nothing" if happens == "half" else happens, crashes=True)
    )
    with suppress(StorageCrash):
        leader.store.stop(JOB, STOP)
        savepoint = leader.take(2, TARGET)
    files.restart()
    found = Leader(files).find()
    assert found is not None
    assert Leader(files).find() == found
    assert found.checkpoint.checkpoint_id == 2 or (
        savepoint is None and found == RestoreFrom(checkpoint, is_own=True)
    )
