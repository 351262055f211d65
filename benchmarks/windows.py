"""q5 (bids per auction, windows of 10 s every 2 s) and q7 (highest price of every 10 s), on rows
and on columns, against bare loops over slices.

The bare loops only add up records: at the end of a window they combine nothing and emit nothing.
For columns they use numpy and Arrow kernels."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from benchmarks.columns import BATCH as COLUMN_BATCH
from benchmarks.columns import bare as bare_columns
from benchmarks.data import BASE_MS, once
from benchmarks.harness import Comparison, compare, quick
from benchmarks.rows import BATCH as ROW_BATCH
from benchmarks.rows import bare, engine
from flinkpy.common.time import Duration, Time
from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.datastream import DataStream
from flinkpy.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from flinkpy.table.expressions import col

AUCTIONS = 10_000
DISORDER = Duration.of_millis(50)
SLIDING = SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(2))
TUMBLING = TumblingEventTimeWindows.of(Time.seconds(10))


def bid_table(count: int) -> Any:
    """10,000 bids per second, up to 20 ms out of order; the k-th most popular of 10,000 auctions
    has 1/k times as many bids as the first."""
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(42)
    weights = np.cumsum(1 / np.arange(1, AUCTIONS + 1))
    auction = np.searchsorted(weights / weights[-1], random.random(count)).clip(0, AUCTIONS - 1)
    channels = np.array(["Google", "Facebook", "Baidu", "Apple"])
    urls = np.array([f"https://example.org/item/{i}" for i in range(AUCTIONS)])
    return pa.table(
        {
            "auction": auction + 1000,
            "bidder": random.integers(1000, 101_000, count),
            "price": random.integers(100, 10_000_000, count),
            "channel": channels[random.integers(0, 4, count)],
            "url": urls[auction],
            "date_time": BASE_MS + np.arange(count) // 10 + random.integers(-20, 21, count),
        }
    )


def row_batches(count: int) -> list[Batch]:
    values = list(zip(*(column.to_pylist() for column in bid_table(count).columns)))
    return [RowBatch(values[at : at + ROW_BATCH]) for at in range(0, count, ROW_BATCH)]


def column_batches(count: int) -> list[Batch]:
    return [
        ColumnBatch(batch)
        for batch in bid_table(count).combine_chunks().to_batches(max_chunksize=COLUMN_BATCH)
    ]


def stamped(stream: DataStream, assigner: Any) -> DataStream:
    return stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(DISORDER).with_timestamp_assigner(assigner)
    )


def q5_rows(stream: DataStream) -> DataStream:
    return stamped(stream, itemgetter(5)).key_by(itemgetter(0)).window(SLIDING).count()


def q7_rows(stream: DataStream) -> DataStream:
    return stamped(stream, itemgetter(5)).window_all(TUMBLING).max(2)


def q5_columns(stream: DataStream) -> DataStream:
    return (
        stamped(stream, col("date_time"))
        .key_by("auction")
        .window(SLIDING)
        .aggregate(col("auction").count.alias("bids"))
    )


def q7_columns(stream: DataStream) -> DataStream:
    return (
        stamped(stream, col("date_time"))
        .window_all(TUMBLING)
        .aggregate(col("price").max.alias("highest"))
    )


def bare_q5() -> Callable[[list[Any]], int]:
    counts: dict[tuple[int, int], int] = {}

    def loop(batch: list[Any]) -> int:
        for bid in batch:
            place = bid[0], bid[5] // 2000
            counts[place] = counts.get(place, 0) + 1
        if len(counts) > 500_000:
            counts.clear()
        return 0

    return loop


def bare_q7() -> Callable[[list[Any]], int]:
    highest: dict[int, int] = {}

    def loop(batch: list[Any]) -> int:
        for bid in batch:
            window = bid[5] // 10_000
            if bid[2] > highest.get(window, 0):
                highest[window] = bid[2]
        return 0

    return loop


def bare_q5_columns(data: Any) -> Any:
    import pyarrow as pa

    panes = pa.array(data.column(5).to_numpy() // 2000)
    bids = pa.table([data.column(0), panes], names=["auction", "pane"])
    return bids.group_by(["auction", "pane"], use_threads=False).aggregate([([], "count_all")])


def bare_q7_columns(data: Any) -> Any:
    import pyarrow as pa

    windows = pa.array(data.column(5).to_numpy() // 10_000)
    return (
        pa.table([windows, data.column(2)], names=["window", "price"])
        .group_by("window", use_threads=False)
        .aggregate([("price", "max")])
    )


def main() -> list[Comparison]:
    rows, columns, rounds = (20_000, 100_000, 1) if quick() else (500_000, 4_000_000, 5)

    def make_rows(subtask: int, parallelism: int) -> list[Batch]:
        return once(f"window rows {rows}", lambda: row_batches(rows))

    def make_columns(subtask: int, parallelism: int) -> list[Batch]:
        return once(f"window columns {columns}", lambda: column_batches(columns))

    row_list, column_list = make_rows(0, 1), make_columns(0, 1)
    return [
        compare(
            "q5 sliding count, rows",
            engine(make_rows, 1, q5_rows),
            bare(row_list, 1, bare_q5()),
            target=0.5,
            rounds=rounds,
            note="wanted: 70 x Bytewax, 0.62 M/s",
        ),
        compare(
            "q7 tumbling max, rows",
            engine(make_rows, 1, q7_rows),
            bare(row_list, 1, bare_q7()),
            target=0.5,
            rounds=rounds,
            note="wanted: 4 x Bytewax, 2.2 M/s",
        ),
        compare(
            "q5 sliding count, columns",
            engine(make_columns, 1, q5_columns, columnar=True),
            bare_columns(column_list, 1, bare_q5_columns),
            target=0.6,
            rounds=rounds,
            note="wanted: 10 x Flink Java, 5.7 M/s",
        ),
        compare(
            "q7 tumbling max, columns",
            engine(make_columns, 1, q7_columns, columnar=True),
            bare_columns(column_list, 1, bare_q7_columns),
            target=1.5,
            rounds=rounds,
            note="wanted: 4 x Flink Java, 12.4 M/s",
        ),
    ]


if __name__ == "__main__":
    main()
