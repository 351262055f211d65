"""Latency through a group aggregate of SQL at 1,000 events a second, in one process: stamped at the
source, read where the new row of the group comes out."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import Comparison, quick
from benchmarks.latency import TickSource
from flinkpy.common.typeinfo import Types
from flinkpy.common.types import RowKind
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.table import StreamTableEnvironment

RATE = 1_000
TARGET_MS = 5.0  # of the p99
_AFTER = (RowKind.INSERT, RowKind.UPDATE_AFTER)


class StampsSink:
    """Records how old the newest event of each group is when its row comes."""

    def __init__(self, path: str) -> None:
        self._path = path

    def open(self, context: Any) -> None:
        self._taken: list[int] = []

    def write_batch(self, batch: Any) -> None:
        now = time.perf_counter_ns()
        self._taken += [now - stamp for is_after, stamp in batch.values if is_after]

    def flush(self) -> None:
        Path(self._path).write_text(json.dumps(self._taken))

    def close(self) -> None: ...


def latencies(seconds: float, options: dict[str, str]) -> list[int]:
    """In nanoseconds, sorted, without the first fifth of the events."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/latencies.json"
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        tables = StreamTableEnvironment.create(env)
        for key, value in options.items():
            tables.get_config().set(key, value)
        named = Types.ROW_NAMED(["k", "stamp"], [Types.LONG(), Types.LONG()])
        ticks = env.from_source(TickSource(RATE, seconds), None, "ticks")
        rows = ticks.map(lambda event: (event[0], event[1]), output_type=named)
        tables.create_temporary_view("ticks", rows)
        groups = tables.sql_query(
            "SELECT k, COUNT(*) AS n, MAX(stamp) AS newest FROM ticks GROUP BY k"
        )
        changes = tables.to_changelog_stream(groups)
        stamps = changes.map(lambda row: (row.get_row_kind() in _AFTER, row[2]))
        stamps.sink_to(StampsSink(path))
        env.execute("latency of a group aggregate")
        taken: list[int] = json.loads(Path(path).read_text())
    return sorted(taken[len(taken) // 5 :])


def main() -> list[Comparison]:
    gathering = {
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": "1 s",
        "table.exec.mini-batch.size": "5000",
    }
    results = []
    for setting, options in (("default settings", {}), ("mini-batch of 1 s", gathering)):
        taken = latencies(2 if quick() else 20, options)
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            value = taken[int(len(taken) * share)] / 1e6
            reached = "reached" if value <= TARGET_MS else "NOT REACHED"
            note = f"target {TARGET_MS} ms: {reached}" if name == "p99" else ""
            title = f"GROUP BY {name} at {RATE} events/s, {setting}"
            results.append(Comparison(title, "ms", value, TARGET_MS, value / TARGET_MS, None, note))
            print(f"{title:<52} {value:8.3f} ms   {note}", flush=True)
    return results
