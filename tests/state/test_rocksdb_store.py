"""The database's folder and its cache: what is deleted when, and what stays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flinkpy.core.clock import ManualClock
from flinkpy.state.checkpoints.own_folder import OwnFolder, remove_abandoned
from flinkpy.state.descriptors import ValueStateDescriptor
from flinkpy.state.rocksdb import slot_cache as rocksdb_slots

pytest.importorskip("rocksdict")

from flinkpy.state.rocksdb.database import RocksDBConfig
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
    backend = RocksDBKeyedStateBackend(128, range(128), ManualClock(), RocksDBConfig(str(tmp_path / "new")))
    state: Any = backend.state(ValueStateDescriptor("v"))
    backend.current.key = "a"
    state.update(1)
    assert [str(tmp_path / "new" / name) for name in folders(tmp_path / "new")] == [backend.directory]
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


def test_what_is_asked_for_again_and_again_stays_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
