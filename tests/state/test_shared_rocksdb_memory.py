from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("rocksdict")

from flinkpy.state.rocksdb.database import RocksDBConfig, RocksDBStore
from flinkpy.state.rocksdb.shared_memory import manage_memory, shared_memory

MB = 1 << 20


@pytest.fixture(autouse=True)
def _a_process_without_a_size() -> Iterator[None]:
    manage_memory(None)
    yield
    manage_memory(None)


def test_without_a_size_each_database_has_memory_of_its_own() -> None:
    assert RocksDBConfig.of({}).shared is None


def test_databases_of_a_process_share_what_it_manages() -> None:
    manage_memory(80 * MB)
    one, other = RocksDBConfig.of({}).shared, RocksDBConfig.of({}).shared
    assert one is not None
    assert one is other
    assert one.size == 80 * MB
    assert one.buffers.get_buffer_size() == 2 * 80 * MB // 6  # as Flink splits it
    manage_memory(40 * MB)
    smaller = RocksDBConfig.of({}).shared
    assert smaller is not None
    assert smaller.size == 40 * MB


def test_fixed_sizes_come_before_the_managed_one() -> None:
    manage_memory(80 * MB)
    per_worker = {"state.backend.rocksdb.memory.fixed-per-tm": "10m"}
    per_slot = {"state.backend.rocksdb.memory.fixed-per-slot": "30m"}
    sizes = [
        shared.size
        for options in (
            per_worker,
            {**per_worker, **per_slot},
            {**per_slot, "taskmanager.numberOfTaskSlots": 4},
        )
        if (shared := shared_memory(options)) is not None
    ]
    assert sizes == [10 * MB, 30 * MB, 120 * MB]


def test_a_program_can_have_sizes_for_each_database() -> None:
    manage_memory(80 * MB)
    assert shared_memory({"state.backend.rocksdb.memory.managed": "false"}) is None
    assert shared_memory({"state.backend.rocksdb.block.cache-size": "8m"}) is None


def test_twenty_databases_stay_within_their_share(tmp_path: Path) -> None:
    """Each writes 4 MB and reads it: 80 MB in all, with 16 MB for all of them."""
    share = 16 * MB
    config = RocksDBConfig.of(
        {
            "state.backend.rocksdb.memory.fixed-per-tm": str(share),
            "state.backend.rocksdb.localdir": str(tmp_path),
        }
    )
    assert config.shared is not None
    stores = [RocksDBStore(config) for _ in range(20)]
    most = 0
    try:
        assert config.shared.write_buffer == share // 3 // 40
        for at in range(40):
            for store in stores:
                store.write((f"{at} {each}".encode(), bytes([each]) * 1000) for each in range(100))
                assert store.get(f"{at // 2} 7".encode()) == bytes([7]) * 1000
            most = max(most, config.shared.cache.get_usage())
        assert all(
            store.get(f"{at} 99".encode()) == bytes([99]) * 1000
            for store in stores
            for at in (0, 39)
        )
    finally:
        for store in stores:
            store.close()
    assert share // 4 < most <= share * 1.1
    assert config.shared.write_buffer == share // 3 // 8  # all have closed
    assert config.shared.buffers.get_usage() < MB
