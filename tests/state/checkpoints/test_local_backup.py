"""Copies on a worker's disk: whatever becomes of them, who reads a checkpoint gets what was
written; and none stays longer than it is needed."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.errors import CheckpointDamagedError
from flinkpy.core.ids import JobId
from flinkpy.graph.checkpoints import StateHandle
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.state.checkpoints.local_backup import BackupFolder, LocalBackup
from flinkpy.state.checkpoints.local_file_store import LocalFileStore
from flinkpy.state.checkpoints.own_folder import OwnFolder
from flinkpy.state.checkpoints.state_reader import location_of
from flinkpy.state.checkpoints.state_writer import FileOnDisk
from flinkpy.testing.simulation.machine.simulated_disk import SimulatedDisk
from flinkpy.testing.simulation.simulated_file_store import (
    HAPPENS,
    SimulatedFileStore,
    StorageFault,
    fault_at,
)

STATES = st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=4)


class World:
    """A checkpoint storage, and the disk of one worker."""

    def __init__(
        self, store: SimulatedFileStore | None = None, disk: SimulatedFileStore | None = None
    ) -> None:
        self.store, self.disk = store or SimulatedFileStore(), disk or SimulatedFileStore()
        self.backup = LocalBackup(
            lambda: BackupFolder(self.disk, "disk", lambda: self.disk.delete_dir("disk"))
        )
        self.storage = FileCheckpointStorage(
            "/checkpoints",
            JobId("job"),
            threshold=0,
            stores=lambda _: self.store,
            backup=self.backup,
        )

    def save(
        self,
        checkpoint_id: int,
        states: list[bytes],
        shared: list[bytes] | None = None,
        base: tuple[StateHandle, ...] = (),
    ) -> list[StateHandle]:
        """A subtask writes these states, and refers to what is in ``base``."""
        with self.storage.state_writer(checkpoint_id, "0a-0", 0) as writer:
            handles = (
                [writer.write(state) for state in states]
                + list(writer.share(shared) if shared else ())
                + list(base)
            )
        self.storage.was_saved(checkpoint_id, handles)
        return handles

    def read(self, checkpoint_id: int, handles: list[StateHandle]) -> list[bytes]:
        reader = self.storage.reader(f"{self.storage.job_dir}/chk-{checkpoint_id}")
        return [reader.read(handle) for handle in handles]

    def forget_originals(self) -> None:
        self.store.files.clear()


def test_what_was_saved_on_this_worker_is_read_from_its_copies() -> None:
    world = World()
    handles = world.save(1, [b"one", b"two"], [b"three", b"four"])
    world.forget_originals()
    assert world.read(1, handles) == [b"one", b"two", b"three", b"four"]
    assert (world.backup.statistics.taken, world.backup.statistics.refused) == (4, 0)


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes | None]] = {
    "none": lambda data, chance: data,
    "gone": lambda data, chance: None,
    "cut short": lambda data, chance: data[: chance.randrange(len(data))],
    "too long": lambda data, chance: data + data,
    "altered": lambda data, chance: bytes([data[0] ^ 1 << chance.randrange(8)]) + data[1:],
    "another one": lambda data, chance: chance.randbytes(len(data)),
}


@settings(max_examples=200, deadline=None)
@given(
    st.lists(STATES, min_size=1, max_size=4),
    STATES,
    st.lists(st.sampled_from(sorted(DAMAGES)), min_size=1, max_size=5),
    st.randoms(use_true_random=False),
)
def test_whatever_becomes_of_the_copies_what_was_written_is_read(
    rounds: list[list[bytes]], shared: list[bytes], damages: list[str], chance: random.Random
) -> None:
    world, handles, last = World(), list[StateHandle](), 0
    base: tuple[StateHandle, ...] = ()
    for number, states in enumerate(rounds, 1):
        handles = world.save(number, states, shared if number == 1 else None, base)
        base, last = tuple(handle for handle in handles if handle.shared_file is not None), number
    for turn, copy in enumerate(sorted(world.disk.files)):
        damaged = DAMAGES[damages[turn % len(damages)]](world.disk.files.pop(copy), chance)
        if damaged is not None:
            world.disk.files[copy] = damaged
    expected = rounds[-1] + shared
    for _ in range(2):  # what was refused once is not asked again
        assert sorted(world.read(last, handles)) == sorted(expected)


def test_a_damaged_copy_is_dropped_and_one_without_an_original_is_an_error() -> None:
    world = World()
    handles = world.save(1, [b"one"])
    (copy,) = world.disk.files
    world.disk.files[copy] = b"two"
    assert world.read(1, handles) == [b"one"]
    assert world.disk.files == {}
    assert world.backup.statistics.refused == 1
    world.forget_originals()
    with pytest.raises(CheckpointDamagedError):
        world.read(1, handles)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["complete", "abort", "neither"])), max_size=8
    )
)
def test_after_each_end_of_a_checkpoint_there_are_copies_of_what_may_be_restored_and_of_nothing_else(
    ends: list[tuple[int, str]],
) -> None:
    world = World()
    files: dict[int, set[str]] = {}
    completed: int | None = None
    base: tuple[StateHandle, ...] = ()
    for number, (new_shared, end) in enumerate(ends, 1):
        handles = world.save(number, [b"own"], [bytes([number])] * new_shared, base)
        files[number] = {
            location_of(f"{world.storage.job_dir}/chk-{number}", handle) for handle in handles
        }
        if end == "complete":
            completed = number
            base = tuple(handle for handle in handles if handle.shared_file is not None)
            files = {number: files[number]}
        elif end == "abort":
            del files[number]
        if end != "neither":
            world.backup.checkpoint_ended(number, end == "complete")
            assert (
                world.backup.statistics.files
                == len(world.disk.files)
                == len(set[str]().union(*files.values()))
            )
        if completed is not None:
            assert files[completed] <= world.backup.locations


def test_a_savepoint_that_is_complete_drops_nothing() -> None:
    world = World()
    handles = world.save(1, [b"one"])
    world.backup.checkpoint_ended(1, True)
    savepoint = world.storage.of_snapshot("/savepoints/mine")
    with savepoint.state_writer(2, "0a-0", 0) as writer:
        savepoint.was_saved(2, [writer.write(bytes(100_000))])
    world.backup.checkpoint_ended(2, True)
    world.forget_originals()
    assert world.read(1, handles) == [b"one"]


def test_a_job_that_leaves_leaves_no_copies_and_makes_none_any_more() -> None:
    world = World()
    world.save(1, [b"one"])
    world.backup.close()
    assert world.disk.files == {}
    handles = world.save(2, [b"two"])
    assert world.disk.files == {}
    assert world.read(2, handles) == [b"two"]


def test_a_file_that_does_not_appear_has_no_copy() -> None:
    for step in range(3):
        for happens in HAPPENS:
            world = World(SimulatedFileStore(fault_at(step, StorageFault(happens))))
            with pytest.raises(OSError, match="the store fails"):
                world.save(1, [b"one"])
            assert (world.disk.files, world.backup.statistics.files) == ({}, 0)


@pytest.mark.parametrize("happens", HAPPENS)
@pytest.mark.parametrize("step", range(8))
def test_a_disk_that_fails_fails_no_checkpoint_and_no_restart(step: int, happens: str) -> None:
    world = World()
    world.disk.faults = fault_at(step, StorageFault(happens))  # type: ignore[arg-type]
    for number in (1, 2):
        handles = world.save(number, [b"one", b"two"])
        world.backup.checkpoint_ended(number, True)
        assert world.read(number, handles) == [b"one", b"two"]


@given(st.integers(0, 10_000))
@settings(max_examples=100, deadline=None)
def test_a_disk_that_fails_again_and_again_is_never_seen(seed: int) -> None:
    world = World(disk=SimulatedDisk(str(seed), 0.2))
    for number in range(1, 4):
        handles = world.save(number, [b"one", b"two"], [b"three"])
        world.backup.checkpoint_ended(number, True)
        assert world.read(number, handles) == [b"one", b"two", b"three"]


# -- on a real disk --------------------------------------------------------------------------------


class OnDisk:
    def __init__(self, folder: Path, *, far: bool = False) -> None:
        self.owned = OwnFolder(str(folder / "local"), "backups")
        self.backup = LocalBackup(
            lambda: BackupFolder(
                LocalFileStore(is_synced=False), str(self.owned.path), self.owned.remove
            )
        )
        self.storage = FileCheckpointStorage(
            str(folder / "checkpoints"),
            JobId("job"),
            threshold=0,
            stores=lambda _: FarStore() if far else LocalFileStore(),
            backup=self.backup,
        )

    @property
    def copies(self) -> list[Path]:
        return sorted(each for each in self.owned.path.iterdir() if each.name != "owner")


class FarStore(LocalFileStore):
    """A disk of another machine: nothing in it can be linked."""

    def link(self, location: str, path: str) -> bool:
        return False


def test_where_the_checkpoint_is_on_the_same_disk_copies_are_links(tmp_path: Path) -> None:
    world = OnDisk(tmp_path)
    for number in (1, 2):
        with world.storage.state_writer(number, "0a-0", 0) as writer:
            writer.write(b"one")
    originals = [tmp_path / "checkpoints" / "job" / f"chk-{number}" / "0a-0-0" for number in (1, 2)]
    assert [os.stat(copy).st_ino for copy in world.copies] == [
        os.stat(original).st_ino for original in originals
    ]


def test_state_that_is_in_a_file_of_the_disk_already_is_linked_and_restored_by_a_link(
    tmp_path: Path,
) -> None:
    world = OnDisk(tmp_path, far=True)
    table = tmp_path / "000017.sst"
    table.write_bytes(bytes(range(256)) * 10_000)
    with world.storage.state_writer(1, "0a-0", 0) as writer:
        (handle,) = writer.share([FileOnDisk(str(table))])
        own = writer.write(b"own")
    linked, written = world.copies
    assert os.stat(linked).st_ino == os.stat(table).st_ino
    assert written.read_bytes() == b"own"
    reader = world.storage.reader(f"{world.storage.job_dir}/chk-1")
    reader.fetch({str(tmp_path / "restored.sst"): handle, str(tmp_path / "own"): own})
    assert os.stat(tmp_path / "restored.sst").st_ino == os.stat(table).st_ino
    assert (tmp_path / "own").read_bytes() == b"own"
    assert world.backup.statistics.taken == 2


@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_a_damaged_copy_is_not_what_is_fetched(tmp_path: Path, damage: str) -> None:
    world, content = OnDisk(tmp_path, far=True), bytes(range(256)) * 10_000
    with world.storage.state_writer(1, "0a-0", 0) as writer:
        (handle,) = writer.share([content])
    (copy,) = world.copies
    copy.unlink()
    damaged = DAMAGES[damage](content, random.Random(1))
    if damaged is not None:
        copy.write_bytes(damaged)
    restored = tmp_path / "restored.sst"
    world.storage.reader(f"{world.storage.job_dir}/chk-1").fetch({str(restored): handle})
    assert restored.read_bytes() == content
    assert world.backup.statistics.taken == (damage in ("none", "too long"))
