"""The database's folder and its cache: what is deleted when, and what stays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import ProgramError
from flinkpy.state.checkpoints.own_folder import OwnFolder, remove_abandoned
from flinkpy.state.descriptors import ValueStateDescriptor
from flinkpy.state.rocksdb import slot_cache as rocksdb_slots

pytest.importorskip("rocksdict")

from flinkpy.state.rocksdb import database, file_handles
from flinkpy.state.rocksdb.database import RocksDBConfig, RocksDBStore
from flinkpy.state.rocksdb.file_handles import LEAST, OTHERS, most_open_files
from flinkpy.state.rocksdb.rocksdb_backend import RocksDBKeyedStateBackend

KILLED = """
import os, signal, sys
from flinkpy.state.rocksdb.database import RocksDBConfig, RocksDBStore
store = RocksDBStore(RocksDBConfig(sys.argv[1]))
store.write([(b"key", b"value")])
os.kill(os.getpid(), signal.SIGKILL)
"""


def folders(within: Path) -> list[str]:
    return sorted(path.name for path in within.iterdir())


def test_a_folder_is_there_while_its_backend_is_open(tmp_path: Path) -> None:
    backend = RocksDBKeyedStateBackend(
        128, range(128), ManualClock(), RocksDBConfig(str(tmp_path / "new"))
    )
    state: Any = backend.state(ValueStateDescriptor("v"))
    backend.current.key = "a"
    state.update(1)
    assert [str(tmp_path / "new" / name) for name in folders(tmp_path / "new")] == [
        backend.directory
    ]
    backend.close()
    assert folders(tmp_path / "new") == []


def test_what_a_killed_process_left_behind_is_removed_and_nothing_else(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=60)
    assert done.returncode < 0
    (abandoned,) = folders(tmp_path)
    (tmp_path / "flinkpy-rocksdb-of-an-older-release").mkdir()
    (tmp_path / "something else").mkdir()
    owned = OwnFolder(str(tmp_path))  # the first one of this process there
    assert abandoned not in folders(tmp_path)
    assert remove_abandoned(tmp_path) == []  # the one in use is not
    assert owned.path.name in folders(tmp_path)
    owned.remove()
    owned.remove()
    assert folders(tmp_path) == ["flinkpy-rocksdb-of-an-older-release", "something else"]


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        OwnFolder(os.fspath(tmp_path / "file"))


def test_what_is_asked_for_again_and_again_stays_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rocksdb_slots, "CACHED_SLOTS", 20)
    backend = RocksDBKeyedStateBackend(128, range(128), ManualClock(), RocksDBConfig(str(tmp_path)))
    counts: Any = backend.engine_values("_counts")
    read: list[Any] = []
    load = counts.slots._read

    def reading(slot: Any) -> Any:
        read.append(slot)
        return load(slot)

    monkeypatch.setattr(counts.slots, "_read", reading)
    for number in range(200):
        counts["hot"] = counts.get("hot", 0) + 1
        counts[number] = number
    assert read == ["hot"]
    assert counts["hot"] == 200
    for number in range(200):
        assert counts[number] == number
    assert len(counts) == 201
    backend.close()


@pytest.mark.wide
@pytest.mark.finding("faults 3")
def test_rocksdb_s_log_stays_small_however_many_checkpoints_there_are(tmp_path: Path) -> None:
    store = RocksDBStore(RocksDBConfig(str(tmp_path), incremental=True))
    try:
        for number in range(50):  # each adds some 7,500 bytes
            store.write([(b"key", b"%d" % number)])
            store.frozen_files().remove()
        logs = [
            file.stat().st_size
            for file in Path(store.directory, "db").iterdir()
            if file.name.startswith("LOG")
        ]
    finally:
        store.close()
    assert sum(logs) < 300_000


FEW_HANDLES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (90, 90))
from flinkpy.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.configure({"state.backend.type": "rocksdb", "execution.checkpointing.interval": "100 ms", "parallelism.default": 4})
env.from_sequence(1, 1000).key_by(lambda number: number % 10).reduce(max).print()
env.execute("few")
"""


@pytest.mark.wide
@pytest.mark.finding("faults 8")
def test_rocksdb_with_too_few_file_handles_ends_the_job_and_says_what_to_raise() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FEW_HANDLES],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1
    assert "RocksDB has too few file handles: this process may open 90 files" in ended.stderr
    assert "ulimit -n" in ended.stderr
    assert "has restarted" not in ended.stderr


@pytest.mark.finding("faults 8")
def test_a_database_takes_a_share_of_the_handles_and_gives_its_own_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [most_open_files(handles) for handles in (90, 1024, 1 << 20)] == [20, 60, -1]
    monkeypatch.setattr(database, "file_handles", lambda: OTHERS + LEAST)
    monkeypatch.setattr(file_handles, "_open", 0)
    for _ in range(3):  # one after the other they fit
        store = RocksDBStore(RocksDBConfig(str(tmp_path)))
        with pytest.raises(ProgramError, match="2 databases need about"):
            RocksDBStore(RocksDBConfig(str(tmp_path)))
        store.close()
    assert list(tmp_path.iterdir()) == []
