"""q8 on rows and columns, embedded, parallelism 1: a window join of auctions with their sellers,
against the same join in a plain loop.

Ten seconds of event time have 100,000 auctions and 10,000 persons; each auction's seller is a
person of the last five seconds. Records of both sides count."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.data import BASE_MS, once
from benchmarks.harness import Comparison, compare, quick
from benchmarks.probe import CountingSink, ReplaySource, steady_state
from flinkpy.common import Duration, Time, WatermarkStrategy
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.datastream.window import TumblingEventTimeWindows

ROWS, COLUMNS = 1_000, 8_190  # records in a batch of auctions; a batch of persons has a tenth of it
WINDOW_MS = 10_000

Auction: TypeAlias = tuple[int, int, int]
Person: TypeAlias = tuple[int, int]


def auctions(count: int, seed: int = 7) -> list[Auction]:
    """(seller, price, time in ms), ten a millisecond."""
    chance = random.Random(seed)
    return [
        (
            max(0, i // 10 - chance.randrange(5_000)),
            chance.randrange(100, 10_000_000),
            BASE_MS + i // 10,
        )
        for i in range(count)
    ]


def persons(count: int) -> list[Person]:
    """(id, time in ms), one per millisecond."""
    return [(i, BASE_MS + i) for i in range(count)]


def in_batches(values: list[Any], size: int) -> list[Batch]:
    return [RowBatch(values[at : at + size]) for at in range(0, len(values), size)]


def in_column_batches(values: list[Any], names: tuple[str, ...], size: int) -> list[Batch]:
    import pyarrow as pa

    table = pa.table(dict(zip(names, map(list, zip(*values)))))
    return [ColumnBatch(batch) for batch in table.combine_chunks().to_batches(max_chunksize=size)]


def seller(auction: Auction) -> int:
    return auction[0]


def person_id(person: Person) -> int:
    return person[0]


def sale(auction: Auction, person: Person) -> tuple[int, int]:
    return auction[0], auction[1]


Make = Callable[[int, int], list[Batch]]


def engine(
    left: Make,
    right: Make,
    program: Callable[[DataStream, DataStream], DataStream],
    columnar: bool,
    results: int,
) -> Callable[[], float]:
    """Runs the program through the public API and returns the records per second of both sides."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(50))

    def run(folder: str) -> None:
        aside = Path(folder) / "right"  # only one source may decide when the steady state begins
        aside.mkdir()
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        auctions = env.from_source(
            ReplaySource(left, 1, folder, columnar),
            strategy.with_timestamp_assigner("at" if columnar else lambda auction: auction[2]),
            "auctions",
        )
        persons = env.from_source(
            ReplaySource(right, 1, str(aside), columnar),
            strategy.with_timestamp_assigner("since" if columnar else lambda person: person[1]),
            "persons",
        )
        program(auctions, persons).sink_to(CountingSink(folder))
        env.execute("benchmark")

    def rate() -> float:
        steady = steady_state(run)
        assert steady.results == results, f"{steady.results} results where there must be {results}"
        return steady.rate * 1.1

    return rate


def join_rows(left: DataStream, right: DataStream) -> DataStream:
    return (
        left.join(right)
        .where(seller)
        .equal_to(person_id)
        .window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
        .apply(sale)
    )


def join_columns(left: DataStream, right: DataStream) -> DataStream:
    return (
        left.join(right)
        .where("seller")
        .equal_to("id")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
        .select("seller", "price")
    )


def bare_rows(left: list[Any], right: list[Any], found: list[int]) -> Callable[[], float]:
    """Keeps a dict of persons and a list of auctions per window, and joins them when the next
    window begins."""

    def join(
        window: int, sides: tuple[dict[int, dict[int, Person]], dict[int, list[Auction]]]
    ) -> int:
        people = sides[0].pop(window, {})
        return len(
            [
                sale(auction, people[seller(auction)])
                for auction in sides[1].pop(window, [])
                if seller(auction) in people
            ]
        )

    def run() -> float:
        started, records, results = time.perf_counter(), 0, 0
        people: dict[int, dict[int, Person]] = {}
        waiting: dict[int, list[Auction]] = {}
        current = BASE_MS // WINDOW_MS
        for auction_batch, person_batch in zip(left, right):
            for person in person_batch.values:
                people.setdefault(person[1] // WINDOW_MS, {})[person_id(person)] = person
            for auction in auction_batch.values:
                waiting.setdefault(auction[2] // WINDOW_MS, []).append(auction)
            records += len(auction_batch) + len(person_batch)
            reached = auction_batch.values[-1][2] // WINDOW_MS
            while current < reached:
                results += join(current, (people, waiting))
                current += 1
        results += join(current, (people, waiting))
        found[:] = [results]
        return records / (time.perf_counter() - started)

    return run


def bare_columns(left: list[Any], right: list[Any]) -> Callable[[], float]:
    """Uses Arrow's own join of the two tables of each window."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def of_window(batch: Any, column: str, window: int) -> Any:
        return batch.filter(pc.equal(pc.divide(batch.column(column), WINDOW_MS), window))

    def run() -> float:
        started, records = time.perf_counter(), 0
        windows: dict[int, tuple[list[Any], list[Any]]] = {}
        current = BASE_MS // WINDOW_MS

        def join(window: int) -> None:
            tables = [
                pa.Table.from_batches(batches)
                for batches in windows.pop(window, ([], []))
                if batches
            ]
            if len(tables) == 2:
                tables[0].join(tables[1], "seller", "id", join_type="inner", use_threads=False)

        for pair in zip(left, right):
            for side, (batch, column) in enumerate(zip(pair, ("at", "since"))):
                stamps = batch.data.column(column)
                first, last = stamps[0].as_py() // WINDOW_MS, stamps[-1].as_py() // WINDOW_MS
                for window in range(first, last + 1):
                    part = batch.data if first == last else of_window(batch.data, column, window)
                    windows.setdefault(window, ([], []))[side].append(part)
                records += len(batch)
            while current < last:
                join(current)
                current += 1
        join(current)
        return records / (time.perf_counter() - started)

    return run


def main() -> list[Comparison]:
    count = 200_000 if quick() else 1_000_000
    column_count = 500_000 if quick() else 3_000_000
    rounds = 1 if quick() else 5

    def left_rows(subtask: int, parallelism: int) -> list[Batch]:
        return once(f"auctions {count}", lambda: in_batches(auctions(count), ROWS))

    def right_rows(subtask: int, parallelism: int) -> list[Batch]:
        return once(f"persons {count}", lambda: in_batches(persons(count // 10), ROWS // 10))

    def left_columns(subtask: int, parallelism: int) -> list[Batch]:
        return once(
            f"auction columns {column_count}",
            lambda: in_column_batches(auctions(column_count), ("seller", "price", "at"), COLUMNS),
        )

    def right_columns(subtask: int, parallelism: int) -> list[Batch]:
        return once(
            f"person columns {column_count}",
            lambda: in_column_batches(persons(column_count // 10), ("id", "since"), COLUMNS // 10),
        )

    found: list[int] = []
    bare = bare_rows(left_rows(0, 1), right_rows(0, 1), found)
    bare()
    rows = compare(
        "q8 window join, rows",
        engine(left_rows, right_rows, join_rows, False, found[0]),
        bare,
        rounds=rounds,
    )
    expected = sum(
        1
        for sold in auctions(column_count)
        if (BASE_MS + sold[0]) // WINDOW_MS == sold[2] // WINDOW_MS
    )
    return [
        rows,
        compare(
            "q8 window join, columns",
            engine(left_columns, right_columns, join_columns, True, expected),
            bare_columns(left_columns(0, 1), right_columns(0, 1)),
            rounds=rounds,
        ),
    ]


if __name__ == "__main__":
    main()
