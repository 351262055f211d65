"""Nexmark: the queries of an auction house, each a small DataStream program.

    python examples/nexmark/queries.py q5 [--events 100000] [--parallelism 2] [--show 10]
    python examples/nexmark/queries.py q12 --pace 10000
    flinkpy run -t ray -p 2 examples/nexmark/queries.py q8

| query | asks for | shows |
|---|---|---|
| q0 | all bids | what the engine itself costs |
| q1 | prices in euros | expressions over columns |
| q2 | bids on some auctions | a filter over columns |
| q3 | who sells in category 10 in OR, ID or CA | a join of two whole streams, by state |
| q4 | the mean closing price of each category | timers: an auction closes when its time has come |
| q5 | the auctions with most bids of the last ten seconds | sliding windows, twice |
| q7 | the highest bid of every ten seconds | a window over everything, joined back to the bids |
| q8 | persons who sold within the ten seconds in which they came | co-group over windows |
| q11 | how many bids a bidder makes in one session | session windows |
| q12 | a bidder's bids in ten seconds of the machine's clock | processing-time windows |
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from flinkpy.common import Duration, Time, Types, WatermarkStrategy
from flinkpy.connectors.sources import NexmarkGenerator
from flinkpy.datastream import (
    DataStream,
    KeyedCoProcessFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.state import ListStateDescriptor, ValueStateDescriptor
from flinkpy.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from flinkpy.table.expressions import col

TEN_SECONDS = Time.seconds(10)
EURO = 0.908


class House:
    """One program's three streams with event time. ``pace`` is the records per second of each
    (None: as fast as the job takes them)."""

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        generator: NexmarkGenerator,
        pace: float | None = None,
    ) -> None:
        self._env = env
        self._generator = generator
        self._pace = pace

    def _stream(self, kind: str) -> DataStream:
        by_time = WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_seconds(1)
        ).with_timestamp_assigner(col("date_time"))
        return self._env.from_source(self._generator.source(kind, self._pace), by_time, f"{kind}s")

    def persons(self) -> DataStream:
        return self._stream("person")

    def auctions(self) -> DataStream:
        return self._stream("auction")

    def bids(self) -> DataStream:
        return self._stream("bid")


def q0(house: House) -> DataStream:
    return house.bids()


def q1(house: House) -> DataStream:
    return house.bids().select(
        "auction", "bidder", (col("price") * EURO).alias("price"), "date_time"
    )


def q2(house: House) -> DataStream:
    return house.bids().filter(col("auction") % 123 == 0).select("auction", "price")


class LocalItems(KeyedCoProcessFunction):
    """Keeps the records of both sides, since a seller may come after the auction."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seller = runtime_context.get_state(
            ValueStateDescriptor("seller", Types.PICKLED_BYTE_ARRAY())
        )
        self.auctions = runtime_context.get_list_state(
            ListStateDescriptor("auctions", Types.LONG())
        )

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        seller = (value.name, value.city, value.state)
        self.seller.update(seller)
        for auction in self.auctions.get():
            yield (*seller, auction)

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.auctions.add(value.id)
        seller = self.seller.value()
        if seller is not None:
            yield (*seller, value.id)


def q3(house: House) -> DataStream:
    """(name, city, state, auction)"""
    sellers = house.persons().filter(
        (col("state") == "OR") | (col("state") == "ID") | (col("state") == "CA")
    )
    auctions = house.auctions().filter(col("category") == 10)
    return (
        sellers.connect(auctions)
        .key_by(lambda person: person.id, lambda auction: auction.seller)
        .process(LocalItems())
    )


class ClosingPrice(KeyedCoProcessFunction):
    """Emits the highest bid within an auction's time, when that is over. A bid may come before its
    auction."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.auction = runtime_context.get_state(
            ValueStateDescriptor("auction", Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()]))
        )
        self.bids = runtime_context.get_list_state(
            ListStateDescriptor("bids", Types.TUPLE([Types.LONG(), Types.LONG()]))
        )

    def process_element1(self, value: Any, ctx: Any) -> None:
        begin, end = ctx.timestamp(), _milliseconds(value.expires)
        self.auction.update((begin, end, value.category))
        ctx.timer_service().register_event_time_timer(end)

    def process_element2(self, value: Any, ctx: Any) -> None:
        self.bids.add((ctx.timestamp(), value.price))

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[tuple[int, int]]:
        # set together with the timer
        begin, end, category = self.auction.value()  # type: ignore[misc]
        prices = [price for when, price in self.bids.get() if begin <= when <= end]
        self.bids.clear()
        if prices:
            yield category, max(prices)


def q4(house: House) -> DataStream:
    """(category, number of closing prices so far, their sum): the mean is their quotient"""
    closed = (
        house.auctions()
        .connect(house.bids())
        .key_by(lambda auction: auction.id, lambda bid: bid.auction)
        .process(ClosingPrice())
    )
    return (
        closed.map(lambda each: (each[0], 1, each[1]))
        .key_by(lambda each: each[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2]))
    )


class Most(ProcessAllWindowFunction):
    """Emits the largest of one window's counts, with all auctions that have it."""

    def process(self, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        counts = list(elements)
        most = max(each.bids for each in counts)
        for each in counts:
            if each.bids == most:
                yield _milliseconds(each.window_end), each.auction, most


def q5(house: House) -> DataStream:
    """(end of the window, auction, bids)"""
    sliding = (
        house.bids()
        .key_by("auction")
        .window(SlidingEventTimeWindows.of(TEN_SECONDS, Time.seconds(2)))
    )
    counts = sliding.aggregate(col("auction").count.alias("bids"))
    return counts.window_all(TumblingEventTimeWindows.of(Time.seconds(2))).process(Most())


def q7(house: House) -> DataStream:
    """(auction, bidder, price, time) of every bid that was the highest of its ten seconds"""
    bids = house.bids()
    highest = bids.window_all(TumblingEventTimeWindows.of(TEN_SECONDS)).aggregate(
        col("price").max.alias("highest")
    )
    joined = (
        bids.join(highest)
        .where(lambda bid: bid.price)
        .equal_to(lambda window: window.highest)
        .window(TumblingEventTimeWindows.of(TEN_SECONDS))
    )
    return joined.apply(
        lambda bid, window: (bid.auction, bid.bidder, bid.price, _milliseconds(bid.date_time))
    )


def q8(house: House) -> DataStream:
    """(person, name)"""

    def sellers(persons: Iterable[Any], auctions: Iterable[Any]) -> Iterator[tuple[int, str]]:
        if any(True for _ in auctions):
            for person in persons:
                yield person.id, person.name

    pairs = (
        house.persons()
        .co_group(house.auctions())
        .where(lambda person: person.id)
        .equal_to(lambda auction: auction.seller)
    )
    return pairs.window(TumblingEventTimeWindows.of(TEN_SECONDS)).apply(sellers)


class PerWindow(ProcessWindowFunction):
    """The count with its key and its window."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        for count in elements:
            yield key, count, context.window().start, context.window().end


def q11(house: House) -> DataStream:
    """(bidder, bids, begin, end)"""
    ones = house.bids().map(lambda bid: (bid.bidder, 1)).key_by(lambda pair: pair[0])
    sessions = ones.window(EventTimeSessionWindows.with_gap(TEN_SECONDS))
    return sessions.reduce(lambda a, b: (a[0], a[1] + b[1]), PerWindow()).map(
        lambda each: (each[0], each[1][1], each[2], each[3])
    )


def q12(house: House) -> DataStream:
    """(bidder, bids, begin, end); a window still open at the end of the input emits nothing, since
    its time never comes"""
    return bids_in_ten_seconds(house.bids())


def bids_in_ten_seconds(bids: DataStream) -> DataStream:
    ones = bids.map(lambda bid: (bid.bidder, 1)).key_by(lambda pair: pair[0])
    windows = ones.window(TumblingProcessingTimeWindows.of(TEN_SECONDS))
    return windows.reduce(lambda a, b: (a[0], a[1] + b[1]), PerWindow()).map(
        lambda each: (each[0], each[1][1], each[2], each[3])
    )


QUERIES: dict[str, Callable[[House], DataStream]] = {
    "q0": q0,
    "q1": q1,
    "q2": q2,
    "q3": q3,
    "q4": q4,
    "q5": q5,
    "q7": q7,
    "q8": q8,
    "q11": q11,
    "q12": q12,
}


def _milliseconds(moment: Any) -> int:
    """A timestamp without zone as milliseconds since 1970."""
    from datetime import datetime, timedelta

    return int((moment - datetime(1970, 1, 1)) / timedelta(milliseconds=1))


def main() -> None:
    parser = argparse.ArgumentParser(description="Nexmark queries.")
    parser.add_argument("query", choices=list(QUERIES))
    parser.add_argument(
        "--events",
        type=int,
        default=100_000,
        help="of all kinds: 50 are 1 person, 3 auctions, 46 bids (default: 100000)",
    )
    parser.add_argument(
        "--pace",
        type=float,
        default=None,
        metavar="N",
        help="so many of each kind a second (default: all at once)",
    )
    parser.add_argument("-p", "--parallelism", type=int, default=None)
    parser.add_argument(
        "--show", type=int, default=10, metavar="N", help="print the first N results (default: 10)"
    )
    arguments = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    if arguments.parallelism is not None:
        env.set_parallelism(arguments.parallelism)
    house, results = House(env, NexmarkGenerator(events=arguments.events), arguments.pace), 0
    with QUERIES[arguments.query](house).execute_and_collect(
        f"nexmark {arguments.query}"
    ) as collected:
        for result in collected:
            if results < arguments.show:
                print(result)
            results += 1
    print(f"{results} results of {arguments.events} events")


if __name__ == "__main__":
    main()
