"""Events that wait for the watermark: one buffer for all keys of a subtask, sorted once for each
watermark. Events of equal time stay in the order they came, or get that of a comparator."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from functools import cmp_to_key
from typing import Any, TypeAlias

Compare: TypeAlias = Callable[[Any, Any], int]


class PendingEvents:
    """Events with their times.

    >>> pending = PendingEvents()
    >>> pending.add([5, 3], ["a", "b"])
    >>> pending.until(4), len(pending)
    (([3], ['b']), 1)
    """

    def __init__(self, compare: Compare | None = None) -> None:
        self._compare = compare
        self._times: list[int] = []
        self._events: list[Any] = []

    def __len__(self) -> int:
        return len(self._times)

    def add(self, times: Iterable[int], events: Iterable[Any]) -> None:
        """Takes events that have just come."""
        self._times += times
        self._events += events

    def until(self, watermark: int) -> tuple[list[int], list[Any]]:
        """Gives away the events up to this time, in their order."""
        self._sort()
        times, events = self._times, self._events
        end = bisect_right(times, watermark)
        self._times, self._events = times[end:], events[end:]
        return times[:end], events[:end]

    def _sort(self) -> None:
        times, events = self._times, self._events
        if self._compare is not None:
            in_order = cmp_to_key(self._compare)
            order = sorted(range(len(times)), key=lambda at: (times[at], in_order(events[at])))
        else:
            order = sorted(range(len(times)), key=times.__getitem__)
        self._times = [times[at] for at in order]
        self._events = [events[at] for at in order]

    def by_key(self, keys_of: Callable[[list[Any]], list[Any]]) -> dict[Any, list[tuple[int, Any]]]:
        """What waits, for a snapshot."""
        found: dict[Any, list[tuple[int, Any]]] = {}
        for key, time, event in zip(keys_of(self._events), self._times, self._events):
            found.setdefault(key, []).append((time, event))
        return found

    def restore(self, saved: Mapping[Any, list[tuple[int, Any]]]) -> None:
        """Takes what waited when it was saved."""
        for pairs in saved.values():
            self.add([time for time, _ in pairs], [event for _, event in pairs])
