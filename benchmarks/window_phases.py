"""q5 and a q7 by auction in two processes on Ray: against one process, and in two phases against
one phase."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from benchmarks.columns import BATCH as COLUMN_BATCH
from benchmarks.data import once
from benchmarks.harness import Comparison, compare, quick
from benchmarks.on_ray import ray_cluster
from benchmarks.rows import BATCH as ROW_BATCH
from benchmarks.two_processes import on_ray
from benchmarks.windows import TUMBLING, bid_table, q5_columns, q5_rows, stamped
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.datastream import DataStream
from flinkpy.table.expressions import col

ONE_PHASE = {"table.optimizer.agg-phase-strategy": "ONE_PHASE"}


def q7_rows(stream: DataStream) -> DataStream:
    return stamped(stream, itemgetter(5)).key_by(itemgetter(0)).window(TUMBLING).max_by(2)


def q7_columns(stream: DataStream) -> DataStream:
    return (
        stamped(stream, col("date_time"))
        .key_by("auction")
        .window(TUMBLING)
        .aggregate(col("price").max.alias("highest"))
    )


def rows_of(count: int, subtask: int, parallelism: int) -> list[Batch]:
    """Every ``parallelism``-th bid, so that all subtasks have the same time span."""
    values = once(
        f"phase rows {count}",
        lambda: list(zip(*(column.to_pylist() for column in bid_table(count).columns))),
    )[subtask::parallelism]
    return [RowBatch(values[at : at + ROW_BATCH]) for at in range(0, len(values), ROW_BATCH)]


def columns_of(count: int, subtask: int, parallelism: int) -> list[Batch]:
    import numpy as np

    [table] = once(f"phase columns {count}", lambda: [bid_table(count)])
    share = table.take(np.arange(subtask, count, parallelism)).combine_chunks()
    return [ColumnBatch(batch) for batch in share.to_batches(max_chunksize=COLUMN_BATCH)]


def main() -> list[Comparison]:
    rows, columns, rounds = (20_000, 100_000, 1) if quick() else (3_000_000, 12_000_000, 5)
    results = []
    with ray_cluster():
        for name, program, make, count, target in [
            ("q5, rows", q5_rows, rows_of, rows, 1.7),
            ("q7 by auction, rows", q7_rows, rows_of, rows, 1.7),
            ("q5, columns", q5_columns, columns_of, columns, 1.6),
            ("q7 by auction, columns", q7_columns, columns_of, columns, 1.6),
        ]:
            two, single, one_phase = runs(program, make, count)
            results.append(
                compare(
                    f"{name}, 2 processes vs 1",
                    two,
                    single,
                    target=target,
                    rounds=rounds,
                    note="bare = parallelism 1",
                )
            )
            results.append(
                compare(
                    f"{name}, 2 phases vs 1",
                    two,
                    one_phase,
                    rounds=rounds,
                    note="2 processes both times",
                )
            )
    return results


def runs(
    program: Callable[[DataStream], DataStream],
    make: Callable[[int, int, int], list[Batch]],
    count: int,
) -> tuple[Callable[[], float], ...]:
    """Returns runs in two processes, in one, and in two with one phase."""

    def batches(subtask: int, parallelism: int) -> list[Batch]:
        return make(count, subtask, parallelism)

    def at(parallelism: int, options: dict[str, Any] | None = None) -> Callable[[], float]:
        return on_ray(
            batches, 1, parallelism, program, columnar=make is columns_of, options=options
        )

    return at(2), at(1), at(2, ONE_PHASE)


if __name__ == "__main__":
    main()
