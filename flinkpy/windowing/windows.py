"""The windows themselves: plain values, which are tuples because at least one is made per record,
and tuples are cheap to make, compare and hash.

A window is the namespace of its state and of its timers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from flinkpy.core.elements import MAX_TIMESTAMP

W = TypeVar("W", bound="Window")


class Window:
    """A finite group of records."""

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """The greatest timestamp that belongs to the window. When the watermark reaches it, the
        window is complete."""
        raise NotImplementedError


class MergeCallback(ABC, Generic[W]):
    """An assigner calls it with windows that merge; programs know it as
    ``MergingWindowAssigner.MergeCallback``."""

    @abstractmethod
    def merge(self, to_be_merged: Iterable[W], merge_result: W) -> None:
        """Says that these windows are now ``merge_result``."""


class _Interval(NamedTuple):
    start: int
    end: int


class TimeWindow(_Interval, Window):
    """The time from ``start`` up to but not including ``end``, in milliseconds.

    >>> TimeWindow(0, 1000).max_timestamp(), TimeWindow(0, 5).cover(TimeWindow(3, 9))
    (999, TimeWindow(start=0, end=9))
    """

    __slots__ = ()

    def max_timestamp(self) -> int:
        return self[1] - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the windows overlap or touch. Sessions that touch are one session."""
        return self[0] <= other[1] and self[1] >= other[0]

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that contains both."""
        return TimeWindow(min(self[0], other[0]), max(self[1], other[1]))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """The start of the window that contains the timestamp. Windows begin at ``offset``, and at
        multiples of their size from there.

        >>> (
        ...     TimeWindow.get_window_start_with_offset(-1, 0, 10),
        ...     TimeWindow.get_window_start_with_offset(12, 5, 10),
        ... )
        (-10, 5)
        """
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: MergeCallback[TimeWindow]) -> None:
        """Calls the callback for each group of windows that meet, directly or through others."""
        group: list[TimeWindow] = []
        covered: TimeWindow | None = None
        for window in sorted(set(windows)):
            if covered is not None and covered.intersects(window):
                group.append(window)
                covered = covered.cover(window)
                continue
            _tell(callback, group, covered)
            group, covered = [window], window
        _tell(callback, group, covered)


# Makes a window from a pair without a call of a Python function, in half the time. At least one is
# made per record.
time_window: Callable[[tuple[int, int]], TimeWindow] = partial(tuple.__new__, TimeWindow)


def _tell(
    callback: MergeCallback[TimeWindow], group: list[TimeWindow], covered: TimeWindow | None
) -> None:
    if len(group) > 1 and covered is not None:
        callback.merge(group, covered)


class _Numbered(NamedTuple):
    id: int


class CountWindow(_Numbered, Window):
    """A window of records that are counted per key; a key's windows are numbered from 0.

    >>> CountWindow(7).id
    7
    """

    __slots__ = ()

    def max_timestamp(self) -> int:
        return MAX_TIMESTAMP


class GlobalWindow(tuple[()], Window):
    """The one window that contains all records.

    >>> GlobalWindow.get()
    GlobalWindow
    """

    __slots__ = ()

    @staticmethod
    def get() -> GlobalWindow:
        return _GLOBAL

    def max_timestamp(self) -> int:
        return MAX_TIMESTAMP

    def __repr__(self) -> str:
        return "GlobalWindow"


_GLOBAL = GlobalWindow()
