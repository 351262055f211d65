"""Slices: the pieces that overlapping windows share. A record is aggregated once, in its slice,
however many windows contain it. A window that fires combines its slices.

The width of a slice is the greatest common divisor of size and slide, so every window begins and
ends at slice borders. This is pure arithmetic, for one timestamp or for an array of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from flinkpy.windowing.assigners import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from flinkpy.windowing.windows import TimeWindow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class Slicing:
    """Windows of ``size`` that begin every ``slide`` milliseconds, at ``offset``, cut into slices
    of ``width``. A slice is named by its start.

    >>> slicing = Slicing(size=10, slide=4, offset=0)
    >>> slicing.width, slicing.slice_of(7), list(slicing.windows_of(6))
    (2, 6, [TimeWindow(start=0, end=10), TimeWindow(start=4, end=14)])
    """

    size: int
    slide: int
    offset: int

    @property
    def width(self) -> int:
        return gcd(self.size, self.slide)

    def slice_of(self, timestamp: int) -> int:
        """The slice that contains the timestamp."""
        return timestamp - (timestamp - self.offset) % self.width

    def slices_of_all(self, timestamps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The slices of an array of timestamps."""
        slices: npt.NDArray[np.int64] = timestamps - (timestamps - self.offset) % self.width
        return slices

    def slices_in(self, window: TimeWindow) -> range:
        """The slices that make up the window, in order."""
        return range(window.start, window.end, self.width)

    def windows_of(self, start: int) -> Iterator[TimeWindow]:
        """The windows that contain the slice, earliest first. There are none if the slide is
        greater than the size and the slice lies between two windows."""
        last = start - (start - self.offset) % self.slide
        # How many slides back a window still contains the slice
        reach = (start + self.width - self.size - last) // -self.slide
        return (
            TimeWindow(begin, begin + self.size)
            for begin in range(last - reach * self.slide, last + 1, self.slide)
        )

    def last_window_end(self, start: int) -> int | None:
        """The end of the last window that contains the slice; None if there is none. When the
        watermark is there (and lateness is over), the slice's accumulator can be dropped."""
        last = start - (start - self.offset) % self.slide
        return last + self.size if start < last + self.size else None

    def end_after(self, start: int, moment: int) -> int | None:
        """The end of the slice's first window whose last moment is after this one."""
        least = max(start + self.width, moment + 2)
        end = least + (self.offset + self.size - least) % self.slide
        return end if end - self.size <= start else None

    def window_ending(self, end: int) -> TimeWindow:
        """The window that ends there."""
        return TimeWindow(end - self.size, end)

    def is_late(self, timestamp: int, watermark: int, allowed_lateness: int = 0) -> bool:
        """Whether all windows that contain the timestamp ended before this watermark; also True if
        no window contains it."""
        end = self.last_window_end(self.slice_of(timestamp))
        return end is None or end - 1 + allowed_lateness <= watermark


@dataclass(frozen=True)
class CumulativeSlicing(Slicing):
    """Windows that begin together every ``size`` milliseconds and end one after the other, every
    ``slide`` (a divisor of ``size``): CUMULATE of SQL. A slice is in its own window and in the
    longer ones behind it.

    >>> slicing = CumulativeSlicing(size=6, slide=2, offset=0)
    >>> slicing.width, slicing.slice_of(9), list(slicing.windows_of(8))
    (2, 8, [TimeWindow(start=6, end=10), TimeWindow(start=6, end=12)])
    """

    def _first(self, moment: int) -> int:
        return moment - (moment - self.offset) % self.size

    def windows_of(self, start: int) -> Iterator[TimeWindow]:
        first = self._first(start)
        ends = range(start + self.width, first + self.size + 1, self.width)
        return (TimeWindow(first, end) for end in ends)

    def last_window_end(self, start: int) -> int | None:
        return self._first(start) + self.size

    def end_after(self, start: int, moment: int) -> int | None:
        least = max(start + self.width, moment + 2)
        end = least + (self.offset - least) % self.width
        return end if end <= self._first(start) + self.size else None

    def window_ending(self, end: int) -> TimeWindow:
        return TimeWindow(self._first(end - 1), end)


def slicing_of(assigner: WindowAssigner[object, TimeWindow]) -> Slicing | None:
    """The slicing of an assigner's windows; None if they do not lie on a grid."""
    if isinstance(assigner, (TumblingEventTimeWindows, TumblingProcessingTimeWindows)):
        return Slicing(assigner.size, assigner.size, assigner.offset)
    if isinstance(assigner, (SlidingEventTimeWindows, SlidingProcessingTimeWindows)):
        return Slicing(assigner.size, assigner.slide, assigner.offset)
    return None
