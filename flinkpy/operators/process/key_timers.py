"""Timers per key, on event time and on processing time, for keyed process functions.

A heap of (timestamp, order, key) and the set of those that are registered: deleting takes it out of the set, and the heap's entry is skipped
when it comes up. One (key, timestamp) fires once, however often it was registered. In snapshots timers are state of their key.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping
from operator import index
from typing import Any

from flinkpy.core.elements import MIN_TIMESTAMP
from flinkpy.core.errors import ProgramError
from flinkpy.operators.context import ProcessingTimeService
from flinkpy.operators.wake_up import WakeUp
from flinkpy.state.backend import CurrentKey

_SLACK = 64  # deleted timers the heap may hold beyond as many as there are live ones


class TimerQueue:
    """The timers of one time domain."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Any]] = []
        self._registered: set[tuple[int, Any]] = set()
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._registered)

    def by_key(self) -> dict[Any, list[int]]:
        """The timestamps of each key that has timers, sorted."""
        found: dict[Any, list[int]] = {}
        for timestamp, key in sorted(self._registered, key=lambda timer: timer[0]):
            found.setdefault(key, []).append(timestamp)
        return found

    def registered(self) -> set[tuple[int, Any]]:
        """(timestamp, key) of each timer; a copy."""
        return set(self._registered)

    def restore(self, timers: Mapping[Any, list[int]]) -> None:
        """Adds what ``by_key`` gave."""
        for key, timestamps in timers.items():
            for timestamp in timestamps:
                self.add(timestamp, key)

    def add(self, timestamp: int, key: Any) -> None:
        if (timestamp, key) not in self._registered:
            self._registered.add((timestamp, key))
            heapq.heappush(self._heap, (timestamp, next(self._order), key))

    def remove(self, timestamp: int, key: Any) -> None:
        self._registered.discard((timestamp, key))
        if len(self._heap) > 2 * len(self._registered) + _SLACK:
            self._heap = [timer for timer in self._heap if (timer[0], timer[2]) in self._registered]
            heapq.heapify(self._heap)

    def next_timestamp(self) -> int | None:
        """When the earliest timer is due."""
        while self._heap and (self._heap[0][0], self._heap[0][2]) not in self._registered:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: int) -> Iterator[tuple[int, Any]]:
        """Takes out the timers up to ``now``, earliest first; those added meanwhile count too."""
        while True:
            earliest = self.next_timestamp()
            if earliest is None or earliest > now:
                return
            timestamp, _, key = heapq.heappop(self._heap)
            self._registered.discard((timestamp, key))
            yield timestamp, key


def _whole(timestamp: Any) -> int:
    """The user's timestamp; a TypeError, told with the user's line, for what is no whole number."""
    try:
        return index(timestamp)
    except TypeError:
        raise TypeError(f"a timer's time is a whole number of milliseconds, this is {timestamp!r:.80}") from None


class KeyedTimerService:
    """What ``ctx.timer_service()`` gives: time, and timers for the current key. ``on_processing_time`` gets the due ones, one by one
    as it asks, and says when they have ``fired``."""

    def __init__(
        self, processing_time: ProcessingTimeService, current: CurrentKey, on_processing_time: Callable[[Iterator[tuple[int, Any]]], None],
    ) -> None:
        self._time, self._current, self._on_processing_time = processing_time, current, on_processing_time
        self.event_timers, self.processing_timers = TimerQueue(), TimerQueue()
        self.watermark = MIN_TIMESTAMP
        self._wake_up = WakeUp(processing_time, self._due)
        self._firing = False

    def current_processing_time(self) -> int:
        return self._time.now_ms()

    def current_watermark(self) -> int:
        return self.watermark

    def register_event_time_timer(self, timestamp: int) -> None:
        """Fires when the watermark reaches the timestamp; at the next one, if it is there already."""
        self.event_timers.add(_whole(timestamp), self._current.key)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self.event_timers.remove(_whole(timestamp), self._current.key)

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Fires when the millisecond ``timestamp`` is over (as in Flink: then no record can come that was processed in it); at once, if it is."""
        self.processing_timers.add(_whole(timestamp), self._current.key)
        self.arm()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self.processing_timers.remove(_whole(timestamp), self._current.key)

    def arm(self) -> None:
        """Keeps one timer of the task running, for the earliest of all keys."""
        if not self._firing:
            self._wake_up.at(self.processing_timers.next_timestamp())

    def fired(self) -> None:
        """Those that were due have been asked for."""
        self._firing = False
        self.arm()

    def _due(self, moment: int) -> None:
        self._firing = True
        self._on_processing_time(self.processing_timers.due(moment))

    def disarm(self) -> None:
        """Stops the task's timer."""
        self._wake_up.cancel()


class UnkeyedTimerService:
    """Time for functions without a key: what is asked for timers is refused."""

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
