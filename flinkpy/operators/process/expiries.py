"""When the first record of each key, and side, of an interval join is to be dropped.

It says nothing that is not in the records too. So in memory it is neither saved nor restored, but
made of the records again. Where records lie on disk that would mean to read all of them: there it
is saved, and what is due last lies on disk too (``far_timers``). An entry too many does no harm."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from flinkpy.core.clock import Turns
from flinkpy.state.backend import KeyedStateBackend
from flinkpy.state.far_timers import FarTimer, FarTimers, cut
from flinkpy.state.snapshots.frozen_tables import parts_of


class Expiries:
    """An index of the keys that have records to drop, by time."""

    def __init__(self) -> None:
        self._times: list[int] = []  # a heap
        self._keys: dict[int, list[Any]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._keys.values()))

    @property
    def is_empty(self) -> bool:
        return not self._times

    def add(self, time: int, key: object) -> None:
        keys = self._keys.get(time)
        if keys is None:
            self._keys[time] = [key]
            heapq.heappush(self._times, time)
        else:
            keys.append(key)

    def until(self, now: int) -> Iterable[Any]:
        """Removes and gives the keys whose time has come by ``now``, some of them more than once.
        What is added meanwhile is later than that."""
        found: set[Any] = set()
        while self._times and self._times[0] <= now:
            found.update(self._keys.pop(heapq.heappop(self._times)))
        return found

    def clear(self) -> None:
        """There are no records any more."""
        self._times.clear()
        self._keys.clear()

    def after_batch(self) -> None:
        """Some of what is to be written."""


class FarExpiries(Expiries):
    """The same; from the horizon on they are those of ``far``."""

    def __init__(self, far: FarTimers) -> None:
        super().__init__()
        self._far = far
        self._added = 0

    @property
    def is_empty(self) -> bool:
        return super().is_empty and self._far.next_moment is None

    def add(self, time: int, key: object) -> None:
        if time >= self._far.horizon:
            self._far.add((time, key, None))
        else:
            super().add(time, key)
            self._added += 1

    def until(self, now: int) -> Iterable[Any]:
        far = self._far
        while True:
            yield from super().until(min(now, far.horizon - 1))
            first = far.next_moment
            if first is None or first > now:
                return
            for time, key, _ in far.nearest():
                super().add(time, key)

    def after_batch(self) -> None:
        added, self._added = self._added, 0
        if self._far.is_due(added):
            self._relieve()
        self._far.after_batch()

    def _relieve(self) -> None:
        """Has the latest ones leave memory, if there are too many."""
        first = next(iter(self._keys.values()), None)
        stay = self._far.limit(len(self), None if first is None else first[0])
        leaving = [] if stay is None else cut(self._keys, stay)
        if leaving:
            timers = [(time, key, None) for time in leaving for key in self._keys.pop(time)]
            self._far.take(leaving[0], timers)
            self._times[:] = self._keys
            heapq.heapify(self._times)

    def freeze(self) -> Callable[[Turns], dict[Any, list[int]]]:
        """What gives the times of each key that has some. Lists of keys grow, or are gone: with
        those that come until they are written there are entries too many."""
        return partial(_by_key, self._keys.copy(), self._far.unwritten())


def _by_key(
    held: dict[int, list[Any]], unwritten: list[FarTimer], turns: Turns
) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
    for times in parts_of(held, turns):
        for time in times:
            for key in held[time]:
                found.setdefault(key, []).append(time)
    for time, key, _ in unwritten:
        found.setdefault(key, []).append(time)
    return found


def expiries(backend: KeyedStateBackend, name: str) -> Expiries:
    """The index that is saved under this name; an empty one of a backend that has only memory."""
    on_disk = f"{name} on disk"
    entries = backend.timed_entries(on_disk)
    if entries is None:
        # what another backend saved would be wrong by the next snapshot
        backend.take_timed(on_disk)
        backend.register_region(name, dict)
        return Expiries()
    index = FarExpiries(FarTimers(entries))
    for key, times in backend.register_region(name, index.freeze).items():
        for time in times:
            index.add(time, key)
    return index
