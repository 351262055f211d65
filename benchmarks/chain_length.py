"""The cost of one map in a chain of 2, 8 and 32: it must not grow with the chain."""

from __future__ import annotations

from benchmarks.data import bids
from benchmarks.harness import Comparison, quick
from benchmarks.rows import engine, in_batches
from flinkpy.core.elements import Batch
from flinkpy.datastream import DataStream


def same(value: object) -> object:
    return value


def program(maps: int) -> object:
    def build(stream: DataStream) -> DataStream:
        for _ in range(maps):
            stream = stream.map(same)
        return stream

    return build


def main() -> list[Comparison]:
    count, times = (10_000, 2) if quick() else (200_000, 10)

    def make(subtask: int, parallelism: int) -> list[Batch]:
        return in_batches(bids(count))

    def nanoseconds_per_map(maps: int) -> float:
        runs = sorted(1e9 / engine(make, times, program(maps))() / maps for _ in range(5))  # type: ignore[arg-type]
        return runs[2]

    short = nanoseconds_per_map(2)
    results = []
    for maps in (8, 32):
        cost = nanoseconds_per_map(maps)
        results.append(
            Comparison(
                f"cost per map, chain of {maps} vs 2",
                "ns",
                cost,
                short,
                cost / short,
                None,
                "target: at most 1.15",
            )
        )
        print(results[-1], flush=True)
    return results


if __name__ == "__main__":
    main()
