"""q0, q1, q2 and wc on rows, embedded, parallelism 1: the job through the public API against the
same functions in a plain loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.data import Bid, bids, lines, once
from benchmarks.harness import Comparison, compare, quick
from benchmarks.probe import CountingSink, ReplaySource, steady_state
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.datastream import DataStream, StreamExecutionEnvironment

BATCH = 1000


def to_euro(bid: Bid) -> Bid:
    return (bid[0], bid[1], int(bid[2] * 0.908), bid[3], bid[4], bid[5])


def is_wanted(bid: Bid) -> bool:
    return bid[0] % 123 == 0


def split(line: str) -> list[tuple[str, int]]:
    return [(word, 1) for word in line.split(" ")]


def word(pair: tuple[str, int]) -> str:
    return pair[0]


def add(left: tuple[str, int], right: tuple[str, int]) -> tuple[str, int]:
    return (left[0], left[1] + right[1])


def in_batches(values: list[Any]) -> list[Batch]:
    return [RowBatch(values[at : at + BATCH]) for at in range(0, len(values), BATCH)]


def engine(
    make: Callable[[int, int], list[Batch]],
    times: int,
    program: Callable[[DataStream], DataStream],
    columnar: bool = False,
) -> Callable[[], float]:
    """Returns a run of the program through the public API, which returns records per second."""

    def run(folder: str) -> None:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        program(
            env.from_source(ReplaySource(make, times, folder, columnar), None, "replay")
        ).sink_to(CountingSink(folder))
        env.execute("benchmark")

    return lambda: steady_state(run).rate


def bare(batches: list[Any], times: int, loop: Callable[[list[Any]], int]) -> Callable[[], float]:
    """Returns a run of the plain loop over the same lists."""
    values = [batch.values for batch in batches]

    def run() -> float:
        started, records = time.perf_counter(), 0
        for _ in range(times):
            for batch in values:
                loop(batch)
                records += len(batch)
        return records / (time.perf_counter() - started)

    return run


def bare_word_count() -> Callable[[list[str]], int]:
    counts: dict[str, tuple[str, int]] = {}

    def loop(batch: list[str]) -> int:
        out = []
        for line in batch:
            for pair in split(line):
                key = word(pair)
                current = counts.get(key)
                if current is not None:
                    pair = add(current, pair)
                counts[key] = pair
                out.append(pair)
        return len(out)

    return loop


def main() -> list[Comparison]:
    count, times = (20_000, 2) if quick() else (500_000, 10)
    words = 2_000 if quick() else 50_000

    def make_bids(subtask: int, parallelism: int) -> list[Batch]:
        return once(f"bids {count}", lambda: in_batches(bids(count)))

    def make_lines(subtask: int, parallelism: int) -> list[Batch]:
        return once(f"lines {words}", lambda: in_batches(lines(words)))

    bid_batches, line_batches = make_bids(0, 1), make_lines(0, 1)

    return [
        compare(
            "q0 pass through, rows",
            engine(make_bids, 10 * times, lambda ds: ds),
            bare(bid_batches, 10 * times, lambda batch: len(list(batch))),
        ),
        compare(
            "q1 map, rows",
            engine(make_bids, times, lambda ds: ds.map(to_euro)),
            bare(bid_batches, times, lambda batch: len([to_euro(b) for b in batch])),
            target=0.85,
        ),
        compare(
            "q2 filter, rows",
            engine(make_bids, times, lambda ds: ds.filter(is_wanted)),
            bare(bid_batches, times, lambda batch: len([b for b in batch if is_wanted(b)])),
            target=0.85,
        ),
        compare(
            "wc flat_map, key_by, reduce, rows",
            engine(make_lines, times, lambda ds: ds.flat_map(split).key_by(word).reduce(add)),
            bare(line_batches, times, bare_word_count()),
            unit="lines/s",
            target=0.75,
        ),
    ]


if __name__ == "__main__":
    main()
