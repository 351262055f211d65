"""Session assigners: records that follow each other within a gap form one window. Each record opens
a window as long as its gap; windows that meet merge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from flinkpy.core.elements import MIN_TIMESTAMP
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.program_line import refuse
from flinkpy.windowing.arguments import Span, milliseconds_of, positive
from flinkpy.windowing.assigners import (
    MergingWindowAssigner,
    TimeWindowAssigner,
    WindowAssigner,
    no_timestamp,
)
from flinkpy.windowing.windows import MergeCallback, TimeWindow, time_window


class SessionWindowTimeGapExtractor(ABC):
    """Returns the gap that ends a session, for each record.

    >>> class ByVisitor(SessionWindowTimeGapExtractor):
    ...     def extract(self, element):
    ...         return 60_000 if element["robot"] else 1_800_000
    >>> ByVisitor().extract({"robot": True})
    60000
    """

    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap in milliseconds, at least 1."""


GapExtractor: TypeAlias = SessionWindowTimeGapExtractor | Callable[[Any], int]


class _SessionWindows(TimeWindowAssigner, MergingWindowAssigner[Any, TimeWindow]):
    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergeCallback[TimeWindow]
    ) -> None:
        TimeWindow.merge_windows(windows, callback)


class _StaticGap(_SessionWindows):
    """``session_gap`` in milliseconds, the same for all records."""

    def __init__(self, session_gap: int) -> None:
        self.session_gap = positive(session_gap, f"{type(self).__name__}: the gap (milliseconds)")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_gap})"


class _DynamicGap(_SessionWindows):
    """Each record has its own gap: if no record follows within it, the session ends."""

    def __init__(self, session_window_time_gap_extractor: GapExtractor) -> None:
        extractor = session_window_time_gap_extractor
        found = (
            extractor.extract if isinstance(extractor, SessionWindowTimeGapExtractor) else extractor
        )
        if isinstance(extractor, type) or not callable(found):
            raise refuse(
                f"{type(self).__name__} takes a SessionWindowTimeGapExtractor or a function "
                f"of the record, this is {extractor!r:.80}"
            )
        self._extractor = extractor

    def gap(self, element: object) -> int:
        """The record's gap; raises ProgramError unless it is a positive integer."""
        extractor = self._extractor
        gap = (
            extractor.extract(element)
            if isinstance(extractor, SessionWindowTimeGapExtractor)
            else extractor(element)
        )
        if isinstance(gap, bool) or not isinstance(gap, int) or gap < 1:
            raise ProgramError(
                "a dynamic session gap is a whole number of milliseconds from 1 on, this one "
                f"is {gap!r:.80} for {element!r:.80}"
            )
        return gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._extractor!r})"


class EventTimeSessionWindows(_StaticGap):
    """Sessions by the records' timestamps.

    >>> EventTimeSessionWindows(100).assign_windows("x", 7, None)
    [TimeWindow(start=7, end=107)]
    """

    event_time = True

    @staticmethod
    def with_gap(size: Span) -> EventTimeSessionWindows:
        return EventTimeSessionWindows(milliseconds_of(size, "the session gap"))

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicEventTimeSessionWindows:
        return DynamicEventTimeSessionWindows(extractor)

    def assign_windows(self, element: object, timestamp: int, context: Any) -> list[TimeWindow]:
        if timestamp == MIN_TIMESTAMP:
            raise no_timestamp(self)
        return [time_window((timestamp, timestamp + self.session_gap))]


class ProcessingTimeSessionWindows(_StaticGap):
    """Sessions by the machine's clock.

    >>> from flinkpy.common.time import Time
    >>> ProcessingTimeSessionWindows.with_gap(Time.seconds(10))
    ProcessingTimeSessionWindows(10000)
    """

    event_time = False

    @staticmethod
    def with_gap(size: Span) -> ProcessingTimeSessionWindows:
        return ProcessingTimeSessionWindows(milliseconds_of(size, "the session gap"))

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicProcessingTimeSessionWindows:
        return DynamicProcessingTimeSessionWindows(extractor)

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        now = context.get_current_processing_time()
        return [time_window((now, now + self.session_gap))]


class DynamicEventTimeSessionWindows(_DynamicGap):
    """Sessions by timestamps, with a gap for each record.

    >>> DynamicEventTimeSessionWindows.with_dynamic_gap(
    ...     lambda click: click["gap_ms"]
    ... ).is_event_time()
    True
    """

    event_time = True

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicEventTimeSessionWindows:
        return DynamicEventTimeSessionWindows(extractor)

    def assign_windows(self, element: object, timestamp: int, context: Any) -> list[TimeWindow]:
        if timestamp == MIN_TIMESTAMP:
            raise no_timestamp(self)
        return [time_window((timestamp, timestamp + self.gap(element)))]


class DynamicProcessingTimeSessionWindows(_DynamicGap):
    """Sessions by the machine's clock, with a gap for each record.

    >>> DynamicProcessingTimeSessionWindows.with_dynamic_gap(
    ...     lambda click: click["gap_ms"]
    ... ).is_event_time()
    False
    """

    event_time = False

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicProcessingTimeSessionWindows:
        return DynamicProcessingTimeSessionWindows(extractor)

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        now = context.get_current_processing_time()
        return [time_window((now, now + self.gap(element)))]
