"""The inputs: auction bids and lines of ten words, made from a seed."""

from __future__ import annotations

import itertools
import random
import sys
import types
from collections.abc import Callable
from typing import Any

Bid = tuple[int, int, int, str, str, int]
BASE_MS = 1_700_000_000_000


def bids(count: int, seed: int = 7) -> list[Bid]:
    """(auction, bidder, price, channel, url, time in ms), 10,000 per second of event time."""
    rng = random.Random(seed)
    channels = ["Google", "Facebook", "Baidu", "Apple"]
    return [
        (
            rng.randrange(10_000),
            rng.randrange(100_000),
            rng.randrange(100, 10_000_000),
            channels[i & 3],
            f"https://example.org/item/{i % 997}",
            BASE_MS + i // 10,
        )
        for i in range(count)
    ]


def lines(count: int, seed: int = 7) -> list[str]:
    """Lines of ten words out of 10,000; the k-th most frequent word occurs 1/k times as often as
    the first (Zipf's law, as in a text)."""
    letters = random.Random(0)
    words = [
        "".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=letters.randint(3, 9)))
        for _ in range(10_000)
    ]
    weights = list(itertools.accumulate(1 / rank for rank in range(1, len(words) + 1)))
    chosen = random.Random(seed).choices(words, cum_weights=weights, k=10 * count)
    return [" ".join(chosen[at : at + 10]) for at in range(0, 10 * count, 10)]


def bid_columns(count: int, seed: int = 7) -> Any:
    """The bids as an Arrow table."""
    import pyarrow as pa

    columns = list(zip(*bids(count, seed)))
    return pa.table(
        dict(zip(("auction", "bidder", "price", "channel", "url", "date_time"), map(list, columns)))
    )


def once(name: str, make: Callable[[], list[Any]]) -> list[Any]:
    """Returns what ``make`` returned at the first call in this process, so that the engine and the
    bare loop read the same memory.

    The objects are kept in a module that exists in this process only, since modules beside the
    program travel with the job as copies."""
    kept = vars(sys.modules.setdefault("_benchmark_data", types.ModuleType("_benchmark_data")))
    if name not in kept:
        kept[name] = make()
    found: list[Any] = kept[name]
    return found
