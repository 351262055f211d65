"""q1 and q2 on columns, embedded, parallelism 1: expressions against the same Arrow kernels in a
plain loop, with batches of 8,192."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.data import bid_columns, once
from benchmarks.harness import Comparison, compare, quick
from benchmarks.rows import engine
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.datastream import DataStream
from flinkpy.table.expressions import col

BATCH = 8192


def column_batches(count: int) -> list[Batch]:
    return [
        ColumnBatch(batch)
        for batch in bid_columns(count).combine_chunks().to_batches(max_chunksize=BATCH)
    ]


def bare(batches: list[Any], times: int, kernel: Callable[[Any], Any]) -> Callable[[], float]:
    def run() -> float:
        started, records = time.perf_counter(), 0
        for _ in range(times):
            for batch in batches:
                kernel(batch.data)
                records += batch.data.num_rows
        return records / (time.perf_counter() - started)

    return run


def to_euro(batch: Any) -> Any:
    import pyarrow.compute as pc

    return batch.set_column(2, "price", pc.multiply(batch.column(2), 0.908))


def is_wanted(batch: Any) -> Any:
    import pyarrow.compute as pc

    auction = batch.column(0)
    return batch.filter(
        pc.equal(pc.subtract(auction, pc.multiply(pc.divide(auction, 123), 123)), 0)
    )


def q1(stream: DataStream) -> DataStream:
    return stream.select(
        col("auction"),
        col("bidder"),
        (col("price") * 0.908).alias("price"),
        col("channel"),
        col("url"),
        col("date_time"),
    )


def q2(stream: DataStream) -> DataStream:
    return stream.filter(col("auction") % 123 == 0)


def main() -> list[Comparison]:
    count, times = (50_000, 4) if quick() else (500_000, 60)

    def make(subtask: int, parallelism: int) -> list[Batch]:
        return once(f"columns {count}", lambda: column_batches(count))

    batches = make(0, 1)

    return [
        compare(
            "q1 price * 0.908, columns",
            engine(make, times, q1, columnar=True),
            bare(batches, times, to_euro),
            target=0.8,
        ),
        compare(
            "q2 auction % 123 == 0, columns",
            engine(make, times, q2, columnar=True),
            bare(batches, times, is_wanted),
            target=0.8,
        ),
    ]


if __name__ == "__main__":
    main()
