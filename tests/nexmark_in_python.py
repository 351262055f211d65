"""The queries of Nexmark as plain loops over its events, for programs of streams and of tables."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any, TypeAlias

from examples.nexmark.queries import EURO
from flinkpy.connectors.memory.nexmark import NexmarkGenerator

Events: TypeAlias = "Callable[[str], list[dict[str, Any]]]"


def events_of(generator: NexmarkGenerator) -> Events:
    """All events of each kind, times in milliseconds."""
    return functools.cache(lambda kind: _events(generator, kind))


def _events(generator: NexmarkGenerator, kind: str) -> list[dict[str, Any]]:
    make = {"person": generator.persons, "auction": generator.auctions, "bid": generator.bids}[kind]
    columns = make(range(generator.count(kind) or 0))
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


def q0(events: Events) -> Iterator[Any]:
    for bid in events("bid"):
        yield bid["auction"], bid["bidder"], bid["price"], bid["channel"]


def q1(events: Events) -> Iterator[Any]:
    for bid in events("bid"):
        yield bid["auction"], bid["bidder"], bid["price"] * EURO


def q2(events: Events) -> Iterator[Any]:
    for bid in events("bid"):
        if bid["auction"] % 123 == 0:
            yield bid["auction"], bid["price"]


def q3(events: Events) -> Iterator[Any]:
    sellers = {
        person["id"]: person for person in events("person") if person["state"] in ("OR", "ID", "CA")
    }
    for auction in events("auction"):
        if auction["category"] == 10 and auction["seller"] in sellers:
            seller = sellers[auction["seller"]]
            yield seller["name"], seller["city"], seller["state"], auction["id"]


def closing_prices(events: Events) -> Iterator[tuple[int, int]]:
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


def q4(events: Events) -> Iterator[Any]:
    prices = defaultdict(list)
    for category, price in closing_prices(events):
        prices[category].append(price)
    for category, each in prices.items():
        yield category, sum(each) // len(each)


def q5(events: Events) -> Iterator[Any]:
    windows: dict[int, Counter[int]] = defaultdict(Counter)
    for bid in events("bid"):
        last = bid["date_time"] // 2000 * 2000
        for start in range(last - 8000, last + 1, 2000):
            windows[start + 10_000][bid["auction"]] += 1
    for end, counts in windows.items():
        most = max(counts.values())
        yield from ((end, auction, count) for auction, count in counts.items() if count == most)


def q7(events: Events) -> Iterator[Any]:
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


def q8(events: Events) -> Iterator[Any]:
    sold = {(auction["seller"], auction["date_time"] // 10_000) for auction in events("auction")}
    for person in events("person"):
        if (person["id"], person["date_time"] // 10_000) in sold:
            yield person["id"], person["name"]


def q9(events: Events) -> Iterator[Any]:
    bids = defaultdict(list)
    for bid in events("bid"):
        bids[bid["auction"]].append(bid)
    for auction in events("auction"):
        in_time = [
            bid
            for bid in bids[auction["id"]]
            if auction["date_time"] <= bid["date_time"] <= auction["expires"]
        ]
        if in_time:
            best = min(in_time, key=lambda bid: (-bid["price"], bid["date_time"]))
            yield (
                *(auction["id"], auction["seller"], auction["category"]),
                *(best["bidder"], best["price"], best["date_time"]),
            )


def q11(events: Events) -> Iterator[Any]:
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


def q13(events: Events) -> Iterator[Any]:
    for bid in events("bid"):
        key = bid["auction"] % 10_000
        yield bid["auction"], bid["bidder"], bid["price"], bid["date_time"], str(key)


def q14(events: Events) -> Iterator[Any]:
    for bid in events("bid"):
        if 1_000_000 < bid["price"] * EURO < 50_000_000:
            hour = bid["date_time"] // 3_600_000 % 24
            part = "dayTime" if 8 <= hour <= 18 else "nightTime"
            if hour in (7, 19):
                part = "otherTime"
            yield bid["auction"], bid["bidder"], bid["price"] * EURO, part, 0


RANKS = (range(10_000), range(10_000, 1_000_000), range(1_000_000, 2**63))


def statistics(bids: list[dict[str, Any]]) -> tuple[int, ...]:
    """How many there are, how many bidders and auctions; each of all prices and of three ranks."""
    ranks = [bids, *([bid for bid in bids if bid["price"] in rank] for rank in RANKS)]
    return (
        *(len(rank) for rank in ranks),
        *(len({bid["bidder"] for bid in rank}) for rank in ranks),
        *(len({bid["auction"] for bid in rank}) for rank in ranks),
    )


def text_of(date_time: int, form: str) -> str:
    return datetime.fromtimestamp(date_time / 1000, timezone.utc).strftime(form)


def bids_by(events: Events, *names: str) -> dict[Any, list[dict[str, Any]]]:
    """The bids of each day that have the same values in these columns."""
    found = defaultdict(list)
    for bid in events("bid"):
        key = *(bid[name] for name in names), text_of(bid["date_time"], "%Y-%m-%d")
        found[key].append(bid)
    return found


def q15(events: Events) -> Iterator[Any]:
    for key, bids in bids_by(events).items():
        yield *key, *statistics(bids)


def q16(events: Events) -> Iterator[Any]:
    for key, bids in bids_by(events, "channel").items():
        yield *key, text_of(bids[-1]["date_time"], "%H:%M"), *statistics(bids)


def q17(events: Events) -> Iterator[Any]:
    for key, bids in bids_by(events, "auction").items():
        prices = [bid["price"] for bid in bids]
        total = sum(prices)
        extremes = min(prices), max(prices)
        yield *key, *statistics(bids)[:4], *extremes, total // len(bids), total


def q18(events: Events) -> Iterator[Any]:
    last = {(bid["bidder"], bid["auction"]): bid for bid in events("bid")}
    for bid in last.values():
        yield bid["auction"], bid["bidder"], bid["price"], bid["channel"], bid["date_time"]


def q19(events: Events) -> Iterator[Any]:
    prices = defaultdict(list)
    for bid in events("bid"):
        prices[bid["auction"]].append(bid["price"])
    for auction, each in prices.items():
        for rank, price in enumerate(sorted(each, reverse=True)[:10], 1):
            yield auction, price, rank


def q20(events: Events) -> Iterator[Any]:
    auctions = {auction["id"]: auction for auction in events("auction")}
    for bid in events("bid"):
        auction = auctions.get(bid["auction"])
        if auction is not None and auction["category"] == 10:
            yield (
                bid["auction"],
                bid["bidder"],
                bid["price"],
                auction["item_name"],
                auction["seller"],
            )


def q21(events: Events) -> Iterator[Any]:
    numbers = {"Apple": "0", "Google": "1", "Facebook": "2", "Baidu": "3"}
    for bid in events("bid"):
        yield bid["auction"], bid["bidder"], bid["price"], bid["channel"], numbers[bid["channel"]]


def q22(events: Events) -> Iterator[Any]:
    for bid in events("bid"):
        folder = f"item.htm?query=1&channel_id={bid['bidder']}"
        yield bid["auction"], bid["bidder"], bid["price"], "item", str(bid["auction"]), folder


NAIVE = {
    each.__name__: each
    for each in (
        *(q0, q1, q2, q3, q4, q5, q7, q8, q9, q11),
        *(q13, q14, q15, q16, q17, q18, q19, q20, q21, q22),
    )
}
