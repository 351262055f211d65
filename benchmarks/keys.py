"""The cost of a keyed record against the number of keys (10^3 to 10^7) and of channels (2 to
128)."""

from __future__ import annotations

import random
import time

from benchmarks.harness import Comparison, quick
from benchmarks.rows import engine
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.datastream import DataStream
from flinkpy.graph.partitioning import KeySpec, Partitioning, PartitioningKind

MOST_GROWTH = 3.0  # in multiples of the cost per record with a thousand keys


def first(pair: tuple[int, int]) -> int:
    return pair[0]


def add(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    return (left[0], left[1] + right[1])


def keyed_sum(stream: DataStream) -> DataStream:
    return stream.key_by(first).reduce(add)


def cost_by_keys(keys: int, records: int) -> float:
    """Nanoseconds per record of a running sum, parallelism 1."""

    def make(subtask: int, parallelism: int) -> list[Batch]:
        rng = random.Random(keys)
        return [
            RowBatch([(rng.randrange(keys), 1) for _ in range(1000)])
            for _ in range(records // 1000)
        ]

    return 1e9 / engine(make, 1, keyed_sum)()


def cost_by_channels(channels: int, records: int) -> float:
    """Nanoseconds per record of the partitioner alone."""
    from flinkpy.network.partitioning.partitioners import make_selector

    partitioner = make_selector(
        Partitioning(PartitioningKind.HASH, KeySpec(first), max_parallelism=128), channels
    )
    batches = [
        RowBatch([(at * 7919 % 10_000, 1) for at in range(start, start + 1000)])
        for start in range(0, records, 1000)
    ]
    started = time.perf_counter()
    for batch in batches:
        partitioner.split(batch)
    return (time.perf_counter() - started) * 1e9 / records


def main() -> list[Comparison]:
    results = []
    records = 50_000 if quick() else 2_000_000
    base = cost_by_keys(1_000, records)
    for keys in (10_000,) if quick() else (10_000, 100_000, 1_000_000, 10_000_000):
        cost = cost_by_keys(keys, max(records, min(keys, 10_000_000)))
        note = (
            f"target at most {MOST_GROWTH:g}: "
            f"{'reached' if cost <= MOST_GROWTH * base else 'NOT REACHED'}"
        )
        results.append(
            Comparison(
                f"running sum, {keys:,} keys vs 1,000",
                "ns/record",
                cost,
                base,
                cost / base,
                None,
                note,
            )
        )
        print(results[-1], flush=True)
    base = cost_by_channels(2, records)
    for channels in (8, 32, 128):
        cost = cost_by_channels(channels, records)
        results.append(
            Comparison(
                f"partition by key, {channels} channels vs 2", "ns/record", cost, base, cost / base
            )
        )
        print(results[-1], flush=True)
    return results


if __name__ == "__main__":
    main()
