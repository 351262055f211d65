"""Slices: the pieces that overlapping windows share. A record is added up once, in its slice, however many windows hold it; a window that
fires puts its slices together.

The width of a slice is the greatest common divisor of size and slide, so every window begins and ends where slices do. Purely arithmetic, for one
timestamp or a whole array of them.
"""

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
    """Windows of ``size`` that begin every ``slide`` milliseconds, at ``offset``, cut into slices of ``width``. A slice is named by its start.

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
        """The slice that holds the timestamp."""
        return timestamp - (timestamp - self.offset) % self.width

    def slices_of_all(self, timestamps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The same for a whole array."""
        slices: npt.NDArray[np.int64] = timestamps - (timestamps - self.offset) % self.width
        return slices

    def slices_in(self, window: TimeWindow) -> range:
        """The slices a window is put together from, in order."""
        return range(window.start, window.end, self.width)

    def windows_of(self, start: int) -> Iterator[TimeWindow]:
        """The windows a slice belongs to, earliest first. None, where the slide is above the size and the slice lies between two."""
        last = start - (start - self.offset) % self.slide
        reach = (start + self.width - self.size - last) // -self.slide  # how many slides before the last one a window still holds the slice
        return (TimeWindow(begin, begin + self.size) for begin in range(last - reach * self.slide, last + 1, self.slide))

    def last_window_end(self, start: int) -> int | None:
        """The end of the last window a slice belongs to: with the watermark there (and lateness over), its accumulator can go."""
        last = start - (start - self.offset) % self.slide
        return last + self.size if start < last + self.size else None

    def is_late(self, timestamp: int, watermark: int, allowed_lateness: int = 0) -> bool:
        """Whether every window that holds the timestamp was cleaned up before this watermark; True too where none holds it."""
        end = self.last_window_end(self.slice_of(timestamp))
        return end is None or end - 1 + allowed_lateness <= watermark


def slicing_of(assigner: WindowAssigner[object, TimeWindow]) -> Slicing | None:
    """How an assigner's windows are cut; None for those that are not laid out on a grid."""
    if isinstance(assigner, (TumblingEventTimeWindows, TumblingProcessingTimeWindows)):
        return Slicing(assigner.size, assigner.size, assigner.offset)
    if isinstance(assigner, (SlidingEventTimeWindows, SlidingProcessingTimeWindows)):
        return Slicing(assigner.size, assigner.slide, assigner.offset)
    return None
