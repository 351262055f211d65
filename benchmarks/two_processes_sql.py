"""q4, q5, q8 and q18 of Nexmark in SQL on two TaskExecutor processes on Ray: against one process.

Each job replays events from memory once. The rate is that of all events that it reads, from the
moment when the first reader had read its tenth to the end of the last sink. 4,000,000 events
(``--quick``: 40,000)."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.data import once
from benchmarks.harness import Comparison, in_turn, medians, quick
from benchmarks.nexmark_sql import KINDS, ROWS_AT_ONCE, events
from benchmarks.on_ray import ray_cluster
from benchmarks.probe import ReplaySource, note
from benchmarks.two_processes import bare_loops
from examples.nexmark.queries_in_sql import query
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.operators.sinks.sink_port import Sink, SinkWriter
from flinkpy.table import Schema, StreamTableEnvironment

QUERIES = ("q4", "q5", "q8", "q18")
ROUNDS = 5


class CountingChanges(Sink):
    """Counts rows of every kind, and writes the time of its end."""

    takes_kinds = True

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def create_writer(self, context: Any) -> SinkWriter:
        return _CountingWriter(self._folder, context.task.subtask_index)


class _CountingWriter(SinkWriter):
    def __init__(self, folder: str, subtask: int) -> None:
        self._folder = folder
        self._subtask = subtask
        self._count = 0

    def write_batch(self, batch: Batch) -> None:
        self._count += len(batch)

    def flush(self) -> None:
        note(self._folder, f"sink-{self._subtask}", end=time.perf_counter(), count=self._count)


def share_of(kind: str, count: int) -> Callable[[int, int], list[Batch]]:
    """The batches of one kind of event that a subtask reads: every second one of two subtasks."""

    def make(subtask: int, parallelism: int) -> list[Batch]:
        table = once(f"nexmark {count}", lambda: [events(count)])[0][kind]
        batches: list[Batch] = [
            ColumnBatch(batch)
            for batch in table.combine_chunks().to_batches(max_chunksize=ROWS_AT_ONCE)
        ]
        return batches[subtask::parallelism]

    return make


def columns_of(kind: str) -> Any:
    return events(100)[kind].schema


def rate_of(name: str, count: int, parallelism: int) -> Callable[[], float]:
    def run(folder: str) -> None:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(parallelism)
        session = StreamTableEnvironment.create(env)
        schema = (
            Schema.new_builder().watermark("dateTime", "`dateTime` - INTERVAL '4' SECOND").build()
        )
        for kind in KINDS:
            notes = Path(folder, kind)
            notes.mkdir()
            source: Any = ReplaySource(share_of(kind, count), 1, str(notes), columnar=True)
            stream = env.from_source(source, None, kind)
            known = stream.map_batches(lambda batch: batch, schema=columns_of(kind))
            session.create_temporary_view(kind, known, schema)
        changes = session.to_changelog_stream(session.sql_query(query(name)))
        changes.sink_to(CountingChanges(folder))
        env.execute(name)

    def rate() -> float:
        with tempfile.TemporaryDirectory() as folder:
            run(folder)
            ends = [read_note(path)["end"] for path in Path(folder).glob("sink-*.json")]
            readers = [read_note(path) for path in Path(folder).glob("*/source-*.json")]
        begun = min(each["t10"] for each in readers)
        return float(sum(each["records"] for each in readers) / (max(ends) - begun))

    return rate


def read_note(path: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads(path.read_text())
    return found


def main() -> list[Comparison]:
    count, rounds = (40_000, 1) if quick() else (4_000_000, ROUNDS)
    words = 2_000 if quick() else 50_000
    results = []
    with ray_cluster():
        for name in QUERIES:
            figures = in_turn(
                (
                    rate_of(name, count, 2),
                    rate_of(name, count, 1),
                    lambda: bare_loops(2, words, 10),
                    lambda: bare_loops(1, words, 10),
                ),
                rounds,
            )
            results += [
                medians(
                    f"{name} in SQL, 2 processes vs 1",
                    [each[:2] for each in figures],
                    "events/s",
                    1.6,
                    "bare = parallelism 1 in one process",
                ),
                medians(
                    f"{name}: 2 bare loops at once vs 1",
                    [each[2:] for each in figures],
                    "lines/s",
                    None,
                    "what this machine gave two processes meanwhile",
                ),
            ]
    return results


if __name__ == "__main__":
    main()
