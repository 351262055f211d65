"""Nexmark in SQL beside Flink SQL: the same texts over the same events in memory, into a sink that
keeps nothing, in STREAMING at parallelism 1.

``FLINK_LIB`` names the folder with Flink's jars (``make test-flink`` brings them, into
``build/flink/pyflink/lib``); without it, or without a Java, nothing runs. Each query has a Java
virtual machine of its own, and runs over two lengths of the events, of which the difference counts:
events a second in the steady state, when Flink's code is compiled. Queries that keep nothing are
fast, and read the events several times over. Flink runs with its defaults and, where rows change,
also with mini-batch; the faster of the two is the one beside us. Wall time, with the ratio of
processor time in the note. ``QUERIES=4,5`` chooses queries."""

from __future__ import annotations

import gc
import glob
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import Comparison, medians, quick
from benchmarks.nexmark_sql import CLOCK, KINDS, Streams, events
from examples.nexmark.queries_in_sql import count_char, query
from flinkpy.connectors.memory.nexmark import NexmarkGenerator
from flinkpy.table import Schema, StreamTableEnvironment, Table, TableDescriptor

LIB = os.environ.get("FLINK_LIB", "")
CHOSEN = os.environ.get("QUERIES", "")  # as 4,5,18; all without it
WATERMARK = "`dateTime` - INTERVAL '4' SECOND"
PROGRAM = Path(__file__).parent / "flink_sql" / "NexmarkInFlink.java"
FACTORIES = "META-INF/services/org.apache.flink.table.factories.Factory"
JAVA_OPTIONS = ("-Xms4g", "-Xmx4g")
DEFAULTS = "parallelism.default=1 pipeline.object-reuse=true table.local-time-zone=UTC"
MINI_BATCH = (
    f"{DEFAULTS} table.exec.mini-batch.enabled=true table.exec.mini-batch.allow-latency=2s "
    "table.exec.mini-batch.size=50000"
)
ROWS_AT_ONCE = 1 << 15  # what mini-batches are for Flink
# Flink refuses the OVER of q6, and looks up no table of files, as q13 does
NOT_RUN = (6, 13)
QUERIES = tuple(number for number in range(23) if number not in NOT_RUN)
CHANGING = (3, 4, 7, 9, 15, 16, 17, 18, 19, 20)  # mini-batch may help
KEEPS_NOTHING = (0, 1, 2, 10, 14, 21, 22)
EVENTS = 10_000 if quick() else 1_500_000
ROUNDS = 1 if quick() else 3
BRIEF, MORE = 1.0, 1 if quick() else 7  # a run below so many seconds takes place more often
EACH, ALL = 2.0, 5.0  # the targets: of every query, of their geometric mean


@dataclass(frozen=True)
class Taken:
    """What a run took, in seconds, and how many rows stood at its end (-1: not counted)."""

    wall: float
    processor: float
    rows: int = -1


Run = Callable[[str, dict[str, int]], Taken]  # a query over so many events of each kind


class Flink:
    """A Java virtual machine that runs queries over the events of a folder."""

    def __init__(self, process: subprocess.Popen[str], schemas: dict[str, str]) -> None:
        self._process, self._schemas = process, schemas

    def run(self, options: str, text: str, counts: dict[str, int]) -> Taken:
        """Runs a query over so many events of each kind."""
        self._answer(f"BEGIN {options}")
        for kind in KINDS:
            self._answer(
                f"CREATE TABLE {kind} ({self._schemas[kind]}, WATERMARK FOR `dateTime` AS "
                f"{WATERMARK}) WITH ('connector' = 'in-memory', 'kind' = '{kind}', "
                f"'rows' = '{counts[kind]}')"
            )
        wall, processor, rows = map(int, self._answer(" ".join(text.split())).split())
        return Taken(wall / 1e9, processor / 1e9, rows)

    def _answer(self, line: str) -> str:
        """What it answers to a line. Raises RuntimeError where it failed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if not answer or answer.startswith("failed"):
            raise RuntimeError(f"Flink answers {answer!r} to {line!r}")
        return answer


@dataclass(frozen=True)
class Prepared:
    """A folder with the program and the events, which it reads before its clock starts."""

    folder: str
    jars: str
    schemas: dict[str, str]

    @contextmanager
    def started(self) -> Iterator[Flink]:
        """A Java virtual machine, which has compiled nothing yet."""
        command = ["java", *JAVA_OPTIONS, "-cp", f"{self.folder}:{self.jars}", PROGRAM.stem]
        with subprocess.Popen(
            [*command, self.folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            try:
                yield Flink(process, self.schemas)
            finally:
                process.kill()


@contextmanager
def prepared(tables: dict[str, Any]) -> Iterator[Prepared]:
    """Writes the events, and compiles the program."""
    with tempfile.TemporaryDirectory() as folder:
        write_events(tables, Path(folder))
        jars = ":".join(sorted(glob.glob(f"{LIB}/*.jar")))
        subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", folder, PROGRAM], check=True)
        factories = Path(folder, FACTORIES)
        factories.parent.mkdir(parents=True)
        factories.write_text(f"{PROGRAM.stem}$Factory")
        yield Prepared(folder, jars, {kind: columns_of(tables[kind]) for kind in KINDS})


def columns_of(table: Any) -> str:
    """The columns of a table as SQL declares them."""
    from flinkpy.columns.sql.arrow_of_logical import row_type_of_schema

    return ", ".join(f"`{field.name}` {field.type}" for field in row_type_of_schema(table.schema))


def write_events(tables: dict[str, Any], folder: Path) -> None:
    """A file for each column: numbers and times as 64 bits, little end first, texts as lines."""
    import pyarrow as pa

    for kind in KINDS:
        for name in tables[kind].column_names:
            column, file = tables[kind][name], folder / f"{kind}.{name}"
            if pa.types.is_string(column.type):
                file.write_text("".join(f"{text}\n" for text in column.to_pylist()))
            else:
                file.write_bytes(column.cast(pa.int64()).to_numpy().astype("<i8").tobytes())


class Here:
    """The same, in this process."""

    def __init__(self, tables: dict[str, Any]) -> None:
        self._tables = tables

    def run(self, text: str, counts: dict[str, int]) -> Taken:
        """Runs a query over so many events of each kind."""
        table = self._asked(text, counts)
        nowhere = TableDescriptor.for_connector("blackhole").build()
        wall, processor = time.perf_counter(), time.process_time()
        table.execute_insert(nowhere).wait()
        return Taken(time.perf_counter() - wall, time.process_time() - processor)

    def rows(self, text: str, counts: dict[str, int]) -> int:
        """How many rows stand at its end."""
        return len(self._asked(text, counts).to_arrow())

    def _asked(self, text: str, counts: dict[str, int]) -> Table:
        tables = {kind: self._first(kind, counts[kind]) for kind in KINDS}
        streams = Streams(tables, ROWS_AT_ONCE)
        session = StreamTableEnvironment.create(streams.env)
        session.create_temporary_system_function("count_char", count_char)
        schema = Schema.new_builder().watermark("dateTime", WATERMARK).build()
        for kind in KINDS:
            session.create_temporary_view(kind, streams.raw(kind), schema)
        return session.sql_query(text)

    def _first(self, kind: str, rows: int) -> Any:
        """So many rows; from the beginning again where there are no more."""
        import pyarrow as pa

        times = -(-rows // len(self._tables[kind]))
        return pa.concat_tables([self._tables[kind]] * times).slice(0, rows)


def compared(number: int, here: Here, flink: Flink) -> Comparison:
    """A query here and in Flink, in turn. Raises RuntimeError where the results differ."""
    text, many = query(f"q{number}"), EVENTS * (8 if number in KEEPS_NOTHING else 1)
    few = many // 3

    def steady(run: Run) -> Taken:
        """What many events take longer than few."""
        gc.collect()
        short, long = run(text, counts_of(few)), run(text, counts_of(many))
        return Taken(long.wall - short.wall, long.processor - short.processor)

    forms: dict[str, Run] = {"Flink": partial(flink.run, DEFAULTS)}
    if number in CHANGING:
        forms["Flink with mini-batch"] = partial(flink.run, MINI_BATCH)
    stand = here.rows(text, counts_of(few))
    for name, form in forms.items():
        warm = form(text, counts_of(few))
        if number != CLOCK and warm.rows != stand:
            raise RuntimeError(f"q{number}: {name} has {warm.rows} rows at the end, we {stand}")
    times = ROUNDS * (MORE if here.run(text, counts_of(many)).wall < BRIEF else 1)
    rounds = [[steady(run) for run in (here.run, *forms.values())] for _ in range(times)]
    ours, *others = (
        Taken(*map(statistics.median, zip(*((each.wall, each.processor) for each in taken))))
        for taken in zip(*rounds)
    )
    name, best = min(zip(forms, others), key=lambda other: other[1].wall)
    at = 1 + list(forms).index(name)
    rates = [tuple((many - few) / taken[side].wall for side in (0, at)) for taken in rounds]
    note = f"{name}; of processor time {best.processor / ours.processor:.1f}"
    return medians(f"q{number} beside Flink SQL", rates, "events/s", EACH, note)


def counts_of(events: int) -> dict[str, int]:
    """How many of so many events are of each kind."""
    generator = NexmarkGenerator(events=events)
    return {kind: generator.count(kind) or 0 for kind in KINDS}


def main() -> list[Comparison]:
    """Every query that both run, and the geometric mean of their ratios."""
    if not (LIB and shutil.which("java") and shutil.which("javac")):
        print("skipped: needs Java, and FLINK_LIB with Flink's jars")
        return []
    tables = events(EVENTS)
    here, found = Here(tables), []
    with prepared(tables) as program:
        for number in chosen():
            with program.started() as flink:
                found.append(compared(number, here, flink))
    mean = statistics.geometric_mean(each.ratio for each in found)
    return [*found, medians("all of them", [(mean, 1.0)], "times", ALL, "the geometric mean")]


def chosen() -> Sequence[int]:
    """The queries that ``QUERIES`` names, or all."""
    return [int(each) for each in CHOSEN.split(",")] if CHOSEN else QUERIES


if __name__ == "__main__":
    main()
