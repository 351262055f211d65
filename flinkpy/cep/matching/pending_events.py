"""Events that wait for the watermark: one buffer for all keys of a subtask, sorted once for each
watermark. Events of equal time stay in the order they came, or get that of a comparator."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cmp_to_key
from itertools import islice
from operator import itemgetter, le
from typing import Any, TypeAlias

from flinkpy.cep.matching.row_candidates import Due
from flinkpy.core.elements import RowBatch

Compare: TypeAlias = Callable[[Any, Any], int]

_MANY = 1 << 10  # from here on arrays pay, and importing numpy does


class PendingEvents:
    """Events with their times.

    >>> pending = PendingEvents()
    >>> pending.add([5, 3], ["a", "b"])
    >>> pending.until(4), len(pending)
    (([3], ['b']), 1)
    """

    def __init__(self, compare: Compare | None = None, due: Due | None = None) -> None:
        self._compare, self._due = compare, due
        self._times: list[int] = []
        self._events: list[Any] = []

    def __len__(self) -> int:
        return len(self._times)

    def add(self, times: Iterable[int], events: Iterable[Any]) -> None:
        """Takes events that have just come."""
        self._times += times
        self._events += events

    def add_in_time(self, times: Sequence[int], events: Sequence[Any], watermark: int) -> RowBatch:
        """Takes those behind the watermark, and returns the others, which are late."""
        late_times: list[int] = []
        late: list[Any] = []
        for time, event in zip(times, events):
            if time > watermark:
                self._times.append(time)
                self._events.append(event)
            else:
                late_times.append(time)
                late.append(event)
        return RowBatch(late, late_times)

    def until(self, watermark: int) -> tuple[list[int], list[Any]]:
        """Gives away the events up to this time, in their order; with ``due``, only those that can
        matter."""
        if self._due is not None:
            found = self._due(self._times, self._events, watermark)
            times, events, self._times, self._events = found
            return self._sorted(times, events)
        times, events = self._sorted(self._times, self._events)
        end = bisect_right(times, watermark)
        self._times, self._events = times[end:], events[end:]
        return times[:end], events[:end]

    def _sorted(self, times: list[int], events: list[Any]) -> tuple[list[int], list[Any]]:
        order = self._order(times, events)
        if order is None or len(order) < 2:
            return times, events
        in_order = itemgetter(*order)
        return list(in_order(times)), list(in_order(events))

    def _order(self, times: list[int], events: list[Any]) -> Sequence[int] | None:
        """The places of the events in their order; None if they are in order."""
        if self._compare is not None:
            in_order = cmp_to_key(self._compare)
            return sorted(range(len(times)), key=lambda at: (times[at], in_order(events[at])))
        if all(map(le, times, islice(times, 1, None))):
            return None
        if len(times) >= _MANY:
            order = _order_of_small(times)
            if order is not None:
                return order
        return sorted(range(len(times)), key=times.__getitem__)

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


def _order_of_small(times: list[int]) -> list[int] | None:
    """The order of times that lie within a minute, which numpy sorts by their digits."""
    import numpy as np

    array = np.array(times)
    least = array.min()
    if array.max() - least >= 1 << 16:
        return None
    order: list[int] = np.argsort((array - least).astype(np.uint16), kind="stable").tolist()
    return order
