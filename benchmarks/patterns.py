"""Three patterns over bids: over rows and over columns, the generated loop alone, and Flink's own
CEP in Java on the same bids.

A: a price above 9.9 million is followed by another one of the same auction (one bid in a hundred
begins). B: three bids of an auction with rising prices, one directly behind the other (every bid
begins, and conditions look at the bid before). C: a low price, one or more in the middle, a high
one. Each within 10 s, skip past last event; up to 20 ms out of order, 10,000 auctions.

All figures are bids per second of processor time, the start of the job taken off; garbage is
collected as on workers. Flink runs if
there are ``java`` and ``javac``, and FLINK_LIB names the folder with its jars."""

from __future__ import annotations

import gc
import glob
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from benchmarks.data import once
from benchmarks.harness import Comparison, in_turn, medians, quick
from benchmarks.probe import CountingSink, ReplaySource, steady_state
from benchmarks.windows import bid_table
from flinkpy.cep import AfterMatchSkipStrategy, Pattern
from flinkpy.cep.automaton.interpreter import Interpreter
from flinkpy.cep.automaton.pattern_compiler import compiled
from flinkpy.cep.matching.calendar import PARTS, Calendar
from flinkpy.cep.matching.row_matcher import RowMatcher
from flinkpy.common import Duration, WatermarkStrategy
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.program.garbage import collect_rarely
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.table.expressions import col

HIGH, LOW, TOP = 9_900_000, 1_000_000, 9_000_000
SPAN = Duration.of_seconds(10)
BATCH = 8_192
LIB = os.environ.get("FLINK_LIB", "")
JAVA = Path(__file__).parent / "flink" / "PatternJobs.java"


def begun(name: str) -> Pattern:
    return Pattern.begin(name, AfterMatchSkipStrategy.skip_past_last_event())


def rows_a() -> Pattern:
    return (
        begun("a")
        .where(lambda bid: bid[2] > 9_900_000)
        .followed_by("b")
        .where(lambda bid: bid[2] > 9_900_000)
        .within(SPAN)
    )


def rows_b() -> Pattern:
    return (
        begun("a")
        .next("b")
        .where(lambda bid, ctx: bid[2] > ctx.get_events_for_pattern("a")[0][2])
        .next("c")
        .where(lambda bid, ctx: bid[2] > ctx.get_events_for_pattern("b")[0][2])
        .within(SPAN)
    )


def rows_c() -> Pattern:
    return (
        begun("low")
        .where(lambda bid: bid[2] < 1_000_000)
        .next("mid")
        .where(lambda bid: bid[2] >= 1_000_000)
        .where(lambda bid: bid[2] < 9_000_000)
        .one_or_more()
        .consecutive()
        .next("high")
        .where(lambda bid: bid[2] >= 9_000_000)
        .within(SPAN)
    )


def columns_a() -> Pattern:
    above = col("price") > HIGH
    return begun("a").where(above).followed_by("b").where(above).within(SPAN)


def columns_b() -> Pattern:
    return (
        begun("a")
        .next("b")
        .where(lambda bid, ctx: bid.price > ctx.get_events_for_pattern("a")[0].price)
        .next("c")
        .where(lambda bid, ctx: bid.price > ctx.get_events_for_pattern("b")[0].price)
        .within(SPAN)
    )


def columns_c() -> Pattern:
    price = col("price")
    return (
        begun("low")
        .where(price < LOW)
        .next("mid")
        .where((price >= LOW) & (price < TOP))
        .one_or_more()
        .consecutive()
        .next("high")
        .where(price >= TOP)
        .within(SPAN)
    )


@dataclass(frozen=True)
class Job:
    """A pattern over rows and over columns; how many times Flink's figure are wanted."""

    name: str
    rows: Callable[[], Pattern]
    columns: Callable[[], Pattern]
    times_flink_rows: float
    times_flink_columns: float | None


JOBS = (
    Job("A", rows_a, columns_a, 10, 100),
    Job("B", rows_b, columns_b, 10, None),
    Job("C", rows_c, columns_c, 10, 15),
)


def row_batches(count: int) -> list[Batch]:
    values = list(zip(*(column.to_pylist() for column in bid_table(count).columns)))
    return [RowBatch(values[at : at + BATCH]) for at in range(0, count, BATCH)]


def column_batches(count: int) -> list[Batch]:
    data = bid_table(count).combine_chunks()
    return [ColumnBatch(batch) for batch in data.to_batches(max_chunksize=BATCH)]


def over_rows(stream: DataStream, pattern: Pattern) -> DataStream:
    by_time = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(50))
    stamped = stream.assign_timestamps_and_watermarks(
        by_time.with_timestamp_assigner(itemgetter(5))
    )
    return stamped.key_by(itemgetter(0)).match(pattern).select(lambda match: 1)


def over_columns(stream: DataStream, pattern: Pattern) -> DataStream:
    by_time = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(50))
    stamped = stream.assign_timestamps_and_watermarks(
        by_time.with_timestamp_assigner(col("date_time"))
    )
    return stamped.key_by("auction").match(pattern).select(lambda match: 1)


def engine(
    kind: str,
    counts: tuple[int, int],
    program: Callable[[DataStream], DataStream],
    matches: dict[str, int],
) -> Callable[[], float]:
    """A run of the job with fewer and with more bids; gives bids per second of processor time."""
    make = column_batches if kind == "columns" else row_batches

    def seconds(count: int) -> float:
        def made(subtask: int, parallelism: int) -> list[Batch]:
            return once(f"pattern {kind} {count}", lambda: make(count))

        def run(folder: str) -> None:
            env = StreamExecutionEnvironment.get_execution_environment()
            env.set_parallelism(1)
            source = ReplaySource(made, 1, folder, kind == "columns")
            program(env.from_source(source, None, "replay")).sink_to(CountingSink(folder))
            env.execute("benchmark")

        made(0, 1)
        as_on_workers()
        begun = time.process_time()
        matches[kind] = steady_state(run).results
        return time.process_time() - begun

    fewer, more = counts
    return lambda: (more - fewer) / -(seconds(fewer) - seconds(more))


def loop_alone(
    count: int, pattern: Pattern, matches: dict[str, int], name: str
) -> Callable[[], float]:
    """The generated loop over all bids at once, in order."""
    rows = [
        row
        for batch in once(f"pattern rows {count}", lambda: row_batches(count))
        for row in batch.values
    ]
    rows.sort(key=itemgetter(5))
    keys, times = [row[0] for row in rows], [row[5] for row in rows]

    def run() -> float:
        as_on_workers()
        width = 10_000 // PARTS
        matcher = RowMatcher(Interpreter(compiled(pattern), lambda: 0, False), Calendar(width))
        begun = time.process_time()
        matches[name] = sum(map(len, matcher.take(keys, times, rows)))
        return count / (time.process_time() - begun)

    return run


def as_on_workers() -> None:
    """Has garbage collected as in worker processes; the input in memory is no garbage."""
    collect_rarely()
    gc.collect()
    gc.freeze()


class Flink:
    """Flink's jobs, compiled once."""

    def __init__(self, folder: str, count: int) -> None:
        self._folder, self._count = folder, count
        jars = ":".join(glob.glob(f"{LIB}/*.jar"))
        subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", folder, JAVA], check=True)
        self._classes = f"{folder}:{jars}"
        table = bid_table(count)
        with (Path(folder) / "bids").open("wb") as file:
            for name in ("auction", "price", "date_time"):
                file.write(table.column(name).to_numpy().astype("<i8").tobytes())

    def run(self, job: str, matches: dict[str, int], name: str) -> Callable[[], float]:
        fewer, more = self._count // 7, self._count

        def rate() -> float:
            arguments = [f"{self._folder}/bids", job, str(fewer), str(more)]
            opens = ["--add-opens=java.base/java.util=ALL-UNNAMED"]
            found = subprocess.run(
                [
                    "java",
                    "-Xmx2g",
                    "-XX:+UseSerialGC",
                    *opens,
                    "-cp",
                    self._classes,
                    "PatternJobs",
                    *arguments,
                ],
                capture_output=True,
                text=True,
            )
            if found.returncode:
                raise RuntimeError(f"Flink's job {job} failed:\n{found.stderr[-4_000:]}")
            count, rate = found.stdout.split()
            matches[name] = int(count)
            return float(rate)

        return rate


def main() -> list[Comparison]:
    count, flink_count, rounds = (100_000, 7_000, 1) if quick() else (300_000, 70_000, 3)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        has_flink = LIB and shutil.which("java") and shutil.which("javac")
        flink = Flink(folder, flink_count) if has_flink else None
        for job in JOBS:
            results += measured(job, count, rounds, flink)
    return results


def measured(job: Job, count: int, rounds: int, flink: Flink | None) -> list[Comparison]:
    rows, columns = job.rows(), job.columns()
    matches: dict[str, int] = {}
    counts = count // 5, count
    runs = [
        loop_alone(count, rows, matches, "loop"),
        engine("rows", counts, lambda stream: over_rows(stream, rows), matches),
        engine("columns", counts, lambda stream: over_columns(stream, columns), matches),
    ]
    if flink is not None:
        runs.append(flink.run(job.name, matches, "flink"))
    figures = in_turn(runs, rounds)
    assert matches["loop"] == matches["rows"] == matches["columns"], matches
    results = [medians(f"{job.name} rows, bare the loop", pairs(figures, 1, 0), "bids/s", 0.6)]
    wanted = ("rows", 1, job.times_flink_rows), ("columns", 2, job.times_flink_columns)
    for kind, at, times in wanted if flink is not None else ():
        name = f"{job.name} {kind}, bare Flink"
        results.append(medians(name, pairs(figures, at, 3), "bids/s", times))
    return results


def pairs(figures: list[tuple[float, ...]], one: int, other: int) -> list[tuple[float, ...]]:
    return [(each[one], each[other]) for each in figures]


if __name__ == "__main__":
    main()
