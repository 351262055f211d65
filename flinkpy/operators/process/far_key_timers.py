"""Timers per key of which memory has those that are due first."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from flinkpy.core.clock import Turns
from flinkpy.operators.process.key_timers import TimerQueue
from flinkpy.state.backend import KeyedStateBackend
from flinkpy.state.far_timers import FarTimer, FarTimers

_SAMPLE = 1 << 10  # timers that say where to cut


class FarTimerQueue(TimerQueue):
    """Timers from the horizon on are those of ``far``."""

    def __init__(self, far: FarTimers) -> None:
        super().__init__()
        self._far = far
        self._added = 0

    def add(self, timestamp: int, key: object) -> None:
        far = self._far
        if timestamp >= far.horizon:
            far.add((timestamp, key, None))
            return
        if timestamp == far.draining:
            far.remove((timestamp, key, None))
        super().add(timestamp, key)
        self._added += 1

    def remove(self, timestamp: int, key: object) -> None:
        far = self._far
        if timestamp >= far.horizon or timestamp == far.draining:
            far.remove((timestamp, key, None))
        super().remove(timestamp, key)

    def next_timestamp(self) -> int | None:
        moments = (super().next_timestamp(), self._far.next_moment)
        return min((moment for moment in moments if moment is not None), default=None)

    def due(self, now: int) -> Iterator[tuple[int, Any]]:
        while True:
            here = super().next_timestamp()
            if here is not None and here <= now and here < self._far.horizon:
                timestamp, _, key = heapq.heappop(self._heap)
                self._registered.pop((timestamp, key), None)
                self.fired += 1
                yield timestamp, key
                continue
            first = self._far.next_moment
            if first is None or first > now:
                return
            for timestamp, key, _ in self._far.nearest():
                super().add(timestamp, key)

    def after_batch(self) -> None:
        super().after_batch()
        added, self._added = self._added, 0
        if self._far.is_due(added):
            self._relieve()
        self._far.after_batch()

    def _relieve(self) -> None:
        """Has the latest timers leave memory, if there are too many."""
        registered = self._registered
        key = next(iter(registered), (0, None))[1]
        count = len(registered)
        stay = self._far.limit(count, key)
        if stay is None:
            return
        sample = sorted(timer[0] for timer in self._heap[:: 1 + len(self._heap) // _SAMPLE])
        horizon = sample[len(sample) * stay // count]
        leaving = [timer for timer in registered if timer[0] >= horizon]
        for timer in leaving:
            del registered[timer]
        self._heap = [each for each in self._heap if each[0] < horizon]
        heapq.heapify(self._heap)
        self._far.take(horizon, [(timestamp, key, None) for timestamp, key in leaving])

    def freeze(self) -> Callable[[Turns], dict[Any, list[int]]]:
        return partial(_with_far, super().freeze(), self._far.unwritten())


def _with_far(
    held: Callable[[Turns], dict[Any, list[int]]], unwritten: list[FarTimer], turns: Turns
) -> dict[Any, list[int]]:
    found = held(turns)
    for timestamp, key, _ in unwritten:
        found[key] = sorted({timestamp, *found.get(key, ())})
    return found


def timer_queue(backend: KeyedStateBackend, name: str) -> TimerQueue:
    """The timers that are saved under this name."""
    on_disk = f"{name} on disk"
    entries = backend.timed_entries(on_disk)
    queue = TimerQueue() if entries is None else FarTimerQueue(FarTimers(entries))
    queue.restore(backend.register_region(name, queue.freeze))
    if entries is None:
        for key, at in backend.take_timed(on_disk).items():
            for timestamp, _ in at:
                queue.add(timestamp, key)
    return queue
