"""Savepoints and full checkpoints of state that memory does not hold are written and read a key
group at a time."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.elements import SavepointFormatType
from flinkpy.core.files import large_bytes
from flinkpy.core.ids import JobId, OperatorId
from flinkpy.graph.checkpoints import OperatorSubtaskState
from flinkpy.state.canonical.canonical_reader import read_canonical
from flinkpy.state.canonical.canonical_writer import Place
from flinkpy.state.canonical.rewriting import write_state
from flinkpy.state.checkpoints import state_reader
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.state.checkpoints.state_reader import StateReader
from flinkpy.state.descriptors import ValueStateDescriptor
from flinkpy.state.rocksdb.database import RocksDBConfig
from flinkpy.state.rocksdb.rocksdb_backend import RocksDBKeyedStateBackend
from flinkpy.state.snapshots.keyed_pieces import read_keyed
from flinkpy.state.snapshots.keyed_snapshots import redistribute
from flinkpy.state.snapshots.saved_state import FrozenState, SavedState, share_of

pytest.importorskip("rocksdict")

GROUPS, KEYS, SIZE = 128, 5_000, 16_000
ALL = range(GROUPS)


@pytest.fixture
def backends(tmp_path: Path) -> Iterator[tuple[RocksDBKeyedStateBackend, RocksDBKeyedStateBackend]]:
    """One that has 80 MB of values, and an empty one."""
    of = [
        RocksDBKeyedStateBackend(GROUPS, ALL, SYSTEM_CLOCK, RocksDBConfig(str(tmp_path)))
        for _ in range(2)
    ]
    state, chance = of[0].state(ValueStateDescriptor("kept")), random.Random(3)
    for key in range(KEYS):
        of[0].current.key = key
        state.update(chance.randbytes(SIZE))  # type: ignore[attr-defined]
    yield of[0], of[1]
    for each in of:
        each.close()


def read(state: OperatorSubtaskState, reader: StateReader, folder: str) -> SavedState:
    if state.tables:
        return read_canonical(state.tables, reader.view, GROUPS, ALL, [folder])
    return SavedState(read_keyed(state, reader, GROUPS, ALL, [folder]))


@pytest.mark.parametrize("format_type", SavepointFormatType)
def test_state_is_saved_and_taken_back_a_key_group_at_a_time(
    format_type: SavepointFormatType,
    backends: tuple[RocksDBKeyedStateBackend, RocksDBKeyedStateBackend],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (large_bytes, state_reader):
        monkeypatch.setattr(module, "IN_MEMORY", 1 << 20)
    monkeypatch.setattr(state_reader, "_PART", 1 << 18)
    storage = FileCheckpointStorage(str(tmp_path), JobId("job"))
    frozen = FrozenState(backends[0].freeze())
    tracemalloc.start()
    try:
        with storage.state_writer(1, "a", 0) as writer:
            place = Place(OperatorId("0a" * 16), "keeps", "0-0")
            state = write_state(writer, place, frozen, format_type)
        _, written = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        reader = storage.reader(f"{storage.job_dir}/chk-1", [str(tmp_path)])
        saved = share_of([read(state, reader, str(tmp_path))], GROUPS, 1, 0, [str(tmp_path)])
        assert saved.keyed is not None
        assert len(saved.keyed) > KEYS * SIZE
        backends[1].restore(saved.keyed)
        _, restored = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert max(written, restored) < 3 * KEYS * SIZE // 4, (written, restored)
    was, is_now = (each.state(ValueStateDescriptor("kept")) for each in backends)
    for key in range(0, KEYS, 17):
        for each in backends:
            each.current.key = key
        assert is_now.value() == was.value()  # type: ignore[attr-defined]


def test_a_share_of_large_state_is_a_view_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = RocksDBKeyedStateBackend(GROUPS, ALL, SYSTEM_CLOCK, RocksDBConfig())
    try:
        state = backend.state(ValueStateDescriptor("kept"))
        for key in range(200):
            backend.current.key = key
            state.update(key)  # type: ignore[attr-defined]
        whole = backend.freeze().write()
    finally:
        backend.close()
    plain = redistribute([whole], range(64))
    monkeypatch.setattr(large_bytes, "IN_MEMORY", 100)
    shared = redistribute([whole], range(64))
    assert isinstance(plain, bytes)
    assert isinstance(shared, memoryview)
    assert shared == plain
    assert redistribute([plain], ALL) is plain
