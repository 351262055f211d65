"""When windows of a grid are complete, and when their slices can go: for operators that keep records by slice, without timers per key."""

from __future__ import annotations

import heapq

from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkpy.windowing.slices.slicing import Slicing
from flinkpy.windowing.windows import TimeWindow, time_window


class WindowGrid:
    """Event-time windows that lie on a grid (``Slicing``), as far as there are slices for them.

    >>> grid = WindowGrid(Slicing(size=10, slide=5, offset=0))
    >>> grid.open_slice(5); grid.advance(9), grid.expired()
    ([TimeWindow(start=0, end=10)], [])
    >>> grid.advance(14), grid.expired()
    ([TimeWindow(start=5, end=15)], [5])
    """

    def __init__(self, slicing: Slicing, allowed_lateness: int = 0) -> None:
        self.slicing, self.allowed_lateness = slicing, allowed_lateness
        self.watermark = MIN_TIMESTAMP
        self._waiting: set[int] = set()  # starts of windows that were not complete yet
        self._due: list[tuple[int, int]] = []  # a heap: last moment and start of these windows
        self._expiries: list[tuple[int, int]] = []  # a heap: when a slice goes, and the slice

    def open_slice(self, start: int) -> None:
        """There are records in the slice from now on: its windows will be due. Those that were complete before are not due once more."""
        for window in self.slicing.windows_of(start):
            last = window[1] - 1
            if last > self.watermark and window[0] not in self._waiting:
                self._waiting.add(window[0])
                heapq.heappush(self._due, (last, window[0]))
        end = self.slicing.last_window_end(start)
        heapq.heappush(self._expiries, (MIN_TIMESTAMP if end is None else self.cleanup_time(end), start))

    def advance(self, watermark: int) -> list[TimeWindow]:
        """The windows that are complete with this watermark, earliest first."""
        self.watermark, due, size = watermark, self._due, self.slicing.size
        complete = []
        while due and due[0][0] <= watermark:
            _, start = heapq.heappop(due)
            self._waiting.discard(start)
            complete.append(time_window((start, start + size)))
        return complete

    def expired(self) -> list[int]:
        """The slices no window needs any more, lateness included. Each is given once."""
        gone = []
        while self._expiries and self._expiries[0][0] <= self.watermark:
            gone.append(heapq.heappop(self._expiries)[1])
        return gone

    def cleanup_time(self, end: int) -> int:
        """With the watermark there, a window that ends at ``end`` takes no more records."""
        return min(end - 1 + self.allowed_lateness, MAX_TIMESTAMP)

    def is_complete(self, timestamp: int) -> bool:
        """Whether a window that holds the timestamp is complete, or, between two windows, whether the watermark has reached it. Where it is False, it
        is False for all later timestamps."""
        first = next(self.slicing.windows_of(self.slicing.slice_of(timestamp)), None)
        return (timestamp if first is None else first[1] - 1) <= self.watermark

    def is_late(self, timestamp: int) -> bool:
        """Whether a record that no window took counts as late (Flink's rule): not between two windows, while it is in time."""
        return timestamp + self.allowed_lateness <= self.watermark

    def open_windows(self, timestamp: int) -> list[TimeWindow]:
        """Those that hold the timestamp and still take records, complete or not; the latest first, as assigners give them."""
        watermark = self.watermark
        windows = [each for each in self.slicing.windows_of(self.slicing.slice_of(timestamp)) if self.cleanup_time(each[1]) > watermark]
        return windows[::-1]
