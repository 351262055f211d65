"""What every file store promises, of the local disk, of Arrow with and without renames, and of the
simulation."""

from __future__ import annotations

import doctest
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from flinkpy.core.errors import ConfigurationError
from flinkpy.state.checkpoints import arrow_file_store, locations, stores_of_locations
from flinkpy.state.checkpoints.arrow_file_store import ArrowFileStore
from flinkpy.state.checkpoints.file_store import Chunk, FileStore
from flinkpy.state.checkpoints.local_file_store import LocalFileStore
from flinkpy.state.checkpoints.stores_of_locations import file_store_of
from flinkpy.testing.simulation import simulated_file_store
from flinkpy.testing.simulation.simulated_file_store import SimulatedFileStore


def store_of(kind: str) -> FileStore:
    from pyarrow import fs

    if kind == "local":
        return LocalFileStore()
    if kind == "simulated":
        return SimulatedFileStore()
    if kind == "arrow mock":
        return ArrowFileStore(fs._MockFileSystem(), renames=False)
    return ArrowFileStore(fs.LocalFileSystem(), renames=kind == "arrow")


@pytest.fixture(params=["local", "arrow", "arrow in place", "arrow mock", "simulated"])
def store(request: pytest.FixtureRequest) -> FileStore:
    return store_of(str(request.param))


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return f"{tmp_path}/of checkpoints"


def test_a_file_is_read_as_it_was_written(store: FileStore, folder: str) -> None:
    store.write_atomically(f"{folder}/a/b", [b"0123", bytearray(b"45"), memoryview(b"6789")])
    assert store.read(f"{folder}/a/b") == b"0123456789"


def test_a_range_is_read_and_ends_where_the_file_ends(store: FileStore, folder: str) -> None:
    store.write_atomically(f"{folder}/file", [b"0123456789"])
    assert store.read(f"{folder}/file", 3, 4) == b"3456"
    assert store.read(f"{folder}/file", 8, 4) == b"89"
    assert store.read(f"{folder}/file", 20, 4) == b""
    assert store.read(f"{folder}/file", 4) == b"456789"
    assert store.read(f"{folder}/file", 20) == b""


def test_nobody_sees_a_file_before_it_is_closed(
    store: FileStore, folder: str, request: pytest.FixtureRequest
) -> None:
    file = store.create(f"{folder}/file")
    file.write(b"half")
    # a disk is no object store
    if "in place" not in request.node.name and "mock" not in request.node.name:
        assert not store.exists(f"{folder}/file")
    file.close()
    assert store.read(f"{folder}/file") == b"half"


def test_a_discarded_file_leaves_nothing(store: FileStore, folder: str) -> None:
    file = store.create(f"{folder}/file")
    file.write(b"half")
    file.discard()
    file.discard()
    assert store.list(folder) == []


def test_discarding_a_closed_file_does_nothing(store: FileStore, folder: str) -> None:
    file = store.create(f"{folder}/file")
    file.close()
    file.discard()
    assert store.read(f"{folder}/file") == b""


def test_chunks_that_fail_leave_no_file(store: FileStore, folder: str) -> None:
    def chunks() -> Iterator[Chunk]:
        yield b"half"
        raise RuntimeError("the other half")

    with pytest.raises(RuntimeError, match="the other half"):
        store.write_atomically(f"{folder}/file", chunks())
    assert store.list(folder) == []


def test_a_file_that_is_there_is_not_written_again(store: FileStore, folder: str) -> None:
    store.write_atomically(f"{folder}/file", [b"first"])
    with pytest.raises(FileExistsError):
        store.write_atomically(f"{folder}/file", [b"second"])
    assert store.read(f"{folder}/file") == b"first"
    assert store.list(folder) == ["file"]


@pytest.mark.parametrize("kind", ["local", "arrow", "simulated"])
def test_of_two_who_write_the_same_file_the_first_to_close_it_wins(kind: str, folder: str) -> None:
    store = store_of(kind)
    first, second = store.create(f"{folder}/file"), store.create(f"{folder}/file")
    first.write(b"first")
    second.write(b"second")
    first.close()
    with pytest.raises(FileExistsError):
        second.close()
    assert store.read(f"{folder}/file") == b"first"
    assert store.list(folder) == ["file"]


def test_a_missing_file_is_an_error_to_read_and_none_to_delete(
    store: FileStore, folder: str
) -> None:
    with pytest.raises(FileNotFoundError):
        store.read(f"{folder}/file")
    store.delete(f"{folder}/file")
    store.delete_dir(f"{folder}/more")
    assert store.list(f"{folder}/more") == []
    assert not store.exists(f"{folder}/file")


def test_a_folder_lists_what_is_directly_in_it_and_goes_with_all_of_it(
    store: FileStore, folder: str
) -> None:
    for name in ("b", "a", "more/c", "more/d/e"):
        store.write_atomically(f"{folder}/in/{name}", [b"x"])
    store.write_atomically(f"{folder}/index", [b"x"])
    assert store.list(f"{folder}/in") == ["a", "b", "more"]
    assert store.exists(f"{folder}/in/more")
    store.delete(f"{folder}/in/a")
    assert store.list(f"{folder}/in") == ["b", "more"]
    store.delete_dir(f"{folder}/in")
    assert not store.exists(f"{folder}/in/more/d/e")
    assert store.list(folder) == ["index"]


def test_a_local_file_is_synced_before_it_appears_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        synced.append(f"{kind}, {'seen' if (tmp_path / 'file').exists() else 'not seen'}")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    LocalFileStore().write_atomically(f"{tmp_path}/file", [b"x"])
    assert synced == ["file, not seen", "folder, seen"]


def test_a_disk_without_links_renames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: str) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", link)
    store, location = LocalFileStore(), f"{tmp_path}/file"
    first, second = store.create(location), store.create(location)
    first.close()
    with pytest.raises(FileExistsError):
        second.close()
    assert store.list(str(tmp_path)) == ["file"]


def test_a_read_that_comes_in_pieces_is_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pread
    LocalFileStore().write_atomically(f"{tmp_path}/file", [b"0123456789"])
    monkeypatch.setattr(
        os, "pread", lambda descriptor, length, offset: real(descriptor, min(length, 3), offset)
    )
    assert LocalFileStore().read(f"{tmp_path}/file", 1, 8) == b"12345678"
    assert LocalFileStore().read(f"{tmp_path}/file", 5, 100) == b"56789"


def test_a_file_url_means_a_path(tmp_path: Path) -> None:
    location = f"file://{tmp_path}/of%20checkpoints/file"
    file_store_of(location).write_atomically(location, [b"x"])
    assert (tmp_path / "of checkpoints" / "file").read_bytes() == b"x"


def test_buckets_of_object_stores_are_opened_once_and_by_hadoops_names_too() -> None:
    from pyarrow import fs

    store = file_store_of("s3a://bucket/a/b?region=eu-west-1")
    assert isinstance(store, ArrowFileStore)
    assert isinstance(store._system, fs.S3FileSystem)
    assert store is file_store_of("s3://bucket/c?region=eu-west-1")
    assert store._path("s3://bucket/a/my%20b?region=eu-west-1") == "bucket/a/my b"


def test_a_url_that_arrow_does_not_know_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigurationError, match="ftp://host"):
        file_store_of("ftp://host/checkpoints")


@pytest.mark.parametrize(
    "module", [locations, arrow_file_store, stores_of_locations, simulated_file_store]
)
def test_the_examples_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
