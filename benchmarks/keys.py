"""The cost of a keyed record against the number of keys (10^3 to 10^7) and of channels (2 to 128),
and the numbering of keys of columns."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from benchmarks.harness import Comparison, compare, quick
from benchmarks.rows import engine
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.datastream import DataStream
from flinkpy.graph.partitioning import KeySpec, Partitioning, PartitioningKind

BATCH = 8192
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


def key_columns(kind: str, keys: int, records: int) -> Any:
    """A record batch of keys, drawn alike."""
    import numpy as np
    import pyarrow as pa

    drawn = np.random.default_rng(keys).integers(0, keys, records)
    columns = {
        "64-bit integers": lambda: {"k": pa.array(drawn * 0x9E3779B97F4A7)},
        "text": lambda: {"k": pa.array([f"key-{key:07d}" for key in drawn.tolist()])},
        "two integers": lambda: {"k": pa.array(drawn // 100), "l": pa.array(drawn % 100)},
    }
    return pa.RecordBatch.from_pydict(columns[kind]())


def numbered(data: Any) -> Callable[[], float]:
    """Keys a second of processor time, when most of them are known."""
    from flinkpy.operators.columnar.key_index import KeyIndex

    index = KeyIndex(data.schema.names)
    return per_second(data, index.numbers)


def dictionary_encoded(data: Any) -> Callable[[], float]:
    """The bare loop: Arrow numbers the values of each batch alone, and of one column alone."""
    return per_second(data, lambda batch: [each.dictionary_encode() for each in batch.columns])


def per_second(data: Any, work: Callable[[Any], Any]) -> Callable[[], float]:
    batches = [data.slice(start, BATCH) for start in range(0, data.num_rows, BATCH)]

    def run() -> float:
        started = time.process_time()
        for batch in batches:
            work(batch)
        return float(data.num_rows / (time.process_time() - started))

    return run


def numbering() -> list[Comparison]:
    records = 50_000 if quick() else 1_000_000
    results = []
    for kind, wanted in (("64-bit integers", 30), ("text", 15), ("two integers", 10)):
        data = key_columns(kind, 10_000, records)
        name, note = f"numbers of {kind}, 10,000 keys", f"wanted {wanted} M/s"
        results.append(compare(name, numbered(data), dictionary_encoded(data), note=note))
    few = numbered(key_columns("64-bit integers", 1_000, records))
    for keys in (100_000,) if quick() else (100_000, 1_000_000, 10_000_000):
        data = key_columns("64-bit integers", keys, max(records, min(keys, 4_000_000)))
        note = f"at least {1 / MOST_GROWTH:.2f} wanted"
        results.append(compare(f"the same, {keys:,} keys vs 1,000", numbered(data), few, note=note))
    return results


def main() -> list[Comparison]:
    results = numbering()
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
