"""Events that wait for the watermark: one buffer for all keys of a subtask, sorted once for each
watermark. Events of equal time stay in the order they came, or get that of a comparator. Those
beyond their share of memory lie on disk, if the backend has one."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cmp_to_key
from itertools import islice
from operator import itemgetter, le
from typing import Any, ClassVar, TypeAlias

from flinkpy.cep.matching.events_on_disk import WIDTH, EventsOnDisk, rows_of
from flinkpy.cep.matching.row_candidates import Due
from flinkpy.core.elements import RowBatch
from flinkpy.core.memory import size_of

Compare: TypeAlias = Callable[[Any, Any], int]

_MANY = 1 << 10  # from here on arrays pay, and importing numpy does
_MEASURED = 8  # events whose size is looked at
_EVENT = 48  # bytes that two lists and a time take for an event


class PendingEvents:
    """Events with their times.

    >>> pending = PendingEvents()
    >>> pending.add([5, 3], ["a", "b"])
    >>> pending.until(4), len(pending)
    (([3], ['b']), 1)
    """

    few: ClassVar[int] = 1 << 10  # events, fewer are not worth a look

    def __init__(
        self,
        compare: Compare | None = None,
        due: Due | None = None,
        disk: EventsOnDisk | None = None,
    ) -> None:
        self._compare, self._due, self._disk = compare, due, disk
        self._look_at = self.few  # so many events may be here until their size is looked at
        self._times: list[int] = []
        self._events: list[Any] = []

    def __len__(self) -> int:
        return len(self._times)

    @property
    def times(self) -> Sequence[int]:
        """Of those in memory, as they came."""
        return self._times

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
        matter. With a disk, for the ``moments`` on the way to a watermark."""
        if self._disk is not None:
            for pieces in self._disk.slices_until(watermark):
                self.add_before(*rows_of(pieces))
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

    # -- events on disk ----------------------------------------------------------------------------

    def add_before(self, times: list[int], events: list[Any]) -> None:
        """Takes events that came before those of their time."""
        self._times[:0] = times
        self._events[:0] = events

    def relieve(self, watermark: int, keys_of: Callable[[list[Any]], list[Any]]) -> None:
        """Events beyond their share of memory leave it."""
        disk = self._disk
        if disk is None or disk.memory is None or len(self._times) <= self._look_at:
            return
        sample = self._events[:: -(-len(self._events) // _MEASURED)]
        most = disk.memory * len(sample) // (sum(map(size_of, sample)) + _EVENT * len(sample))
        starts = [time // WIDTH * WIDTH for time in self._times]
        if leaving := disk.leaving(Counter(starts), most, watermark):
            parts: dict[int, tuple[list[int], list[Any]]] = {start: ([], []) for start in leaving}
            stays: tuple[list[int], list[Any]] = [], []
            for start, time, event in zip(starts, self._times, self._events):
                times, events = parts.get(start, stays)
                times.append(time)
                events.append(event)
            self._times, self._events = stays
            for start, (times, events) in parts.items():
                disk.write_rows(start, keys_of(events), times, events)
        # what cannot leave is not looked at again before there is much more of it
        count = len(self._times)
        self._look_at = max(self.few, min(most, 2 * count) if count <= most else 3 * count // 2)

    # -- snapshots ---------------------------------------------------------------------------------

    def by_key(self, keys_of: Callable[[list[Any]], list[Any]]) -> dict[Any, list[tuple[int, Any]]]:
        """What waits in memory, for a snapshot."""
        found: dict[Any, list[tuple[int, Any]]] = {}
        for key, time, event in zip(keys_of(self._events), self._times, self._events):
            found.setdefault(key, []).append((time, event))
        return found

    def restore(self, saved: Mapping[Any, list[tuple[int, Any]]]) -> None:
        """Takes what waited when it was saved."""
        if self._disk is not None:
            self.add(*rows_of(self._disk.restored))
            self._disk.restored = []
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
