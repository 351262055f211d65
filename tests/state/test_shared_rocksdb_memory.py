from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rocksdict")

from flinkpy.core.options.memory_sizes import MemoryKind
from flinkpy.datastream import KeyedProcessFunction, RuntimeContext
from flinkpy.datastream.state import ValueStateDescriptor
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.process.process_operators import KeyedProcessOperator
from flinkpy.operators.rows.keyed import KeyedAggregateOperator
from flinkpy.state.rocksdb import shared_memory as shared_memory_module
from flinkpy.state.rocksdb.database import RocksDBConfig, RocksDBStore
from flinkpy.state.rocksdb.shared_memory import manage_memory, shared_memory
from tests.operators.harness import ChainHarness, linear

MB = 1 << 20
ROCKSDB = {"state.backend.type": "rocksdb"}


def first(value: tuple[str, int]) -> str:
    return value[0]


@pytest.fixture(autouse=True)
def _no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in which no operator has lent anything yet."""
    monkeypatch.setattr(shared_memory_module, "_PROCESS", shared_memory_module._OfProcess())


def test_outside_of_a_worker_each_database_has_memory_of_its_own() -> None:
    assert RocksDBConfig.of(ROCKSDB).shared is None


def test_databases_of_a_worker_share_what_operators_lend_them() -> None:
    manage_memory()
    one, other = RocksDBConfig.of(ROCKSDB).shared, RocksDBConfig.of(ROCKSDB).shared
    assert one is not None
    assert one is other
    assert one.size == 16 * MB
    one.lend(20 * MB)
    one.lend(60 * MB)
    assert one.size == 80 * MB
    assert one.buffers.get_buffer_size() == 2 * 80 * MB // 6  # as Flink splits it
    one.lend(-60 * MB)
    assert one.buffers.get_buffer_size() == 2 * 20 * MB // 6
    one.lend(-20 * MB)
    assert one.size == 16 * MB


def test_a_keyed_operator_lends_its_share_as_long_as_it_lives() -> None:
    manage_memory()
    operator = KeyedAggregateOperator("sum", 1, KeySpec(first))
    harness = ChainHarness(linear(operator), configuration=ROCKSDB, memory=128 * MB)
    share, context = RocksDBConfig.of(ROCKSDB).shared, harness.chain.head.context
    assert share is not None
    assert share.size == context.memory.share_of(MemoryKind.STATE_BACKEND) == 128 * MB
    assert not context.memory.reserve(1, MemoryKind.STATE_BACKEND)
    assert harness.chain.close() == []
    assert share.size == 16 * MB
    assert context.memory.reserve(128 * MB, MemoryKind.STATE_BACKEND)


def test_a_process_that_is_short_of_memory_reads_with_half_a_cache(tmp_path: Path) -> None:
    manage_memory()
    shared = RocksDBConfig.of(ROCKSDB).shared
    assert shared is not None
    store = RocksDBStore(RocksDBConfig(str(tmp_path), shared=shared))
    try:
        for at in range(40):
            store.write((f"{at} {each}".encode(), os.urandom(1000)) for each in range(500))
        for at in range(40):
            store.get(f"{at} 7".encode())
        before = shared.cache.get_usage()
        shared.be_short(True)
        assert shared.cache.get_usage() < max(8 * MB, 0.7 * before) < 13 * MB
        shared.be_short(False)
    finally:
        store.close()


def test_fixed_sizes_come_before_the_managed_one() -> None:
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
    manage_memory()
    assert shared_memory({**ROCKSDB, "state.backend.rocksdb.memory.managed": "false"}) is None
    assert shared_memory({**ROCKSDB, "state.backend.rocksdb.block.cache-size": "8m"}) is None


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
        assert config.shared.write_buffer == 128 << 10 <= share // 3 // 40
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
    assert config.shared.write_buffer == 512 << 10 <= share // 3 // 8  # all have closed
    assert config.shared.buffers.get_usage() < MB


class Keeps(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.kept = runtime_context.get_state(ValueStateDescriptor("kept"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        before = self.kept.value()
        assert (before is None) == (value % 2 == 0)
        self.kept.update(b"%d" % value + bytes(1000))


@pytest.mark.wide
def test_twenty_operators_of_a_worker_stay_within_what_they_lend_together() -> None:
    """Each lends 2 MB and keeps 20 MB."""
    manage_memory()
    lent, numbers, step = 2 * MB, 40_000, 1_000
    key = KeySpec(_half)
    operators = [
        ChainHarness(linear(KeyedProcessOperator(Keeps(), key)), configuration=ROCKSDB, memory=lent)
        for _ in range(20)
    ]
    shared = RocksDBConfig.of(ROCKSDB).shared
    assert shared is not None
    share = shared.size
    assert share == 20 * lent
    most = 0
    for begin in range(0, numbers, step):
        for each in operators:
            each.push(range(begin, begin + step))
            most = max(most, shared.cache.get_usage())
    for each in operators:
        assert each.chain.close() == []
    assert share // 2 < most <= 1.1 * share


def _half(number: int) -> int:
    return number // 2
