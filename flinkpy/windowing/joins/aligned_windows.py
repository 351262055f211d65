"""When aligned windows are complete, and when their slices end: for operators that keep records by
slice, without timers per key.

Aligned windows are the same for all keys: tumbling and sliding ones (``Slicing``).
"""

from __future__ import annotations

import heapq

from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.windows import TimeWindow


class AlignedWindows:
    """The event-time windows of one slicing that have slices with records.

    >>> windows = AlignedWindows(Slicing(size=10, slide=5, offset=0))
    >>> windows.open_slice(5); windows.advance(9), windows.ended_slices()
    ([TimeWindow(start=0, end=10)], [])
    >>> windows.advance(14), windows.ended_slices()
    ([TimeWindow(start=5, end=15)], [5])
    """

    def __init__(self, slicing: Slicing, allowed_lateness: int = 0) -> None:
        self.slicing, self.allowed_lateness = slicing, allowed_lateness
        self.watermark = MIN_TIMESTAMP
        self._incomplete: set[int] = set()  # the ends of these windows
        self._due: list[int] = []  # a heap of the same
        # a heap: when a slice ends, and the slice's start
        self._slice_ends: list[tuple[int, int]] = []

    def open_slice(self, start: int) -> None:
        """Notes that the slice has records, so its windows become due. Windows that are complete
        already are not due again."""
        for window in self.slicing.windows_of(start):
            end = window[1]
            if end - 1 > self.watermark and end not in self._incomplete:
                self._incomplete.add(end)
                heapq.heappush(self._due, end)
        last = self.slicing.last_window_end(start)
        heapq.heappush(
            self._slice_ends, (MIN_TIMESTAMP if last is None else self.cleanup_time(last), start)
        )

    def advance(self, watermark: int) -> list[TimeWindow]:
        """The windows that become complete with this watermark, earliest first."""
        self.watermark, due = watermark, self._due
        complete = []
        while due and due[0] - 1 <= watermark:
            end = heapq.heappop(due)
            self._incomplete.discard(end)
            complete.append(self.slicing.window_ending(end))
        return complete

    @property
    def next_moment(self) -> int | None:
        """The last moment of the earliest incomplete window."""
        return self._due[0] - 1 if self._due else None

    def ended_slices(self) -> list[int]:
        """The slices that no window needs any longer, lateness included. Each is returned once."""
        ended = []
        while self._slice_ends and self._slice_ends[0][0] <= self.watermark:
            ended.append(heapq.heappop(self._slice_ends)[1])
        return ended

    def cleanup_time(self, end: int) -> int:
        """The watermark at which a window that ends at ``end`` stops taking records."""
        return min(end - 1 + self.allowed_lateness, MAX_TIMESTAMP)

    def is_complete(self, timestamp: int) -> bool:
        """Whether a window that contains the timestamp is complete; for a timestamp between two
        windows, whether the watermark has reached it. If False, it is False for all later
        timestamps too."""
        first = next(self.slicing.windows_of(self.slicing.slice_of(timestamp)), None)
        return (timestamp if first is None else first[1] - 1) <= self.watermark

    def is_late(self, timestamp: int) -> bool:
        """Whether a record that no window took counts as late (Flink's rule). A record between two
        windows that comes in time does not."""
        return timestamp + self.allowed_lateness <= self.watermark

    def open_for(self, timestamp: int) -> list[TimeWindow]:
        """The windows that contain the timestamp and still take records, complete or not; the
        latest first, as assigners return them."""
        watermark = self.watermark
        windows = [
            each
            for each in self.slicing.windows_of(self.slicing.slice_of(timestamp))
            if self.cleanup_time(each[1]) > watermark
        ]
        return windows[::-1]
