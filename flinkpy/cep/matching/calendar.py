"""When which keys have partial matches that time out.

Keys stand in buckets of time. Where something is given when a partial match times out, a bucket is
a millisecond; else a 64th of the time a match may take, because then it only matters that keys that
never come again leave nothing."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

PARTS = 64


class Calendar:
    """The keys to look at, by time.

    >>> calendar = Calendar(10)
    >>> calendar.add(101, "a"); calendar.add(105, "a"); calendar.add(99, "b")
    >>> list(calendar.until(109)), list(calendar.until(110))
    (['b'], ['a'])
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._buckets: dict[int, dict[Any, None]] = {}
        self._ends: list[int] = []  # of the buckets, a heap

    def __len__(self) -> int:
        return sum(map(len, self._buckets.values()))

    def add(self, time: int, key: object) -> None:
        """Has the key be looked at when this time has come."""
        bucket = self._buckets.get(-(-time // self._width) * self._width)
        if bucket is None:
            bucket, _ = self.bucket(time)
        bucket[key] = None

    def bucket(self, time: int) -> tuple[dict[Any, None], int]:
        """The keys to be looked at when this time has come, and until which time they are the
        same. Whoever adds many keys in the order of time puts them here."""
        end = -(-time // self._width) * self._width
        bucket = self._buckets.get(end)
        if bucket is None:
            bucket = self._buckets[end] = {}
            heapq.heappush(self._ends, end)
        return bucket, end

    def next_time(self) -> int | None:
        """When the next keys have to be looked at."""
        return self._ends[0] if self._ends else None

    def until(self, now: int) -> Iterator[Any]:
        """The keys whose time has come, the earliest first; they are no longer here."""
        while self._ends and self._ends[0] <= now:
            yield from self._buckets.pop(heapq.heappop(self._ends))
