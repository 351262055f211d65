"""Each Nexmark query against a plain computation over the same events."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from examples.nexmark.queries import EURO, QUERIES, House, bids_in_ten_seconds
from flinkpy.common import Row
from flinkpy.connectors.memory.nexmark import NexmarkGenerator
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.testing import OneInputHarness

GENERATOR = NexmarkGenerator(events=30_000, rate=1000)  # thirty seconds
BEGIN = GENERATOR.first_timestamp


def events(kind: str) -> list[dict[str, Any]]:
    """All events of a kind, times in milliseconds."""
    make = {"person": GENERATOR.persons, "auction": GENERATOR.auctions, "bid": GENERATOR.bids}[kind]
    columns = make(range(GENERATOR.count(kind) or 0))
    plain = {
        name: column.cast("int64").to_pylist()
        if name in ("date_time", "expires")
        else _listed(column)
        for name, column in columns.items()
    }
    return [dict(zip(plain, values)) for values in zip(*plain.values())]


def _listed(column: Any) -> list[Any]:
    return (
        list(column)
        if isinstance(column, list)
        else column.tolist()
        if hasattr(column, "tolist")
        else column.to_pylist()
    )


def q0() -> Iterator[Any]:
    for bid in events("bid"):
        yield bid["auction"], bid["bidder"], bid["price"], bid["channel"]


def q1() -> Iterator[Any]:
    for bid in events("bid"):
        yield bid["auction"], bid["bidder"], bid["price"] * EURO


def q2() -> Iterator[Any]:
    for bid in events("bid"):
        if bid["auction"] % 123 == 0:
            yield bid["auction"], bid["price"]


def q3() -> Iterator[Any]:
    sellers = {
        person["id"]: person for person in events("person") if person["state"] in ("OR", "ID", "CA")
    }
    for auction in events("auction"):
        if auction["category"] == 10 and auction["seller"] in sellers:
            seller = sellers[auction["seller"]]
            yield seller["name"], seller["city"], seller["state"], auction["id"]


def closing_prices() -> Iterator[tuple[int, int]]:
    bids = defaultdict(list)
    for bid in events("bid"):
        bids[bid["auction"]].append(bid)
    for auction in events("auction"):
        prices = [
            bid["price"]
            for bid in bids[auction["id"]]
            if auction["date_time"] <= bid["date_time"] <= auction["expires"]
        ]
        if prices:
            yield auction["category"], max(prices)


def q5() -> Iterator[Any]:
    windows: dict[int, Counter[int]] = defaultdict(Counter)
    for bid in events("bid"):
        last = bid["date_time"] // 2000 * 2000
        for start in range(last - 8000, last + 1, 2000):
            windows[start + 10_000][bid["auction"]] += 1
    for end, counts in windows.items():
        most = max(counts.values())
        yield from ((end, auction, count) for auction, count in counts.items() if count == most)


def q7() -> Iterator[Any]:
    windows = defaultdict(list)
    for bid in events("bid"):
        windows[bid["date_time"] // 10_000].append(bid)
    for bids in windows.values():
        highest = max(bid["price"] for bid in bids)
        yield from (
            (bid["auction"], bid["bidder"], bid["price"], bid["date_time"])
            for bid in bids
            if bid["price"] == highest
        )


def q8() -> Iterator[Any]:
    sold = {(auction["seller"], auction["date_time"] // 10_000) for auction in events("auction")}
    for person in events("person"):
        if (person["id"], person["date_time"] // 10_000) in sold:
            yield person["id"], person["name"]


def q11() -> Iterator[Any]:
    times = defaultdict(list)
    for bid in events("bid"):
        times[bid["bidder"]].append(bid["date_time"])
    for bidder, moments in times.items():
        begin, last, count = moments[0], moments[0], 0
        for moment in moments:
            if moment - last > 10_000:  # sessions that touch are one
                yield bidder, count, begin, last + 10_000
                begin, count = moment, 0
            last, count = moment, count + 1
        yield bidder, count, begin, last + 10_000


NAIVE = {"q0": q0, "q1": q1, "q2": q2, "q3": q3, "q5": q5, "q7": q7, "q8": q8, "q11": q11}


def run(query: str, parallelism: int) -> list[Any]:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    with QUERIES[query](House(env, GENERATOR)).execute_and_collect(query) as results:
        return list(results)


@pytest.mark.wide(but=("q5-1", "q8-1"))
@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("query", list(NAIVE))
def test_a_query_gives_what_a_plain_computation_gives(query: str, parallelism: int) -> None:
    expected = sorted(NAIVE[query]())
    width = len(expected[0])
    assert sorted(tuple(each)[:width] for each in run(query, parallelism)) == expected


@pytest.mark.wide
@pytest.mark.parametrize("parallelism", [1, 2])
def test_the_mean_closing_prices_end_where_all_auctions_are_counted(parallelism: int) -> None:
    expected: dict[int, tuple[int, int]] = {}
    for category, price in closing_prices():
        count, total = expected.get(category, (0, 0))
        expected[category] = count + 1, total + price
    results = run("q4", parallelism)
    assert {category: (count, total) for category, count, total in results} == expected
    assert len(results) == sum(count for count, _ in expected.values())


def test_bids_of_ten_seconds_of_the_clock_are_counted_per_bidder() -> None:
    expected: Counter[tuple[int, int]] = Counter()
    with OneInputHarness.of(bids_in_ten_seconds) as harness:
        for bid in events("bid"):
            harness.set_processing_time(bid["date_time"])  # the clock goes as the events do
            harness.push(Row(auction=bid["auction"], bidder=bid["bidder"]))
            expected[bid["bidder"], bid["date_time"] // 10_000 * 10_000] += 1
        harness.set_processing_time(BEGIN + 40_000)
        results = harness.output
    assert sorted(results) == sorted(
        (bidder, count, begin, begin + 10_000) for (bidder, begin), count in expected.items()
    )


def test_a_row_says_its_fields() -> None:
    assert isinstance(run("q2", 1)[0], Row)
