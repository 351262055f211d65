"""The windows themselves: plain values that are cheap to make, compare and hash, as at least one is made per record. They are tuples for that reason.

A window is a key of state and a namespace of timers.
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
        """The greatest timestamp that belongs to it. At a watermark of this timestamp the window is complete."""
        raise NotImplementedError


class MergeCallback(ABC, Generic[W]):
    """What an assigner tells which windows merge; its name for programs is ``MergingWindowAssigner.MergeCallback``."""

    @abstractmethod
    def merge(self, to_be_merged: Iterable[W], merge_result: W) -> None:
        """From now on these windows are ``merge_result``."""


class _Interval(NamedTuple):
    start: int
    end: int


class TimeWindow(_Interval, Window):
    """From ``start`` up to, and without, ``end``; milliseconds.

    >>> TimeWindow(0, 1000).max_timestamp(), TimeWindow(0, 5).cover(TimeWindow(3, 9))
    (999, TimeWindow(start=0, end=9))
    """

    __slots__ = ()

    def max_timestamp(self) -> int:
        return self[1] - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether they overlap or touch. Sessions that touch are one."""
        return self[0] <= other[1] and self[1] >= other[0]

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window around both."""
        return TimeWindow(min(self[0], other[0]), max(self[1], other[1]))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """The start of the window that holds the timestamp. Windows begin at ``offset`` and at multiples of their size from there.

        >>> TimeWindow.get_window_start_with_offset(-1, 0, 10), TimeWindow.get_window_start_with_offset(12, 5, 10)
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


# Makes a window from a pair without calling a Python function, which takes half the time. One is made per record.
time_window: Callable[[tuple[int, int]], TimeWindow] = partial(tuple.__new__, TimeWindow)


def _tell(callback: MergeCallback[TimeWindow], group: list[TimeWindow], covered: TimeWindow | None) -> None:
    if len(group) > 1 and covered is not None:
        callback.merge(group, covered)


class _Numbered(NamedTuple):
    id: int


class CountWindow(_Numbered, Window):
    """A window of records counted per key; windows are numbered from 0.

    >>> CountWindow(7).id
    7
    """

    __slots__ = ()

    def max_timestamp(self) -> int:
        return MAX_TIMESTAMP


class GlobalWindow(tuple[()], Window):
    """The only window: it holds everything.

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
