"""A store that fails, tears what is written, or takes the process along, in any step: a checkpoint
is there as a whole, or it is not there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress

import pytest

from flinkpy.core.errors import CheckpointDamagedError, ProgramError
from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.testing.simulation.simulated_file_store import (
    HAPPENS,
    FaultPlan,
    SimulatedFileStore,
    StorageCrash,
    StorageFault,
    fault_at,
    seeded_faults,
)
from tests.state.checkpoints.written import JOB, THRESHOLD, contents, contents_of, written

FAULTS = [StorageFault(happens, crashes) for happens in HAPPENS for crashes in (False, True)]
FAILURES = (OSError, StorageCrash)


def storage_in(store: SimulatedFileStore) -> FileCheckpointStorage:
    return FileCheckpointStorage("/checkpoints", JOB, THRESHOLD, stores=lambda location: store)


def with_one_checkpoint() -> tuple[SimulatedFileStore, CompletedCheckpoint]:
    store = SimulatedFileStore()
    storage = storage_in(store)
    return store, storage.store(written(storage, 1))


def next_checkpoint(
    storage: FileCheckpointStorage, old: CompletedCheckpoint, done: list[str]
) -> None:
    """What a job does: takes the next checkpoint, and releases the one before when that is
    stored."""
    unfinished = written(storage, 2)
    done.append("written")
    storage.store(unfinished)
    done.append("stored")
    storage.discard(old)
    done.append("discarded")


def run(faults: FaultPlan | None) -> tuple[SimulatedFileStore, list[str]]:
    """The store, and how far the job came before it was stopped by a fault."""
    store, old = with_one_checkpoint()
    store.restart(*[] if faults is None else [faults])
    store.steps = 0
    done: list[str] = []
    with suppress(*FAILURES):
        next_checkpoint(storage_in(store), old, done)
    return store, done


def check(store: SimulatedFileStore, done: list[str]) -> None:
    """A process that starts now finds one of the two checkpoints, as a whole; and what was reported
    as stored counts."""
    store.restart()
    storage = storage_in(store)
    found = storage.latest()
    assert found is not None
    assert found.checkpoint_id == 2 or "stored" not in done
    assert contents(storage, found) == contents_of(found.checkpoint_id)
    for checkpoint_id in (1, 2):
        with suppress(ProgramError, CheckpointDamagedError):
            loaded = storage.load(f"{storage.job_dir}/chk-{checkpoint_id}")
            assert contents(storage, loaded) == contents_of(checkpoint_id)


def steps_of_a_run() -> int:
    store, done = run(None)
    assert done == ["written", "stored", "discarded"]
    return store.steps


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_in_any_step_leaves_the_old_checkpoint_or_the_new_one(fault: StorageFault) -> None:
    steps = steps_of_a_run()
    assert steps > 15
    for step in range(steps):
        store, done = run(fault_at(step, fault))
        assert len(done) < 3, "the fault struck"
        check(store, done)


@pytest.mark.parametrize("seed", range(50))
def test_several_faults_leave_the_old_checkpoint_or_the_new_one(seed: int) -> None:
    check(*run(seeded_faults(random.Random(seed), 0.1)))


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_after_a_failed_checkpoint_is_discarded_the_old_one_is_the_latest(
    fault: StorageFault,
) -> None:
    for step in range(steps_of_a_run()):
        store, done = run(fault_at(step, fault))
        store.restart()
        storage = storage_in(store)
        if "stored" in done:
            continue
        storage.discard_unfinished(2)
        assert {file.split("/")[3] for file in store.files} == {"chk-1"}
        found = storage.latest()
        assert found is not None
        assert contents(storage, found) == contents_of(1)


def reading_faults() -> Iterator[FaultPlan]:
    for step in range(20):
        for crashes in (False, True):
            yield fault_at(step, StorageFault("nothing", crashes))


def test_a_store_that_does_not_answer_is_not_taken_for_one_without_the_newest_checkpoint() -> None:
    store, _ = with_one_checkpoint()
    storage = storage_in(store)
    storage.store(written(storage, 2))
    for faults in reading_faults():
        store.restart(faults)
        store.steps = 0
        try:
            found = storage.latest()
        except FAILURES:
            continue
        assert found is not None
        assert found.checkpoint_id == 2


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_while_a_job_is_removed_leaves_whole_checkpoints_or_none(
    fault: StorageFault,
) -> None:
    for step in range(20):
        store, _ = with_one_checkpoint()
        storage = storage_in(store)
        storage.store(written(storage, 2))
        store.restart(fault_at(step, fault))
        store.steps = 0
        with suppress(*FAILURES):
            storage.discard_others(())
        store.restart()
        found = storage.latest()
        if found is not None:
            assert contents(storage, found) == contents_of(found.checkpoint_id)
        storage.discard_others(())
        assert store.files == {}


def test_one_folder_that_cannot_be_removed_does_not_keep_the_others() -> None:
    store, _ = with_one_checkpoint()
    storage = storage_in(store)
    storage.store(written(storage, 2))
    store.restart(fault_at(1, StorageFault("nothing")))  # step 0 lists them
    store.steps = 0
    with pytest.raises(OSError, match="fails in step 1"):
        storage.discard_others(())
    assert {file.split("/")[-2] for file in store.files} == {"chk-2"}


def test_the_same_seed_gives_the_same_faults() -> None:
    def faults(seed: int) -> list[StorageFault | None]:
        strikes = seeded_faults(random.Random(seed), 0.3)
        return [strikes(step) for step in range(100)]

    assert faults(1) == faults(1) != faults(2)
    assert 10 < sum(fault is not None for fault in faults(1)) < 60


def test_what_a_dead_process_was_writing_is_lost() -> None:
    store = SimulatedFileStore()
    file = store.create("folder/file")
    store.restart()
    with pytest.raises(StorageCrash):
        file.close()
    assert store.files == {}
