"""Snapshots that are compressed: smaller, and read by jobs that compress and by those that do
not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.errors import CheckpointDamagedError
from flinkpy.core.ids import JobId
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage
from flinkpy.state.checkpoints.compression import ZSTD, compressed, decompressed
from flinkpy.state.checkpoints.state_writer import FileOnDisk
from flinkpy.state.checkpoints.stored_checkpoints import load_checkpoint
from flinkpy.state.checkpoints.stores_of_locations import file_store_of

pytestmark = pytest.mark.finding("gaps G10")

COMPRESS = "execution.checkpointing.snapshot-compression"
KEYS = 500


@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(1, 5))
def test_what_is_compressed_comes_back_however_it_was_cut(chunks: list[bytes], times: int) -> None:
    stored = b"".join(compressed(chunks * times))
    assert b"".join(decompressed(stored, "here")) == b"".join(chunks * times)


def test_more_than_a_block_comes_back_and_damage_is_told_by_its_place() -> None:
    data = bytes(range(256)) * 10_000
    stored = b"".join(compressed([data[:100], data[100:]]))
    assert b"".join(decompressed(stored, "here")) == data
    for damaged in (stored[:-1], stored[:5], b"\xff" * 8 + stored):
        with pytest.raises(CheckpointDamagedError, match="the/file"):
            list(decompressed(damaged, "the/file"))


@pytest.mark.parametrize("directory", [True, False])
def test_each_way_of_writing_is_compressed_but_for_files_that_are_linked(
    tmp_path: Path, directory: bool
) -> None:
    options: dict[str, Any] = {COMPRESS: "true"} | (
        {"execution.checkpointing.dir": str(tmp_path)} if directory else {}
    )
    storage = CheckpointStorage.of(options, JobId("job"))
    data, file = b"state " * 20_000, tmp_path / "000001.sst"
    file.write_bytes(data)
    with storage.state_writer(1, "map", 0) as writer:
        handles = [
            writer.write(data),
            *writer.share([data, b"small"]),
            *writer.write_together([[data], [b"", b"x"]]),
        ]
        (linked,) = writer.share([FileOnDisk(str(file))])
    reader = storage.reader(str(tmp_path / "job" / "chk-1") if directory else None)
    assert [reader.read(handle) for handle in handles] == [data, data, b"small", data, b"x"]
    assert {handle.codec for handle in handles} == {ZSTD}
    assert max(handle.length for handle in handles) < len(data) / 50
    assert (reader.read(linked), linked.codec, linked.length) == (data, None, len(data))


def counting(
    folder: Path, *, compresses: bool, backend: str, rate: float, path: str | None = None
) -> StreamExecutionEnvironment:
    """Each key's records and their texts are kept; their number goes to a file."""
    from flinkpy.connectors.files.writing.file_sink import FileSink

    env = StreamExecutionEnvironment.get_execution_environment()
    env.configure(
        {
            "execution.checkpointing.interval": "1 h",
            COMPRESS: compresses,
            "state.backend.type": backend,
        }
    )
    if path is not None:
        env.configure({"execution.state-recovery.path": path})
    numbers = env.generate(
        lambda index: (index % KEYS, "much the same text, " * 20, 1), count=KEYS * 4, rate=rate
    ).uid("numbers")
    counts = (
        numbers.key_by(lambda each: each[0])
        .reduce(lambda one, other: (one[0], one[1], one[2] + other[2]))
        .uid("counts")
    )
    counts.map(lambda each: f"{each[0]} {each[2]}").uid("texts").sink_to(
        FileSink(folder / "out")
    ).uid("out")
    return env


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("first", [False, True])
def test_a_job_goes_on_from_a_snapshot_of_the_other_form(
    tmp_path: Path, backend: str, first: bool
) -> None:
    path = None
    for compresses in (first, not first):
        client = counting(
            tmp_path, compresses=compresses, backend=backend, rate=KEYS * 4, path=path
        ).execute_async()
        while not has_keys(client.trigger_savepoint(str(tmp_path / "savepoints")).result()):
            pass
        path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
        assert {handle.codec for handle in savepoint_at(path).handles()} == {
            ZSTD if compresses else None
        }
    counting(tmp_path, compresses=first, backend=backend, rate=1e6, path=path).execute()
    assert lines(tmp_path) == sorted(
        f"{key} {count}" for key in range(KEYS) for count in range(1, 5)
    )


def savepoint_at(path: str) -> CompletedCheckpoint:
    return load_checkpoint(file_store_of(path), path)


def has_keys(path: str) -> bool:
    return any(
        state.has_keys
        for each in savepoint_at(path).operators.values()
        for state in each.subtasks.values()
    )


def lines(folder: Path) -> list[str]:
    found = (folder / "out").rglob("part-*") if (folder / "out").exists() else []
    return sorted(line for file in found for line in file.read_text().splitlines())
