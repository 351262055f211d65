"""The example's queries give what a plain computation over the generator's events gives."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from examples.nexmark.queries import QUERIES, House, bids_in_ten_seconds
from flinkpy.common import Row
from flinkpy.connectors.memory.nexmark import NexmarkGenerator
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.testing import OneInputHarness
from tests.nexmark_in_python import NAIVE, closing_prices, events_of

GENERATOR = NexmarkGenerator(events=30_000, rate=1000)  # thirty seconds
BEGIN = GENERATOR.first_timestamp
EVENTS = events_of(GENERATOR)


def run(query: str, parallelism: int) -> list[Any]:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    with QUERIES[query](House(env, GENERATOR)).execute_and_collect(query) as results:
        return list(results)


@pytest.mark.wide(but=("q5-1", "q8-1"))
@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("query", [each for each in NAIVE if each in QUERIES and each != "q4"])
def test_a_query_gives_what_a_plain_computation_gives(query: str, parallelism: int) -> None:
    expected = sorted(NAIVE[query](EVENTS))
    width = len(expected[0])
    assert sorted(tuple(each)[:width] for each in run(query, parallelism)) == expected


@pytest.mark.wide
@pytest.mark.parametrize("parallelism", [1, 2])
def test_the_mean_closing_prices_end_where_all_auctions_are_counted(parallelism: int) -> None:
    expected: dict[int, tuple[int, int]] = {}
    for category, price in closing_prices(EVENTS):
        count, total = expected.get(category, (0, 0))
        expected[category] = count + 1, total + price
    results = run("q4", parallelism)
    assert {category: (count, total) for category, count, total in results} == expected
    assert len(results) == sum(count for count, _ in expected.values())


def test_bids_of_ten_seconds_of_the_clock_are_counted_per_bidder() -> None:
    expected: Counter[tuple[int, int]] = Counter()
    with OneInputHarness.of(bids_in_ten_seconds) as harness:
        for bid in EVENTS("bid"):
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
