"""Checkpoints are stored, found, loaded and removed: in files, and in the JobManager's memory."""

from __future__ import annotations

import doctest
import json
import logging
import pickle
import shutil
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from flinkpy.core.errors import (
    CheckpointDamagedError,
    ConfigurationError,
    ProgramError,
    ResourceUnavailableError,
)
from flinkpy.core.ids import JobId, OperatorId
from flinkpy.graph.checkpoints import CompletedCheckpoint, OperatorCheckpoint
from flinkpy.state.checkpoints import checkpoint_storage, manifest, stored_checkpoints
from flinkpy.state.checkpoints.checkpoint_storage import (
    CheckpointStorage,
    FileCheckpointStorage,
    MemoryCheckpointStorage,
)
from tests.state.checkpoints.written import JOB, NAME, THRESHOLD, contents, contents_of, written


@pytest.fixture
def storage(tmp_path: Path) -> FileCheckpointStorage:
    return FileCheckpointStorage(f"{tmp_path}/checkpoints", JOB, THRESHOLD)


@pytest.fixture
def job_dir(storage: FileCheckpointStorage) -> Path:
    return Path(storage.job_dir)


def stored(storage: CheckpointStorage, *checkpoint_ids: int) -> list[CompletedCheckpoint]:
    return [storage.store(written(storage, checkpoint_id)) for checkpoint_id in checkpoint_ids]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_stored_checkpoint_is_loaded_as_it_was(storage: FileCheckpointStorage) -> None:
    [checkpoint] = stored(storage, 17)
    assert checkpoint.location == f"{storage.job_dir}/chk-17"
    loaded = storage.load(checkpoint.location)
    assert loaded == checkpoint
    assert contents(storage, loaded) == contents_of(17)


def test_a_checkpoint_is_a_folder_with_a_file_for_each_writer_and_the_manifest(
    storage: FileCheckpointStorage, job_dir: Path
) -> None:
    stored(storage, 17)
    assert job_dir.name == JOB
    assert names(job_dir) == ["chk-17"]
    assert names(job_dir / "chk-17") == ["0a-0-0", "0a-1-0", "_metadata", "coordinator-0"]


def test_the_manifest_is_json_that_says_what_the_checkpoint_consists_of(
    storage: FileCheckpointStorage, job_dir: Path
) -> None:
    [checkpoint] = stored(storage, 17)
    fields = json.loads((job_dir / "chk-17" / "_metadata").read_text())
    assert (fields["format"], fields["version"], fields["job_id"]) == ("flinkpy checkpoint", 1, JOB)
    assert (fields["checkpoint_id"], fields["timestamp_ms"]) == (17, checkpoint.timestamp_ms)
    assert fields["state_size"] == sum(map(len, contents_of(17).values()))
    assert [
        (each["name"], each["parallelism"], each["max_parallelism"]) for each in fields["operators"]
    ] == [("Source: numbers", 2, 128), (NAME, 2, 128)]


def test_before_the_manifest_is_stored_there_is_no_checkpoint(
    storage: FileCheckpointStorage,
) -> None:
    stored(storage, 1)
    written(storage, 2)
    found = storage.latest()
    assert found is not None
    assert found.checkpoint_id == 1
    with pytest.raises(ProgramError, match="chk-2 is no checkpoint: it has no _metadata"):
        storage.load(f"{storage.job_dir}/chk-2")


def test_the_latest_checkpoint_is_the_one_of_the_highest_number(
    storage: FileCheckpointStorage,
) -> None:
    assert storage.latest() is None
    checkpoints = stored(storage, 9, 100, 11)
    assert storage.latest() == checkpoints[1]
    other = FileCheckpointStorage("/elsewhere", JobId("other"))
    assert other.latest(storage.job_dir) == checkpoints[1]


def test_a_damaged_checkpoint_is_reported_and_the_one_before_it_is_used(
    storage: FileCheckpointStorage, job_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, _ = stored(storage, 1, 2)
    manifest_file = job_dir / "chk-2" / "_metadata"
    manifest_file.write_bytes(manifest_file.read_bytes()[:-10])
    with caplog.at_level(logging.WARNING):
        assert storage.latest() == first
    assert "checkpoint 2 is passed over" in caplog.text
    assert str(manifest_file) in caplog.text


def test_a_file_among_the_folders_of_checkpoints_does_no_harm(
    storage: FileCheckpointStorage, job_dir: Path
) -> None:
    [checkpoint] = stored(storage, 1)
    (job_dir / "chk-2").write_text("a file")
    (job_dir / "chk-three").mkdir()
    assert storage.latest() == checkpoint


def test_the_folder_or_its_manifest_is_named(
    storage: FileCheckpointStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    [checkpoint] = stored(storage, 1)
    monkeypatch.chdir(storage.job_dir)
    folder = checkpoint.location
    for location in (f"{folder}/", f"{folder}/_metadata", f"file://{folder}", "chk-1"):
        assert contents(storage, storage.load(location)) == contents_of(1)


def test_a_folder_that_is_none_is_an_error_that_helps(
    storage: FileCheckpointStorage, tmp_path: Path
) -> None:
    stored(storage, 1, 2)
    with pytest.raises(ProgramError, match=r"is no checkpoint, but has some: .*chk-2$"):
        storage.load(storage.job_dir)
    with pytest.raises(ProgramError, match="there is no checkpoint /no/such/folder"):
        storage.load("/no/such/folder")
    with pytest.raises(ProgramError, match="is no checkpoint: it has no _metadata"):
        storage.load(str(tmp_path))


def test_a_folder_may_be_copied_and_moved(storage: FileCheckpointStorage, tmp_path: Path) -> None:
    [checkpoint] = stored(storage, 5)
    copy = shutil.copytree(str(checkpoint.location), tmp_path / "a copy")
    storage.discard(checkpoint)
    assert contents(storage, storage.load(str(copy))) == contents_of(5)


def test_a_manifest_in_the_folder_of_another_checkpoint_or_job_is_damage(
    storage: FileCheckpointStorage, tmp_path: Path
) -> None:
    [checkpoint] = stored(storage, 5)
    for copy, wanted in (
        (f"{storage.job_dir}/chk-6", "the manifest of checkpoint 6, found that of checkpoint 5"),
        (f"{tmp_path}/{'0' * 32}/chk-5", f"the manifest of job 0+, found that of job {JOB}"),
    ):
        shutil.copytree(str(checkpoint.location), copy)
        with pytest.raises(CheckpointDamagedError, match=wanted):
            storage.load(copy)


def with_checksum(body: str) -> bytes:
    return f'{body},"crc32":"{zlib.crc32(body.encode()):08x}"}}\n'.encode()


def test_a_version_not_known_is_an_error_and_nothing_older_is_taken_instead(
    storage: FileCheckpointStorage, job_dir: Path
) -> None:
    stored(storage, 1, 2)
    (job_dir / "chk-2" / "_metadata").write_bytes(
        with_checksum('{"format":"flinkpy checkpoint","version":2')
    )
    for attempt in (storage.latest, lambda: storage.load(f"{storage.job_dir}/chk-2")):
        with pytest.raises(
            ProgramError, match=r"_metadata is of version 2, this flinkpy reads version 1"
        ):
            attempt()


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[1",
        '{"a":1',
        '{"format":"other","version":1',
        '{"format":"flinkpy checkpoint","version":1',
    ],
)
def test_a_file_that_is_no_manifest_is_an_error_that_says_so(
    storage: FileCheckpointStorage, job_dir: Path, body: str
) -> None:
    stored(storage, 1)
    (job_dir / "chk-1" / "_metadata").write_bytes(with_checksum(body))
    with pytest.raises(CheckpointDamagedError, match="should be the manifest of a checkpoint"):
        storage.load(f"{storage.job_dir}/chk-1")


def test_a_checkpoint_is_not_stored_over_another_one(storage: FileCheckpointStorage) -> None:
    [checkpoint] = stored(storage, 1)
    with pytest.raises(FileExistsError):
        storage.store(replace(checkpoint, timestamp_ms=0))
    assert storage.latest() == checkpoint


def test_two_attempts_and_two_names_write_different_files(
    storage: FileCheckpointStorage, job_dir: Path
) -> None:
    writers = [
        ("map-0", 0),
        ("map-0", 1),
        ("map/0", 0),
        ("map_0", 0),
        ("map 0", 0),
        ("x" * 300, 0),
        ("..", 0),
    ]
    for name, attempt in writers:
        with storage.state_writer(1, name, attempt) as writer:
            handle = writer.write(bytes(THRESHOLD))
        assert storage.reader(f"{storage.job_dir}/chk-1").read(handle) == bytes(THRESHOLD)
    assert len(names(job_dir / "chk-1")) == 7


def test_what_is_discarded_goes_and_the_others_stay(
    storage: FileCheckpointStorage, job_dir: Path
) -> None:
    first, second = stored(storage, 1, 2)
    storage.discard(first)
    storage.discard(first)
    assert names(job_dir) == ["chk-2"]
    assert contents(storage, second) == contents_of(2)


def test_a_checkpoint_that_failed_is_removed(storage: FileCheckpointStorage, job_dir: Path) -> None:
    stored(storage, 1)
    written(storage, 2)
    storage.discard_unfinished(2)
    assert names(job_dir) == ["chk-1"]


def test_state_that_came_too_late_is_removed_and_shared_files_stay(
    storage: FileCheckpointStorage, job_dir: Path
) -> None:
    handles = [
        handle for handle in written(storage, 2).handles() if handle.path in (None, "0a-0-0")
    ]
    (job_dir / "shared").mkdir()
    (job_dir / "shared" / "x").touch()
    storage.discard_handles(2, [*handles, replace(handles[0], data=None, path="../shared/x")])
    assert names(job_dir / "chk-2") == ["0a-1-0", "coordinator-0"]
    assert names(job_dir / "shared") == ["x"]


def test_a_job_that_retains_nothing_leaves_nothing(
    storage: FileCheckpointStorage, job_dir: Path
) -> None:
    stored(storage, 1, 2)
    written(storage, 3)
    (job_dir / "shared").mkdir()
    other = FileCheckpointStorage(str(job_dir.parent), JobId("other"), THRESHOLD)
    [kept] = stored(other, 1)
    storage.discard_others(())
    storage.discard_others(())
    assert names(job_dir.parent) == ["other"]
    assert contents(other, kept) == contents_of(1)


def test_the_subtasks_that_had_finished_are_found_again(storage: FileCheckpointStorage) -> None:
    operators = {OperatorId("map"): OperatorCheckpoint("map", 3, 128, finished=frozenset({0, 2}))}
    checkpoint = storage.store(CompletedCheckpoint(1, 0, operators))
    assert storage.latest() == checkpoint


def test_only_what_is_kept_outlives_the_job(storage: FileCheckpointStorage, job_dir: Path) -> None:
    _, second = stored(storage, 1, 2)
    written(storage, 3)
    storage.discard_others((2,))
    assert names(job_dir) == ["chk-2"]
    assert contents(storage, second) == contents_of(2)
    memory = MemoryCheckpointStorage()
    _, second = stored(memory, 1, 2)
    memory.discard_others((2,))
    assert memory.latest() == second


def test_what_somebody_else_put_into_the_jobs_folder_stays(
    storage: FileCheckpointStorage, job_dir: Path
) -> None:
    stored(storage, 1)
    (job_dir / "notes.txt").touch()
    storage.discard_others(())
    assert names(job_dir) == ["notes.txt"]


def test_when_the_job_has_ended_unfinished_checkpoints_go_and_complete_ones_stay(
    storage: FileCheckpointStorage, job_dir: Path
) -> None:
    [kept] = stored(storage, 1)
    written(storage, 2)
    (job_dir / "chk-3").mkdir()
    storage.discard_others((1,))
    assert names(job_dir) == ["chk-1"]
    assert contents(storage, kept) == contents_of(1)
    storage.discard(kept)
    storage.discard_others(())
    storage.discard_others(())
    assert names(job_dir.parent) == []


def test_checkpoints_in_memory_are_stored_found_and_discarded() -> None:
    storage = MemoryCheckpointStorage()
    first, second = stored(storage, 1, 2)
    assert first.location is None
    assert storage.latest() == second
    assert contents(storage, second) == contents_of(2)
    with pytest.raises(FileExistsError):
        storage.store(second)
    storage.discard_handles(2, second.handles())
    storage.discard(second)
    assert storage.latest() == first
    storage.discard_others(())
    assert storage.latest() is None


def test_a_job_with_checkpoints_in_memory_starts_from_one_in_files(
    storage: FileCheckpointStorage,
) -> None:
    [checkpoint] = stored(storage, 3)
    in_memory = MemoryCheckpointStorage()
    assert contents(in_memory, in_memory.load(str(checkpoint.location))) == contents_of(3)
    assert in_memory.latest(storage.job_dir) == checkpoint


def test_storage_travels_to_the_workers(storage: FileCheckpointStorage) -> None:
    [checkpoint] = stored(storage, 1)
    assert pickle.loads(pickle.dumps(storage)).latest() == checkpoint
    assert pickle.loads(pickle.dumps(MemoryCheckpointStorage())).latest() is None


def test_the_error_of_damage_travels() -> None:
    error = pickle.loads(pickle.dumps(CheckpointDamagedError("a file", "3 bytes", "2 bytes")))
    assert str(error) == "the checkpoint is damaged: a file should be 3 bytes, found 2 bytes"


def test_the_options_choose_the_storage(tmp_path: Path) -> None:
    directory = {"execution.checkpointing.dir": str(tmp_path)}
    assert isinstance(CheckpointStorage.of({}, JOB), MemoryCheckpointStorage)
    assert isinstance(
        CheckpointStorage.of({"state.checkpoint-storage": "JobManager"}, JOB),
        MemoryCheckpointStorage,
    )
    for options in (directory, {**directory, "execution.checkpointing.storage": "filesystem"}):
        storage = CheckpointStorage.of(options, JOB)
        assert isinstance(storage, FileCheckpointStorage)
        assert storage.job_dir == f"{tmp_path}/{JOB}"
    with pytest.raises(ConfigurationError, match=r"filesystem needs execution\.checkpointing\.dir"):
        CheckpointStorage.of({"execution.checkpointing.storage": "filesystem"}, JOB)
    with pytest.raises(ConfigurationError, match="none of jobmanager, filesystem"):
        CheckpointStorage.of({"execution.checkpointing.storage": "tape"}, JOB)


def test_the_options_say_which_state_is_small_and_which_too_large(tmp_path: Path) -> None:
    directory = {"execution.checkpointing.dir": str(tmp_path)}
    files = CheckpointStorage.of(
        {**directory, "execution.checkpointing.data-inline-threshold": "1 kb"}, JOB
    )
    with files.state_writer(1, "map-0", 0) as writer:
        assert writer.write(bytes(1023)).path is None
        assert writer.write(bytes(1024)).path == "map-0-0"
    limit = {"execution.checkpointing.jobmanager.max-state-size": 1024}
    for options in (limit, {**limit, **directory, "execution.checkpointing.storage": "jobmanager"}):
        writer = CheckpointStorage.of(options, JOB).state_writer(1, "map-1", 0)
        assert writer.write(bytes(1024)).path is None
        with pytest.raises(ResourceUnavailableError, match=r"execution\.checkpointing\.dir"):
            writer.write(bytes(1025))


def test_state_in_memory_with_a_directory_goes_to_the_manifest_there(tmp_path: Path) -> None:
    storage = CheckpointStorage.of(
        {
            "execution.checkpointing.dir": str(tmp_path),
            "execution.checkpointing.storage": "jobmanager",
        },
        JOB,
    )
    stored(storage, 1)
    assert names(tmp_path / JOB / "chk-1") == ["_metadata"]
    assert contents(storage, storage.load(f"{tmp_path}/{JOB}/chk-1")) == contents_of(1)


@pytest.mark.wide
@pytest.mark.parametrize("module", [checkpoint_storage, manifest, stored_checkpoints])
def test_the_examples_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
