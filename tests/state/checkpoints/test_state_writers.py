"""What a subtask writes for a checkpoint: small state into handles, large state into one file; and
all is read back."""

from __future__ import annotations

import doctest
import zlib
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from flinkpy.core.errors import CheckpointDamagedError, EngineError, ResourceUnavailableError
from flinkpy.graph.checkpoints import StateHandle
from flinkpy.state.checkpoints import state_reader, state_writer
from flinkpy.state.checkpoints.file_store import Chunk
from flinkpy.state.checkpoints.local_file_store import LocalFileStore
from flinkpy.state.checkpoints.state_reader import StateReader
from flinkpy.state.checkpoints.state_writer import FileStateWriter, InlineStateWriter
from flinkpy.testing.simulation.simulated_file_store import (
    SimulatedFileStore,
    StorageFault,
    fault_at,
)

FOLDER = "/checkpoints/job/chk-1"
FILE = f"{FOLDER}/map-0-0"


@pytest.fixture
def store() -> SimulatedFileStore:
    return SimulatedFileStore()


def file_writer(store: SimulatedFileStore, threshold: int = 10) -> FileStateWriter:
    return FileStateWriter(store, FOLDER, "map-0-0", threshold)


def test_state_below_the_threshold_stays_in_its_handle_and_makes_no_file(
    store: SimulatedFileStore,
) -> None:
    with file_writer(store) as writer:
        assert writer.write(b"123456789") == StateHandle(
            9, zlib.crc32(b"123456789"), data=b"123456789"
        )
        assert writer.write([b"1234", b"", b"5678"]).data == b"12345678"
        assert writer.write([]) == StateHandle(0, 0, data=b"")
    assert store.files == {}


def test_state_from_the_threshold_on_stands_in_one_file_piece_after_piece(
    store: SimulatedFileStore,
) -> None:
    with file_writer(store) as writer:
        first = writer.write(b"0123456789")
        small = writer.write(b"small")
        second = writer.write([b"abc", b"defghi", bytearray(b"jklmnop")])
        third = writer.write(memoryview(b"ABCDEFGHIJKLM"))
    assert store.files == {FILE: b"0123456789abcdefghijklmnopABCDEFGHIJKLM"}
    assert first == StateHandle(10, zlib.crc32(b"0123456789"), path="map-0-0", offset=0)
    assert second == StateHandle(16, zlib.crc32(b"abcdefghijklmnop"), path="map-0-0", offset=10)
    assert third.offset == 26
    read = [StateReader(store, FOLDER).read(handle) for handle in (first, small, second, third)]
    assert read == [b"0123456789", b"small", b"abcdefghijklmnop", b"ABCDEFGHIJKLM"]


def test_buffers_of_numbers_are_written_as_their_bytes(store: SimulatedFileStore) -> None:
    numbers = array("q", range(10))
    with file_writer(store) as writer:
        handle = writer.write(memoryview(numbers))
    assert StateReader(store, FOLDER).read(handle) == numbers.tobytes()


def test_a_chunk_may_be_used_again_by_who_made_it(store: SimulatedFileStore) -> None:
    def chunks() -> Iterator[Chunk]:
        buffer = bytearray(4)
        for number in range(5):
            buffer[:] = bytes([number] * 4)
            yield buffer

    with file_writer(store) as writer:
        handle = writer.write(chunks())
    wanted = bytes(number for number in range(5) for _ in range(4))
    assert StateReader(store, FOLDER).read(handle) == wanted
    assert InlineStateWriter(100).write(chunks()).data == wanted


def test_the_file_is_not_there_before_the_writer_is_closed(store: SimulatedFileStore) -> None:
    writer = file_writer(store)
    writer.write(b"0123456789")
    assert store.files == {}
    writer.close()
    assert store.files == {FILE: b"0123456789"}


def test_an_aborted_writer_leaves_nothing_whether_it_was_closed_or_not(
    store: SimulatedFileStore,
) -> None:
    for close in (True, False):
        writer = file_writer(store)
        writer.write(b"0123456789")
        if close:
            writer.close()
        writer.abort()
        writer.abort()
        assert store.files == {}


def test_an_aborted_writer_leaves_no_file_under_another_name(tmp_path: Path) -> None:
    writer = FileStateWriter(LocalFileStore(), str(tmp_path), "map-0-0", 10)
    writer.write(b"0123456789")
    assert len(list(tmp_path.iterdir())) == 1
    writer.abort()
    assert list(tmp_path.iterdir()) == []


def test_state_that_fails_half_way_aborts_the_writer(store: SimulatedFileStore) -> None:
    def chunks() -> Iterator[Chunk]:
        yield b"0123456789"
        raise RuntimeError("no more of it")

    writer = file_writer(store)
    writer.write(b"9876543210")
    with pytest.raises(RuntimeError, match="no more of it"):
        writer.write(chunks())
    for again in (lambda: writer.write(b"more"), writer.close):
        with pytest.raises(EngineError, match="closed or aborted"):
            again()
    assert store.files == {}


def test_an_error_within_the_context_aborts_the_writer(store: SimulatedFileStore) -> None:
    writer = file_writer(store)

    def fail() -> None:
        with writer:
            writer.write(b"0123456789")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert store.files == {}


@pytest.mark.parametrize("step", range(4))
def test_a_store_that_fails_leaves_no_file_of_a_subtask(
    store: SimulatedFileStore, step: int
) -> None:
    store.faults = fault_at(step, StorageFault("nothing"))
    with pytest.raises(OSError, match="the store fails"), file_writer(store) as writer:
        writer.write([b"0123456789", b"0123456789"])
    assert store.files == {}


def test_state_too_large_for_the_jobmanagers_memory_is_refused_and_the_options_are_named() -> None:
    with InlineStateWriter(10) as writer:
        assert writer.write([b"01234", b"56789"]).data == b"0123456789"
    with (
        InlineStateWriter(10) as writer,
        pytest.raises(ResourceUnavailableError, match="more than 10 bytes") as error,
    ):
        writer.write([b"01234", b"567890"])
    assert "execution.checkpointing.dir" in str(error.value)
    assert "execution.checkpointing.jobmanager.max-state-size" in str(error.value)


def test_a_reader_says_which_file_is_damaged_and_what_it_should_be(
    store: SimulatedFileStore,
) -> None:
    with file_writer(store) as writer:
        handle = writer.write(b"0123456789")
    for damaged, found in (
        (b"0123456788", "10 bytes with the checksum"),
        (b"012345678", "9 bytes with the checksum"),
    ):
        store.files[FILE] = damaged
        with pytest.raises(
            CheckpointDamagedError, match=f"10 bytes from 0 on with the checksum.*{found}"
        ) as error:
            StateReader(store, FOLDER).read(handle)
        assert error.value.file == FILE
    del store.files[FILE]
    with pytest.raises(CheckpointDamagedError, match="at least 10 bytes, found no such file"):
        StateReader(store, FOLDER).read(handle)


def test_an_emptied_file_is_damaged_even_where_its_checksum_is_that_of_nothing(
    store: SimulatedFileStore,
) -> None:
    state = b"\x9d\x0a\xd9\x6d"
    assert zlib.crc32(state) == zlib.crc32(b"")
    store.files[FILE] = b""
    with pytest.raises(CheckpointDamagedError, match="found 0 bytes"):
        StateReader(store, FOLDER).read(StateHandle(4, 0, path="map-0-0"))


def test_state_in_a_handle_is_checked_too() -> None:
    with pytest.raises(CheckpointDamagedError, match="state in the manifest"):
        StateReader().read(StateHandle(3, zlib.crc32(b"abc"), data=b"abd"))


def test_a_store_that_fails_while_it_is_read_is_not_taken_for_damage(
    store: SimulatedFileStore,
) -> None:
    with file_writer(store) as writer:
        handle = writer.write(b"0123456789")
    store.faults = fault_at(store.steps, StorageFault("nothing"))
    with pytest.raises(OSError, match="the store fails"):
        StateReader(store, FOLDER).read(handle)


@pytest.mark.parametrize(
    "path", ["", ".", "..", "/etc/passwd", "../chk-2/map-0-0", "../shared/../x", "../shared/"]
)
def test_a_handle_leads_to_no_file_outside_its_checkpoint(
    store: SimulatedFileStore, path: str
) -> None:
    with pytest.raises(CheckpointDamagedError, match="files of its own"):
        StateReader(store, FOLDER).read(StateHandle(1, 0, path=path))


def test_a_handle_may_lead_to_a_file_that_checkpoints_share(store: SimulatedFileStore) -> None:
    store.files["/checkpoints/job/shared/x.sst"] = b"abc"
    assert (
        StateReader(store, FOLDER).read(StateHandle(3, zlib.crc32(b"abc"), path="../shared/x.sst"))
        == b"abc"
    )


@pytest.mark.parametrize("module", [state_writer, state_reader])
def test_the_examples_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
