"""Nexmark in SQL, and the same jobs as programs of columns; and how long planning takes.

Both read the same events from memory in STREAMING, parallelism 1, and give an Arrow table: rows of
input a second of processor time. A query that has no columnar program beside it is compared with
the program that passes all bids on. 400,000 events (``--quick``: 20,000)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Comparison, compare, medians, quick
from examples.nexmark.queries import EURO, TEN_SECONDS, Most
from examples.nexmark.queries_in_sql import APPENDED, auction_house, count_char, query
from flinkpy.common import Duration, Time, WatermarkStrategy
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from flinkpy.table import Schema, StreamTableEnvironment
from flinkpy.table.expressions import col

PLANNING_MS = 50
KINDS = ("person", "auction", "bid")
ROWS_AT_ONCE = 8_192
CLOCK = 12  # the query by the machine's clock: its windows close with the clock


def events(count: int) -> dict[str, Any]:
    """So many events of three kinds, as an Arrow table for each."""
    import pyarrow as pa

    from flinkpy.connectors.memory.nexmark import NexmarkGenerator
    from flinkpy.table.factories.nexmark_tables import COLUMNS, NexmarkColumns

    generator = NexmarkGenerator(events=count)
    found = {}
    for kind in KINDS:
        schema = pa.schema([(name, _type_of(name)) for name in COLUMNS[kind]])
        numbers = np.arange(generator.count(kind) or 0)
        found[kind] = pa.Table.from_batches([NexmarkColumns(generator, kind, schema)(numbers)])
    return found


def _type_of(name: str) -> Any:
    import pyarrow as pa

    numbers = ("id", "initialBid", "reserve", "seller", "category", "auction", "bidder", "price")
    if name in ("dateTime", "expires"):
        return pa.timestamp("ms")
    return pa.int64() if name in numbers else pa.string()


class Streams:
    """One program's streams of the events. The watermark is four seconds behind, as in the tables
    of the benchmark."""

    def __init__(self, tables: dict[str, Any], rows_at_once: int = ROWS_AT_ONCE) -> None:
        self.env = StreamExecutionEnvironment.get_execution_environment()
        self.env.set_parallelism(1)
        self._tables = tables
        self._rows_at_once = rows_at_once

    def raw(self, kind: str) -> DataStream:
        return self.env.from_arrow(self._tables[kind], self._rows_at_once)

    def in_time(self, kind: str) -> DataStream:
        by_time = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(4))
        return self.raw(kind).assign_timestamps_and_watermarks(
            by_time.with_timestamp_assigner(col("dateTime"))
        )


def q0(streams: Streams) -> DataStream:
    return streams.raw("bid").select("auction", "bidder", "price", "dateTime", "extra")


def q1(streams: Streams) -> DataStream:
    price = (col("price") * EURO).alias("price")
    return streams.raw("bid").select("auction", "bidder", price, "dateTime", "extra")


def q2(streams: Streams) -> DataStream:
    return streams.raw("bid").filter(col("auction") % 123 == 0).select("auction", "price")


def q5(streams: Streams) -> DataStream:
    sliding = SlidingEventTimeWindows.of(TEN_SECONDS, Time.seconds(2))
    counts = (
        streams.in_time("bid")
        .key_by("auction")
        .window(sliding)
        .aggregate(col("auction").count.alias("bids"))
    )
    return counts.window_all(TumblingEventTimeWindows.of(Time.seconds(2))).process(Most())


def q7(streams: Streams) -> DataStream:
    bids = streams.in_time("bid")
    ten_seconds = TumblingEventTimeWindows.of(TEN_SECONDS)
    highest = bids.window_all(ten_seconds).aggregate(col("price").max.alias("highest"))
    joined = bids.join(highest).where("price").equal_to("highest").window(ten_seconds)
    return joined.select("auction", "price", "bidder", "dateTime", "extra")


def q8(streams: Streams) -> DataStream:
    ten_seconds = TumblingEventTimeWindows.of(TEN_SECONDS)
    joined = streams.in_time("person").join(streams.in_time("auction"))
    return joined.where("id").equal_to("seller").window(ten_seconds).select("id", "name")


PROGRAMS: dict[int, Callable[[Streams], DataStream]] = {0: q0, 1: q1, 2: q2, 5: q5, 7: q7, 8: q8}


def rate(tables: dict[str, Any], run: Callable[[], object]) -> float:
    """Rows of input a second of this process's processor time."""
    begun = time.process_time()
    run()
    rows = sum(len(tables[kind]) for kind in KINDS)
    return rows / (time.process_time() - begun)


def run_program(tables: dict[str, Any], number: int) -> Callable[[], float]:
    def run() -> object:
        stream = PROGRAMS[number](Streams(tables))
        with stream.execute_and_collect() as results:
            return sum(1 for _ in results)

    def run_columns() -> object:
        return PROGRAMS[number](Streams(tables)).to_arrow()

    return lambda: rate(tables, run if number == 5 else run_columns)


def run_query(tables: dict[str, Any], number: int) -> Callable[[], float]:
    text = query(f"q{number}")

    def run() -> object:
        streams = Streams(tables)
        session = StreamTableEnvironment.create(streams.env)
        session.create_temporary_system_function("count_char", count_char)
        schema = (
            Schema.new_builder().watermark("dateTime", "`dateTime` - INTERVAL '4' SECOND").build()
        )
        for kind in KINDS:
            session.create_temporary_view(kind, streams.raw(kind), schema)
        return session.execute_sql(text).to_arrow()

    return lambda: rate(tables, run)


def planning_ms() -> list[tuple[int, float]]:
    """How long each query takes from its text to its plan: the median of several times."""
    session = auction_house(1_000)
    found = []
    for number in APPENDED:
        text, times = query(f"q{number}"), []
        for _ in range(3 if quick() else 9):
            begun = time.process_time()
            session.explain_sql(text)
            times.append((time.process_time() - begun) * 1_000)
        found.append((number, statistics.median(times)))
    return found


def main() -> list[Comparison]:
    tables = events(20_000 if quick() else 400_000)
    rounds = 1 if quick() else 3
    results = []
    for number in APPENDED:
        if number == CLOCK:
            continue
        beside = number if number in PROGRAMS else 0
        results.append(
            compare(
                f"q{number} in SQL",
                run_query(tables, number),
                run_program(tables, beside),
                unit="rows/cpu-s",
                rounds=rounds,
                note=f"beside the program of q{beside}",
            )
        )
    for number, taken in planning_ms():
        results.append(
            medians(f"q{number} is planned", [(taken, float(PLANNING_MS))], "ms", None, "beside 50")
        )
    return results


if __name__ == "__main__":
    main()
