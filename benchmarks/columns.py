"""q1 and q2 on columns, embedded, parallelism 1: expressions against the same Arrow kernels in a
plain loop, with batches of 8,192; and decimals, against floats."""

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


def decimals(count: int, precision: int, scale: int, most: int) -> Any:
    import numpy as np
    import pyarrow as pa

    words = np.zeros((count, 2), np.int64)
    words[:, 0] = np.random.default_rng(precision).integers(0, most, count)
    return pa.Array.from_buffers(
        pa.decimal128(precision, scale), count, [None, pa.py_buffer(words)]
    )


def products(count: int) -> list[Comparison]:
    """A million products, with short and with long numbers. Bare: Arrow's products of 256 bits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from flinkpy.columns.compiler import compile_expression

    results = []
    for name, most, times, other in (
        ("short", 10**9, 10, 10**9),
        ("long", 9 * 10**18, 10**9, 10**10),
    ):
        data = pa.RecordBatch.from_arrays(
            [
                pc.multiply(decimals(count, 19, 2, most), decimals(count, 11, 2, times)).cast(
                    pa.decimal128(31, 4)
                ),
                decimals(count, 16, 2, other),
            ],
            names=["x", "y"],
        )
        evaluate = compile_expression(col("x") * col("y"), data.schema).evaluate

        def ours(evaluate: Any = evaluate, data: Any = data) -> float:
            return seconds(lambda: evaluate(data))

        def bare(data: Any = data) -> float:
            x, y = data.columns
            wide = (x.cast(pa.decimal256(31, 4)), y.cast(pa.decimal256(16, 2)))
            return seconds(lambda: pc.multiply(*wide).cast(pa.decimal128(38, 6)))

        results.append(
            compare(
                f"DECIMAL(31,4) * DECIMAL(16,2), {name}",
                ours,
                bare,
                unit="s",
                note=f"{count:,} records, wanted 0.35 s of a million",
            )
        )
    return results


def grouped_sums(count: int) -> list[Comparison]:
    """Running sums and averages of ten thousand keys, beside those of DOUBLE."""
    import numpy as np
    import pyarrow as pa

    keys = pa.array(np.random.default_rng(1).integers(0, 10_000, count))
    money = decimals(count, 16, 2, 10**15)
    columns = {
        "DECIMAL(16,2)": money,
        "DECIMAL(38,18)": money.cast(pa.decimal128(38, 18)),
        "DOUBLE": pa.array(np.random.default_rng(2).random(count)),
    }

    def grouped(kind: str, name: str) -> float:
        data = pa.RecordBatch.from_arrays([keys, columns[kind]], names=["k", "v"])

        def batches(subtask: int, parallelism: int) -> list[Batch]:
            """Cut where they are used: a pickled slice has all that it was cut from."""
            return [ColumnBatch(data.slice(start, BATCH)) for start in range(0, count, BATCH)]

        aggregate = getattr(col("v"), name).alias("a")
        run = engine(
            batches, 1, lambda stream: stream.key_by("k").aggregate(aggregate), columnar=True
        )
        return 1e9 / run()

    return [
        compare(
            f"{name} of {kind} by key, vs DOUBLE",
            lambda kind=kind, name=name: grouped(kind, name),  # type: ignore[misc]
            lambda name=name: grouped("DOUBLE", name),  # type: ignore[misc]
            unit="ns/record",
            note="at most 3 wanted",
        )
        for name in ("sum", "avg")
        for kind in ("DECIMAL(16,2)", "DECIMAL(38,18)")
    ]


def seconds(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


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
        *products(50_000 if quick() else 1_000_000),
        *grouped_sums(50_000 if quick() else 1_000_000),
    ]


if __name__ == "__main__":
    main()
