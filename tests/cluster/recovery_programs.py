"""Programs whose workers die while they run, each with its results as plain Python computes them.

Sources are slow enough for that."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flinkpy.common import Time, WatermarkStrategy
from flinkpy.connectors.source_api.python_source import PythonSource
from flinkpy.datastream import AsyncDataStream, DataStream, StreamExecutionEnvironment
from flinkpy.datastream.window import TumblingEventTimeWindows
from flinkpy.table.expressions import col

RECORDS, RATE, KEYS = 2400, 1200.0, 7
WINDOW_MS = 100
PIECE_ROWS, PIECE_S = 40, 0.05  # what `slowly` takes at a time
Record = tuple[Any, ...]


@dataclass(frozen=True)
class Recovering:
    """``build(env, folder)`` gives the stream whose records are ``wanted``, in any order."""

    name: str
    build: Callable[[StreamExecutionEnvironment, Path], DataStream]
    wanted: Callable[[], list[Record]]
    format: str = "text"
    kills: int = 1
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def pairs(env: StreamExecutionEnvironment) -> DataStream:
    """(key, time) for each millisecond."""
    return env.generate(lambda index: (index % KEYS, index), count=RECORDS, rate=RATE)


def in_event_time(stream: DataStream) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda record, _: record[1]
    )
    return stream.assign_timestamps_and_watermarks(strategy)


def tumbling() -> TumblingEventTimeWindows:
    return TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS))


# -- rows ---------------------------------------------------------------------------------


def windowed_sums(env: StreamExecutionEnvironment, folder: Path) -> DataStream:
    keyed = in_event_time(pairs(env)).key_by(lambda record: record[0])
    return keyed.window(tumbling()).reduce(lambda a, b: (a[0], a[1] + b[1]))


def sums_of_windows() -> list[Record]:
    sums: Counter[tuple[int, int]] = Counter()
    for index in range(RECORDS):
        sums[index % KEYS, index // WINDOW_MS] += index
    return [(key, total) for (key, _), total in sums.items()]


def joined_windows(env: StreamExecutionEnvironment, folder: Path) -> DataStream:
    left = in_event_time(pairs(env))
    right = in_event_time(pairs(env).map(lambda record: (record[0], record[1], "right")))
    joined = (
        left.join(right)
        .where(lambda record: record[0])
        .equal_to(lambda record: record[0])
        .window(tumbling())
    )
    return joined.apply(lambda a, b: (a[0], a[1], b[1]))


def pairs_of_windows() -> list[Record]:
    met = defaultdict(list)
    for index in range(RECORDS):
        met[index % KEYS, index // WINDOW_MS].append(index)
    return [
        (key, a, b) for (key, _), times in met.items() for a, b in itertools.product(times, times)
    ]


class Counting(PythonSource):
    """For each subtask, all numbers; it takes its time."""

    def splits(self, parallelism: int) -> list[int]:
        return list(range(parallelism))

    def read(self, split: int, position: int) -> Any:
        for index in range(position, RECORDS // 2):
            if index % PIECE_ROWS == 0:
                threading.Event().wait(PIECE_S)
            yield (split, index)


def looked_up(env: StreamExecutionEnvironment, folder: Path) -> DataStream:
    """Asynchronous calls, and a running count of each key behind them."""

    async def answer(record: Record) -> list[Record]:
        await asyncio.sleep(0.02 * (record[1] % 5))
        return [(record[1] % KEYS, 1)]

    answered = AsyncDataStream.unordered_wait(
        env.from_source(Counting(), None, "counting"), answer, Time.seconds(60)
    )
    return answered.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


def counts_of_answers() -> list[Record]:
    counts = Counter(index % KEYS for index in range(RECORDS // 2) for _ in range(2))
    return [(key, number) for key, count in counts.items() for number in range(1, count + 1)]


def failing_once(env: StreamExecutionEnvironment, folder: Path) -> DataStream:
    """A function raises at one record, but not when it comes again."""
    failed = folder / "failed"

    def fail_once(record: Record) -> Record:
        if record[1] == RECORDS // 2 and not failed.exists():
            failed.touch()
            raise ValueError("once")
        return record

    keyed = in_event_time(pairs(env).map(fail_once)).key_by(lambda record: record[0])
    return keyed.window(tumbling()).reduce(lambda a, b: (a[0], a[1] + b[1]))


# -- columns ------------------------------------------------------------------------------


def slowly(batch: pa.RecordBatch) -> pa.RecordBatch:
    threading.Event().wait(PIECE_S * batch.num_rows / PIECE_ROWS)
    return batch


def table() -> pa.Table:
    """Both halves have each time once: a subtask reads one of them."""
    times = [*range(RECORDS // 2)] * 2
    return pa.table({"key": [time % KEYS for time in times], "one": [1] * RECORDS, "time": times})


def running_columns(env: StreamExecutionEnvironment, folder: Path) -> DataStream:
    paced = env.from_arrow(table(), batch_rows=PIECE_ROWS).map_batches(
        slowly, schema=table().schema
    )
    return paced.select("key", "one").key_by("key").sum("one")


def windowed_columns(env: StreamExecutionEnvironment, folder: Path) -> DataStream:
    # in the order of time: nothing is late, whether two readers take a row group each or one takes
    # both
    pq.write_table(table().sort_by("time"), folder / "input.parquet", row_group_size=RECORDS // 2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("time")
    read = env.from_parquet(str(folder / "input.parquet"), batch_rows=PIECE_ROWS).map_batches(
        slowly, schema=table().schema
    )
    keyed = read.assign_timestamps_and_watermarks(strategy).key_by("key")
    return (
        keyed.window(tumbling())
        .aggregate(col("time").sum.alias("total"), col("one").count.alias("records"))
        .select("key", "total", "records")
    )


def totals_of_windows() -> list[Record]:
    windows = defaultdict(list)
    for time in [*range(RECORDS // 2)] * 2:
        windows[time % KEYS, time // WINDOW_MS].append(time)
    return [(key, sum(times), len(times)) for (key, _), times in windows.items()]


ROCKSDB = {"state.backend.type": "rocksdb"}
KILLED = (
    Recovering("windows, killed twice", windowed_sums, sums_of_windows, kills=2),
    Recovering("windows in rocksdb", windowed_sums, sums_of_windows, options=ROCKSDB),
    Recovering("a window join", joined_windows, pairs_of_windows),
    Recovering(
        "asynchronous calls, counts in rocksdb", looked_up, counts_of_answers, options=ROCKSDB
    ),
    Recovering("running sums over columns", running_columns, counts_of_answers, "parquet"),
    Recovering("windows over columns", windowed_columns, totals_of_windows, "parquet"),
)
FAILING = Recovering("a function raises once", failing_once, sums_of_windows, kills=0)
