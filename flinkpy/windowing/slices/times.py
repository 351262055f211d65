"""When windows over slices are due, and how a slice stands to time: still open, reopened by a
record that comes late, or over.

Pure: it is told what time it is (the watermark, or the machine's time), and which slices hold
something. Nothing is kept per key, and a watermark at which nothing is due costs one comparison.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum

from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.windows import TimeWindow

_NEVER = MAX_TIMESTAMP + 1


class Standing(Enum):
    """What a record finds in its slice."""

    OPEN = "OPEN"  # no window to evaluate at once
    # windows that were evaluated and are kept for late records: they are evaluated again
    REOPENED = "REOPENED"
    OVER = "OVER"  # every window was cleaned up
    OUTSIDE = "OUTSIDE"  # between two windows


class SliceTimes:
    """``now``: all windows whose last moment is not after it were evaluated.

    >>> times = SliceTimes(Slicing(size=10, slide=5, offset=0), allowed_lateness=0)
    >>> times.entered(5)
    >>> times.is_quiet(8), times.is_quiet(9), times.due([5], until=14)
    (True, False, [TimeWindow(start=0, end=10), TimeWindow(start=5, end=15)])
    """

    def __init__(self, slicing: Slicing, allowed_lateness: int = 0) -> None:
        self.slicing, self._lateness = slicing, allowed_lateness
        self.now = MIN_TIMESTAMP
        # at this moment something is due, or a slice is over; before it, nothing
        self._wake = _NEVER

    def entered(self, start: int) -> None:
        """A slice holds its first record."""
        self._wake = min(self._wake, self._next_moment(start))

    def settle(self, starts: Iterable[int]) -> None:
        """These are all the slices there are now."""
        self._wake = min(map(self._next_moment, starts), default=_NEVER)

    @property
    def wake(self) -> int | None:
        """The moment at which something is due; None where no slice holds anything."""
        return None if self._wake == _NEVER else self._wake

    def is_quiet(self, until: int) -> bool:
        """Whether time can go on to ``until`` and nothing happens."""
        return until < self._wake

    def due(self, starts: Iterable[int], until: int) -> list[TimeWindow]:
        """The windows to evaluate when time goes on to ``until``: those that hold one of the
        slices, by their ends."""
        windows, after, slicing = [], self.now, self.slicing
        for start in sorted(starts):
            while (end := slicing.end_after(start, after)) is not None and end - 1 <= until:
                windows.append(slicing.window_ending(end))
                after = end - 1
        return windows

    def standing(self, start: int) -> Standing:
        """How the slice stands now."""
        first, last = (
            self.slicing.end_after(start, MIN_TIMESTAMP),
            self.slicing.last_window_end(start),
        )
        if first is None or last is None:
            return Standing.OUTSIDE
        if first - 1 > self.now:
            return Standing.OPEN
        if self._is_cleaned_up(last):
            return Standing.OVER
        return Standing.REOPENED if self.evaluated(start) else Standing.OPEN

    def is_before_all_windows(self, start: int) -> bool:
        """Whether no window of the slice was due yet. (An open slice may have windows that are
        over.)"""
        first = self.slicing.end_after(start, MIN_TIMESTAMP)
        return first is not None and first - 1 > self.now

    def evaluated(self, start: int) -> list[TimeWindow]:
        """The windows of the slice that were evaluated and not yet cleaned up."""
        windows = []
        end = self.slicing.end_after(start, max(MIN_TIMESTAMP, self.now - self._lateness))
        while end is not None and end - 1 <= self.now and not self._is_cleaned_up(end):
            windows.append(self.slicing.window_ending(end))
            end = self.slicing.end_after(start, end - 1)
        return windows

    def is_late(self, timestamp: int) -> bool:
        """Whether a record between two windows counts as late."""
        return timestamp + self._lateness <= self.now

    def over(self, starts: Iterable[int]) -> list[int]:
        """Which of the slices can go."""
        last = self.slicing.last_window_end
        return [
            start for start in starts if (end := last(start)) is None or self._is_cleaned_up(end)
        ]

    def survives(self, start: int, window: TimeWindow) -> bool:
        """Whether a slice is needed again after this window was evaluated."""
        return self._lateness > 0 or self.slicing.last_window_end(start) != window.end

    def is_cleaned_up(self, window: TimeWindow) -> bool:
        """Whether the window is done with."""
        return self._is_cleaned_up(window.end)

    def _is_cleaned_up(self, end: int) -> bool:
        return end - 1 + self._lateness <= self.now or self.now == MAX_TIMESTAMP

    def _next_moment(self, start: int) -> int:
        end = self.slicing.end_after(start, self.now)
        if end is not None:
            return end - 1
        last = self.slicing.last_window_end(start)
        return _NEVER if last is None else min(last - 1 + self._lateness, MAX_TIMESTAMP)


def slices_within(window: TimeWindow, slicing: Slicing, starts: Collection[int]) -> list[int]:
    """Those of the slices that make up the window, in order."""
    places = slicing.slices_in(window)
    if len(places) <= len(starts):
        return [start for start in places if start in starts]
    return sorted(start for start in starts if window.start <= start < window.end)
