"""Files that several checkpoints use: written once, named once, read from any of them, and deleted
when told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from flinkpy.core.errors import CheckpointDamagedError
from flinkpy.core.ids import JobId, OperatorId
from flinkpy.graph.checkpoints import (
    CompletedCheckpoint,
    KeyedPieces,
    OperatorCheckpoint,
    OperatorSubtaskState,
    StateHandle,
)
from flinkpy.state.checkpoints.checkpoint_storage import (
    CheckpointStorage,
    FileCheckpointStorage,
    MemoryCheckpointStorage,
)
from flinkpy.state.checkpoints.local_file_store import LocalFileStore
from flinkpy.state.checkpoints.state_reader import location_of

JOB, OTHER = JobId("5f3a0c9e" * 4), JobId("0d15ea5e" * 4)
LARGE, SMALL = bytes(range(256)) * 4, b"small"


def storage_in(folder: Path, job_id: JobId = JOB) -> FileCheckpointStorage:
    return FileCheckpointStorage(str(folder), job_id, threshold=100)


def shared(
    storage: CheckpointStorage, checkpoint_id: int, *states: bytes
) -> tuple[StateHandle, ...]:
    with storage.state_writer(checkpoint_id, "0a-0", 0) as writer:
        return writer.share(states)


def stored(
    storage: CheckpointStorage, checkpoint_id: int, *handles: StateHandle
) -> CompletedCheckpoint:
    pieces = KeyedPieces(
        "rocksdb", {f"{number:06}.sst": handle for number, handle in enumerate(handles)}
    )
    operator = OperatorCheckpoint("A", 1, 128, {0: OperatorSubtaskState(pieces=pieces)})
    return storage.store(CompletedCheckpoint(checkpoint_id, 0, {OperatorId("a"): operator}))


def files(storage: FileCheckpointStorage) -> set[str]:
    return {each.name for each in Path(storage.job_dir, "shared").iterdir()}


def test_a_later_checkpoint_reads_what_an_earlier_one_has_shared(tmp_path: Path) -> None:
    storage = storage_in(tmp_path)
    (handle,) = shared(storage, 1, LARGE)
    first, second = stored(storage, 1, handle), stored(storage, 2, handle)
    storage.discard(first)
    found = storage.load(str(second.location))
    assert found == second
    assert storage.reader(second.location).read(handle) == LARGE
    assert found.shared_files() == {handle.shared_file} == files(storage)


def test_pieces_that_are_written_together_are_in_one_file(tmp_path: Path) -> None:
    storage = storage_in(tmp_path)
    handles = shared(storage, 1, LARGE, b"", SMALL, LARGE[:7])
    (checkpoint,) = [stored(storage, 1, *handles)]
    assert [storage.reader(checkpoint.location).read(each) for each in handles] == [
        LARGE,
        b"",
        SMALL,
        LARGE[:7],
    ]
    assert len(files(storage)) == 1


@pytest.mark.parametrize("in_memory", [True, False])
def test_small_pieces_stay_in_their_handles(in_memory: bool, tmp_path: Path) -> None:
    storage = MemoryCheckpointStorage() if in_memory else storage_in(tmp_path)
    handles = shared(storage, 1, SMALL, b"")
    assert [(each.data, each.shared_file) for each in handles] == [(SMALL, None), (b"", None)]
    assert storage.reader(None).read(handles[0]) == SMALL


def test_the_same_bytes_written_twice_are_two_files(tmp_path: Path) -> None:
    storage = storage_in(tmp_path)
    (one,), (other,) = shared(storage, 1, LARGE), shared(storage, 1, LARGE)
    assert one.shared_file != other.shared_file


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    storage = storage_in(tmp_path)
    writer = storage.state_writer(1, "0a-0", 0)
    writer.share([LARGE])

    def breaks() -> Iterator[bytes]:
        yield LARGE
        raise ValueError("the second piece cannot be read")

    with pytest.raises(ValueError, match="second piece"):
        writer.share([LARGE, breaks()])
    assert files(storage) == set()


def test_a_checkpoint_that_was_aborted_takes_its_files_with_it_and_no_others(
    tmp_path: Path,
) -> None:
    storage = storage_in(tmp_path)
    (kept,), (gone,), (late,) = (shared(storage, number, LARGE) for number in (1, 17, 17))
    storage.discard_handles(17, [kept, late])  # what an acknowledgement named that came too late
    assert files(storage) == {kept.shared_file, gone.shared_file}
    storage.discard_unfinished(17)  # nobody has said that ``gone`` is there
    assert files(storage) == {kept.shared_file}


def test_files_are_deleted_by_name_and_twice_does_no_harm(tmp_path: Path) -> None:
    storage = storage_in(tmp_path)
    (one,), (other,) = shared(storage, 1, LARGE), shared(storage, 1, LARGE)
    for _ in range(2):
        storage.discard_shared([one.shared_file or ""])
        assert files(storage) == {other.shared_file}


def test_at_the_end_only_files_of_the_checkpoints_that_are_kept_remain(tmp_path: Path) -> None:
    storage = storage_in(tmp_path)
    (kept,) = shared(storage, 1, LARGE)
    shared(storage, 2, LARGE)  # by a task that died before it could say so
    stored(storage, 1, kept)
    storage.discard_others([1], {kept.shared_file or ""})
    assert files(storage) == {kept.shared_file}
    storage.discard_others([])
    assert not Path(storage.job_dir).exists()


def own_storage(kind: str, tmp_path: Path) -> CheckpointStorage:
    return storage_in(tmp_path) if kind == "files" else MemoryCheckpointStorage()


@pytest.mark.parametrize("kind", ["files", "memory"])
def test_of_another_jobs_files_those_stay_that_its_other_checkpoints_name(
    kind: str, tmp_path: Path
) -> None:
    other, own = storage_in(tmp_path, OTHER), own_storage(kind, tmp_path)
    (both,), (last,) = shared(other, 1, LARGE), shared(other, 2, LARGE)
    stored(other, 1, both)
    claimed = stored(other, 2, both, last)
    assert not own.is_own(claimed.location)
    assert other.is_own(claimed.location)
    own.discard_shared(claimed.shared_files(), claimed.location)
    assert files(other) == {both.shared_file}


@pytest.mark.parametrize("kind", ["files", "memory"])
def test_of_a_claimed_checkpoint_that_was_another_jobs_last_no_folder_stays(
    kind: str, tmp_path: Path
) -> None:
    other, own = storage_in(tmp_path, OTHER), own_storage(kind, tmp_path)
    (only,) = shared(other, 1, LARGE)
    claimed = stored(other, 1, only)
    own.discard(claimed)
    own.discard_shared(claimed.shared_files(), claimed.location)
    assert not Path(other.job_dir).exists()


@pytest.mark.parametrize("names", ["a link", "a copy"])
def test_a_piece_is_fetched_into_a_file_of_its_own(
    names: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, inode = storage_in(tmp_path), os.stat
    if names == "a copy":
        monkeypatch.setattr(LocalFileStore, "link", lambda *arguments: False)
    alone, (first, second) = shared(storage, 1, LARGE)[0], shared(storage, 1, LARGE, LARGE[:500])
    checkpoint = stored(storage, 1, alone, first, second)
    reader = storage.reader(checkpoint.location)
    for number, (handle, wanted) in enumerate(
        [(alone, LARGE), (first, LARGE), (second, LARGE[:500])]
    ):
        path = tmp_path / f"fetched-{number}"
        reader.fetch({str(path): handle})
        assert path.read_bytes() == wanted
    where = Path(location_of(str(checkpoint.location), alone))
    assert (inode(where).st_ino == inode(tmp_path / "fetched-0").st_ino) == (names == "a link")
    where.write_bytes(LARGE[:-1] + b"\0")
    with pytest.raises(CheckpointDamagedError, match=str(where)):
        reader.fetch({str(tmp_path / "fetched-3"): alone})


@pytest.mark.parametrize("damage", [b"", LARGE[:-1], LARGE[:-1] + b"\0"])
def test_a_damaged_shared_file_is_reported_by_name(damage: bytes, tmp_path: Path) -> None:
    storage = storage_in(tmp_path)
    (handle,) = shared(storage, 1, LARGE)
    checkpoint = stored(storage, 1, handle)
    where = Path(location_of(str(checkpoint.location), handle))
    where.write_bytes(damage)
    with pytest.raises(CheckpointDamagedError, match=str(where)):
        storage.reader(checkpoint.location).read(handle)
    where.unlink()
    with pytest.raises(CheckpointDamagedError, match=str(where)):
        storage.reader(checkpoint.location).read(handle)
