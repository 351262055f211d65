"""How large the keyed state of a running job is, by REST, with each backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.common.typeinfo import Types
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.datastream import KeyedProcessFunction
from flinkpy.datastream.state import MapStateDescriptor, ValueStateDescriptor
from flinkpy.metrics.definitions import ENTRIES, ROCKSDB
from flinkpy.testing.connectors.paced_source import PacedSource
from flinkpy.testing.environment import embedded_environment
from tests.ports import free_port
from tests.waiting import eventually
from tests.web.rest import Rest

READ = 20


class Remembering(KeyedProcessFunction):
    """Remembers each key twice, in a value and in a map with two entries."""

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))
        self.all = runtime_context.get_map_state(
            MapStateDescriptor("all", Types.STRING(), Types.LONG())
        )

    def process_element(self, value: int, ctx: Any) -> Any:
        self.last.update(value)
        self.all.put("once", value)
        self.all.put("twice", value)
        yield value


@pytest.fixture
def rest() -> Iterator[Rest]:
    try:
        yield Rest(free_port())
    finally:
        stop_embedded()


@pytest.mark.wide
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_operators_tell_how_large_their_state_is(rest: Rest, tmp_path: Path, backend: str) -> None:
    if backend == "rocksdb":
        pytest.importorskip("rocksdict")
    env = embedded_environment(
        {
            "rest.enabled": "true",
            "rest.authentication": "NONE",
            "rest.port": str(rest.port),
            "metrics.fetcher.update-interval": "0",
            "execution.checkpointing.interval": "1 h",
            "execution.checkpointing.dir": str(tmp_path),
            "state.backend.type": backend,
        }
    )
    source = env.from_source(
        PacedSource([(number, number) for number in range(1000)], READ, 1), source_name="numbers"
    )
    source.key_by(lambda number: number).process(Remembering()).name("remembers").sink_to(
        DiscardingSink()
    )
    client = env.execute_async("remembers")
    job = str(client.get_job_id())
    try:
        eventually(lambda: rest.get(f"/jobs/{job}")["status-counts"]["RUNNING"] == 2)
        path = f"/jobs/{job}/vertices/{rest.get(f'/jobs/{job}')['vertices'][1]['id']}/subtasks/0/metrics"

        def value(name: str) -> float:
            found = rest.get(f"{path}?get=remembers.{name}")
            return float(found[0]["value"]) if found else -1.0

        eventually(lambda: value("numRecordsIn") == READ)
        if backend == "hashmap":
            eventually(lambda: value(ENTRIES) == 2 * READ)
            assert value("rocksdb.estimate-num-keys") == -1
            return
        assert value(ENTRIES) == -1
        rest.ask(f"/jobs/{job}/checkpoints", "POST", {})  # writes what is in the cache
        eventually(lambda: value("rocksdb.estimate-num-keys") >= 3 * READ)
        assert min(value(name) for name in ROCKSDB) >= 0
        assert value("rocksdb.cur-size-all-mem-tables") + value("rocksdb.live-sst-files-size") > 0
    finally:
        client.cancel().result(60)
