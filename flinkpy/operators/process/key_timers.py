"""Timers per key, in event time and in processing time, for keyed process functions.

A queue is a heap of (timestamp, order, key) and a dict of the registered timers. Deleting a timer
removes it from the dict, and its entry in the heap is skipped later. A (key, timestamp) fires once,
however often it was registered. In snapshots, timers are state of their key; the dict is frozen
without a copy."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flinkpy.core.clock import Turns
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkpy.core.errors import ProgramError
from flinkpy.core.users_values import whole_number
from flinkpy.operators.context import ProcessingTimeService
from flinkpy.operators.wake_up import WakeUp
from flinkpy.state.backend import CurrentKey
from flinkpy.state.layers.layers import Layers
from flinkpy.state.layers.overlay import parts_of_entries
from flinkpy.state.snapshots.frozen_tables import parts_of

_AT_ONCE = 1 << 10  # timers between two turns
_SLACK = 64  # how many more deleted timers than registered ones the heap may hold


class TimerQueue:
    """The timers of one time domain."""

    copied_at_once: int = 1 << 15  # timers, up to which a freeze copies all of them

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Any]] = []
        self._registered: dict[tuple[int, Any], None] = {}  # in the order in which they were
        self._layers = Layers("timers", self._registered, self._rebind, None, self.copied_at_once)
        self._order = itertools.count()
        self.fired = 0

    def __len__(self) -> int:
        return len(self._registered)

    def _rebind(self, registered: dict[tuple[int, Any], None]) -> None:
        self._registered = registered

    def freeze(self) -> Callable[[Turns], dict[Any, list[int]]]:
        """What gives the timers of now: the sorted timestamps of each key that has some."""
        frozen = self._layers.freeze()

        def by_key(turns: Turns) -> dict[Any, list[int]]:
            found: dict[Any, list[int]] = {}
            for timers, _ in parts_of_entries(frozen, _AT_ONCE):
                for timestamp, key in timers:
                    found.setdefault(key, []).append(timestamp)
                turns.give_way()
            for keys in parts_of(found, turns):
                for key in keys:
                    found[key].sort()
            return found

        return by_key

    def after_batch(self) -> None:
        """Some of what a freeze has left to do."""
        if not self._layers.is_settled:
            self._layers.after_batch()

    def registered(self) -> set[tuple[int, Any]]:
        """A copy of the set of registered timers, as (timestamp, key)."""
        return set(self._registered)

    def restore(self, timers: Mapping[Any, list[int]]) -> None:
        """Adds the timers that were saved."""
        for key, timestamps in timers.items():
            for timestamp in timestamps:
                self.add(timestamp, key)

    def add(self, timestamp: int, key: object) -> None:
        if (timestamp, key) not in self._registered:
            self._registered[(timestamp, key)] = None
            heapq.heappush(self._heap, (timestamp, next(self._order), key))

    def remove(self, timestamp: int, key: object) -> None:
        self._registered.pop((timestamp, key), None)
        if self._layers.is_settled and len(self._heap) > 2 * len(self._registered) + _SLACK:
            self._heap = [timer for timer in self._heap if (timer[0], timer[2]) in self._registered]
            heapq.heapify(self._heap)

    def next_timestamp(self) -> int | None:
        """The timestamp of the earliest timer; None without timers."""
        while self._heap and (self._heap[0][0], self._heap[0][2]) not in self._registered:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: int) -> Iterator[tuple[int, Any]]:
        """Removes and yields the timers up to ``now``, earliest first, including those that are
        added meanwhile."""
        while True:
            earliest = self.next_timestamp()
            if earliest is None or earliest > now:
                return
            timestamp, _, key = heapq.heappop(self._heap)
            self._registered.pop((timestamp, key), None)
            self.fired += 1
            yield timestamp, key


def _whole(timestamp: object) -> int:
    """The user's timestamp as an int. Raises TypeError if it is not an integer, and ValueError if
    time ends before it, so that the timer would never fire."""
    whole = timestamp if type(timestamp) is int else whole_number(timestamp)
    if whole is None:
        raise TypeError(
            f"a timer's time is a whole number of milliseconds, this is {timestamp!r:.80}"
        )
    if whole > MAX_TIMESTAMP:
        raise ValueError(
            f"a timer for {whole} would never fire: time is in milliseconds and ends at "
            f"{MAX_TIMESTAMP}"
        )
    return whole


class KeyedTimerService:
    """What ``ctx.timer_service()`` returns in keyed functions: the time, and timers for the current
    key. ``on_processing_time`` gets an iterator over the due timers, and calls ``fired`` when it
    has consumed it."""

    def __init__(
        self,
        processing_time: ProcessingTimeService,
        current: CurrentKey,
        on_processing_time: Callable[[Iterator[tuple[int, Any]]], None],
        event_timers: TimerQueue,
        processing_timers: TimerQueue,
    ) -> None:
        self._time = processing_time
        self._current = current
        self._on_processing_time = on_processing_time
        self.event_timers, self.processing_timers = event_timers, processing_timers
        self.watermark = MIN_TIMESTAMP
        self._wake_up = WakeUp(processing_time, self._due)
        self._firing = False

    def current_processing_time(self) -> int:
        return self._time.now_ms()

    def current_watermark(self) -> int:
        return self.watermark

    def register_event_time_timer(self, timestamp: int) -> None:
        """Fires when the watermark reaches the timestamp; if it has already, at the next
        watermark."""
        self.event_timers.add(_whole(timestamp), self._current.key)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self.event_timers.remove(_whole(timestamp), self._current.key)

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Fires when the millisecond ``timestamp`` is over, so that no record can still be
        processed in it (as in Flink); at once if it is over already."""
        self.processing_timers.add(_whole(timestamp), self._current.key)
        self.arm()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self.processing_timers.remove(_whole(timestamp), self._current.key)

    def arm(self) -> None:
        """Sets the task's one timer for the earliest timer of all keys."""
        if not self._firing:
            self._wake_up.at(self.processing_timers.next_timestamp())

    def fired(self) -> None:
        """All due timers have been consumed."""
        self._firing = False
        self.arm()

    def _due(self, moment: int) -> None:
        self._firing = True
        self._on_processing_time(self.processing_timers.due(moment))

    def after_batch(self) -> None:
        """Some of what a freeze has left to do."""
        self.event_timers.after_batch()
        self.processing_timers.after_batch()

    @property
    def fired_timers(self) -> int:
        """How many have fired so far."""
        return self.event_timers.fired + self.processing_timers.fired

    def disarm(self) -> None:
        """Stops the task's timer."""
        self._wake_up.cancel()


class UnkeyedTimerService:
    """The time for functions without a key; timers are refused."""

    def __init__(self, processing_time: ProcessingTimeService) -> None:
        self._time = processing_time
        self.watermark = MIN_TIMESTAMP

    def current_processing_time(self) -> int:
        return self._time.now_ms()

    def current_watermark(self) -> int:
        return self.watermark

    def _refuse(self, timestamp: int) -> None:
        raise ProgramError("timers belong to a key: call key_by(...) before process(...)")

    register_event_time_timer = delete_event_time_timer = _refuse
    register_processing_time_timer = delete_processing_time_timer = _refuse
