"""A thousand patterns that come while the job runs, over bids of 1,000 auctions, one thread, no
network. Events a second of processor time; the bare loop asks for each event the first condition of
each pattern, and finds nothing.

Thresholds: each pattern has amounts and a channel of its own, as expressions; all patterns together
begin half a match per event. Functions: the patterns share twenty functions of the program."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from benchmarks.harness import Comparison, compare, quick
from flinkpy.cep import AfterMatchSkipStrategy, Pattern, PatternUpdate
from flinkpy.common import Duration
from flinkpy.table.expressions import col
from flinkpy.testing import TwoInputHarness

BATCH = 4096
AUCTIONS, CHANNELS = 1_000, 20
TARGET = 200_000  # events a second, with a thousand patterns


class Bid(NamedTuple):
    auction: int
    price: int
    channel: str
    ms: int


@dataclass(frozen=True)
class Rule:
    """A pattern, and its first condition as a plain function."""

    update: PatternUpdate
    begins: Callable[[Bid], bool]


def bids(count: int) -> list[Bid]:
    """Prices up to ten million, a bid each millisecond."""
    chance = random.Random(7)
    return [
        Bid(
            int(AUCTIONS * chance.random() ** 2),
            int(10_000_000 * chance.random()),
            f"channel-{chance.randrange(CHANNELS)}",
            at,
        )
        for at in range(count)
    ]


def twice(name: str, condition: Any) -> PatternUpdate:
    """Two bids on an auction that satisfy a condition, within ten seconds."""
    skip = AfterMatchSkipStrategy.skip_past_last_event()
    first = Pattern.begin("first", skip).where(condition)
    return PatternUpdate(
        name, 1, first.followed_by("second").where(condition).within(Duration.of_seconds(10))
    )


def thresholds(count: int) -> list[Rule]:
    chance = random.Random(count)
    rules = []
    for at in range(count):
        channel, price = f"channel-{at % CHANNELS}", 10_000_000 - chance.randrange(200_000)
        condition = (col("channel") == channel) & (col("price") > price)
        rules.append(Rule(twice(f"rule {at}", condition), _above(channel, price)))
    return rules


def _above(channel: str, price: int) -> Callable[[Bid], bool]:
    return lambda bid: bid.channel == channel and bid.price > price


def functions(count: int) -> list[Rule]:
    shared = [_above(f"channel-{at}", 9_900_000) for at in range(CHANNELS)]
    return [
        Rule(twice(f"rule {at}", shared[at % CHANNELS]), shared[at % CHANNELS])
        for at in range(count)
    ]


def events_a_second(rules: list[Rule], events: list[Bid]) -> float:
    """Of the operator, patterns and all, in processor time."""
    initial = [rule.update for rule in rules]
    with TwoInputHarness.of(
        lambda stream, updates: (
            stream.key_by(lambda bid: bid.auction)
            .match_dynamic(updates, initial)
            .select(lambda pattern, match: pattern)
        )
    ) as harness:
        batches = [events[at : at + BATCH] for at in range(0, len(events), BATCH)]
        begin = time.process_time()
        for batch in batches:
            harness._push(0, batch, [bid.ms for bid in batch])
            harness.push_watermark1(batch[-1].ms)
        seconds = time.process_time() - begin
        assert len(rules) < 100 or len(harness.output) > 0
    return len(events) / seconds


def bare_events_a_second(rules: list[Rule], events: list[Bid]) -> float:
    first = [rule.begins for rule in rules]
    begin = time.process_time()
    for bid in events:
        for begins in first:
            begins(bid)
    return len(events) / (time.process_time() - begin)


def main() -> list[Comparison]:
    count, rounds = (20_000, 1) if quick() else (500_000, 3)
    events = bids(count)
    results = []
    for patterns in (10, 1_000) if quick() else (1, 100, 1_000, 5_000):
        for name, make in (("thresholds", thresholds), ("functions", functions)):
            rules = make(patterns)
            few = events[: 2_000_000 // (10 * patterns) + 100]
            result = compare(
                f"{patterns:,} patterns, {name}",
                partial(events_a_second, rules, events),
                partial(bare_events_a_second, rules, few),
                unit="events/s",
                rounds=rounds,
                note=f"target {TARGET:,} events/s" if patterns == 1_000 else "",
            )
            results.append(result)
    return results


if __name__ == "__main__":
    main()
