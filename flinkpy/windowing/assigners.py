"""Assigners: which windows a record belongs to. Sessions, whose windows merge, are in
``flinkpy.windowing.session_windows``.

Sizes, slides and offsets are public, because built-in aggregates over these windows share slices
made from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Any, Generic, TypeAlias, TypeVar

from flinkpy.common.serializer import TypeSerializer
from flinkpy.common.typeinfo import Types
from flinkpy.core.elements import MIN_TIMESTAMP
from flinkpy.core.errors import ProgramError
from flinkpy.operators.functions import RuntimeContext
from flinkpy.state.descriptors import ValueStateDescriptor
from flinkpy.windowing.arguments import Span, milliseconds_of, offset_within, positive
from flinkpy.windowing.serializers import (
    CountWindowSerializer,
    GlobalWindowSerializer,
    TimeWindowSerializer,
)
from flinkpy.windowing.triggers import (
    CountTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    Trigger,
)
from flinkpy.windowing.windows import (
    CountWindow,
    GlobalWindow,
    MergeCallback,
    TimeWindow,
    W,
    time_window,
)

T = TypeVar("T")


class WindowAssigner(ABC, Generic[T, W]):
    """Assigns zero or more windows to each record. It keeps no state of its own, because one object
    serves all keys.

    >>> from flinkpy.windowing.serializers import TimeWindowSerializer
    >>> from flinkpy.windowing.triggers import EventTimeTrigger
    >>> class FromEachRecord(WindowAssigner):
    ...     def assign_windows(self, element, timestamp, context):
    ...         return [TimeWindow(timestamp, timestamp + 60_000)]
    ...     def get_default_trigger(self, env=None):
    ...         return EventTimeTrigger()
    ...     def get_window_serializer(self):
    ...         return TimeWindowSerializer()
    ...     def is_event_time(self):
    ...         return True
    >>> FromEachRecord().assign_windows("click", 5, None)
    [TimeWindow(start=5, end=60005)]
    """

    class WindowAssignerContext(ABC):
        """What an assigner can ask for: the machine's clock and the runtime context."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Milliseconds since 1970-01-01 UTC."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """The runtime context, which gives access to state of the current key."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssignerContext
    ) -> Collection[W]:
        """The record's windows; ``timestamp`` is MIN_TIMESTAMP if the record has none."""

    @abstractmethod
    def get_default_trigger(self, env: Any = None) -> Trigger[Any, W]:
        """The trigger to use if the program sets none."""

    @abstractmethod
    def get_window_serializer(self) -> TypeSerializer[W]: ...

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether records belong to windows by their timestamps."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows may merge as records come. Their state merges too, so the trigger
    must support it (``can_merge``)."""

    MergeCallback: TypeAlias = MergeCallback

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergeCallback[W]) -> None:
        """Calls the callback for each group of a key's windows that merge."""


class TimeWindowAssigner(WindowAssigner[Any, TimeWindow]):
    """What assigners of event-time and of processing-time windows share."""

    event_time: bool

    def get_default_trigger(self, env: object = None) -> Trigger[Any, TimeWindow]:
        return EventTimeTrigger() if self.event_time else ProcessingTimeTrigger()

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        return self.event_time


def no_timestamp(assigner: object) -> ProgramError:
    """The error for a record without a timestamp."""
    return ProgramError(
        f"{type(assigner).__name__} needs records with timestamps, and this one has none: "
        "call "
        "assign_timestamps_and_watermarks(...) before, or use windows of "
        "processing time"
    )


# -- tumbling --------------------------------------------------------------------------------------


class _TumblingWindows(TimeWindowAssigner):
    """``size`` and ``offset`` in milliseconds; windows begin at the offset, and at multiples of the
    size from there."""

    def __init__(self, size: int, offset: int = 0) -> None:
        name = type(self).__name__
        self.size = positive(size, f"{name}: the size (milliseconds)")
        self.offset = offset_within(offset, size, name, "size")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.offset})"


class TumblingEventTimeWindows(_TumblingWindows):
    """Puts each record into exactly one window, by its timestamp.

    >>> TumblingEventTimeWindows(1000).assign_windows("x", 1500, None)
    [TimeWindow(start=1000, end=2000)]
    """

    event_time = True

    @staticmethod
    def of(size: Span, offset: Span | None = None) -> TumblingEventTimeWindows:
        """Windows of this size. Days that begin at midnight in Shanghai: ``of(Time.days(1),
        Time.hours(-8))``."""
        return TumblingEventTimeWindows(
            milliseconds_of(size, "the window's size"), _offset_of(offset)
        )

    def assign_windows(self, element: object, timestamp: int, context: Any) -> list[TimeWindow]:
        if timestamp == MIN_TIMESTAMP:
            raise no_timestamp(self)
        start = timestamp - (timestamp - self.offset) % self.size
        return [time_window((start, start + self.size))]


class TumblingProcessingTimeWindows(_TumblingWindows):
    """Puts each record into exactly one window, by the machine's clock when the record comes.

    >>> from flinkpy.common.time import Time
    >>> TumblingProcessingTimeWindows.of(Time.seconds(10))
    TumblingProcessingTimeWindows(10000, 0)
    """

    event_time = False

    @staticmethod
    def of(size: Span, offset: Span | None = None) -> TumblingProcessingTimeWindows:
        return TumblingProcessingTimeWindows(
            milliseconds_of(size, "the window's size"), _offset_of(offset)
        )

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        start = TimeWindow.get_window_start_with_offset(
            context.get_current_processing_time(), self.offset, self.size
        )
        return [time_window((start, start + self.size))]


# -- sliding ---------------------------------------------------------------------------------------


class _SlidingWindows(TimeWindowAssigner):
    """``size``, ``slide`` and ``offset`` in milliseconds; one window begins every ``slide``. If the
    slide is greater than the size, records between two windows belong to none."""

    def __init__(self, size: int, slide: int, offset: int = 0) -> None:
        name = type(self).__name__
        self.size = positive(size, f"{name}: the size (milliseconds)")
        self.slide = positive(slide, f"{name}: the slide (milliseconds)")
        self.offset = offset_within(offset, slide, name, "slide")

    def windows_of(self, timestamp: int) -> list[TimeWindow]:
        """The windows that contain the timestamp, the latest first."""
        size = self.size
        last = timestamp - (timestamp - self.offset) % self.slide
        return [
            time_window((start, start + size))
            for start in range(last, timestamp - size, -self.slide)
        ]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.slide}, {self.offset})"


class SlidingEventTimeWindows(_SlidingWindows):
    """Puts each record into every window that contains its timestamp.

    >>> SlidingEventTimeWindows(10, 5).assign_windows("x", 12, None)
    [TimeWindow(start=10, end=20), TimeWindow(start=5, end=15)]
    """

    event_time = True

    @staticmethod
    def of(size: Span, slide: Span, offset: Span | None = None) -> SlidingEventTimeWindows:
        return SlidingEventTimeWindows(
            milliseconds_of(size, "the window's size"),
            milliseconds_of(slide, "the slide"),
            _offset_of(offset),
        )

    def assign_windows(self, element: object, timestamp: int, context: Any) -> list[TimeWindow]:
        if timestamp == MIN_TIMESTAMP:
            raise no_timestamp(self)
        return self.windows_of(timestamp)


class SlidingProcessingTimeWindows(_SlidingWindows):
    """Puts each record into every window that is open when the record comes.

    >>> from flinkpy.common.time import Time
    >>> SlidingProcessingTimeWindows.of(Time.seconds(10), Time.seconds(2))
    SlidingProcessingTimeWindows(10000, 2000, 0)
    """

    event_time = False

    @staticmethod
    def of(size: Span, slide: Span, offset: Span | None = None) -> SlidingProcessingTimeWindows:
        return SlidingProcessingTimeWindows(
            milliseconds_of(size, "the window's size"),
            milliseconds_of(slide, "the slide"),
            _offset_of(offset),
        )

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        return self.windows_of(context.get_current_processing_time())


def _offset_of(offset: Span | None) -> int:
    return 0 if offset is None else milliseconds_of(offset, "the offset")


# -- by other means than time ----------------------------------------------------------------------


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """Puts all records into one window. Its default trigger never fires, so set another, or have
    it fire when the input has ended.

    >>> GlobalWindows.create()
    GlobalWindows()
    """

    _ends_with_stream = False

    @staticmethod
    def create() -> GlobalWindows:
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> GlobalWindows:
        """The window of all records of an input that ends: of aggregates, joins and co-groups
        without windows.

        >>> GlobalWindows.create_with_end_of_stream_trigger().get_default_trigger()
        EndOfStreamTrigger()
        """
        found = GlobalWindows()
        found._ends_with_stream = True
        return found

    def assign_windows(self, element: object, timestamp: int, context: Any) -> list[GlobalWindow]:
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: object = None) -> Trigger[Any, GlobalWindow]:
        return EndOfStreamTrigger() if self._ends_with_stream else NeverTrigger()

    def get_window_serializer(self) -> TypeSerializer[GlobalWindow]:
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"


class _CountWindows(WindowAssigner[Any, CountWindow]):
    """Counts the records of each key, from 0, in the key's state."""

    window_size: int
    _count: ValueStateDescriptor

    def position(self, context: WindowAssigner.WindowAssignerContext) -> int:
        """How many records of the key came before this one."""
        state = context.get_runtime_context().get_state(self._count)
        position: int = state.value() or 0
        state.update(position + 1)
        return position

    def get_default_trigger(self, env: object = None) -> Trigger[Any, CountWindow]:
        return CountTrigger(self.window_size)

    def get_window_serializer(self) -> TypeSerializer[CountWindow]:
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        return False


class CountTumblingWindowAssigner(_CountWindows):
    """Puts each ``window_size`` successive records of a key into one window.

    >>> CountTumblingWindowAssigner.of(3)
    CountTumblingWindowAssigner(3)
    """

    def __init__(self, window_size: int) -> None:
        self.window_size = positive(window_size, "a count window's size")
        self._count = ValueStateDescriptor("tumble-count-assigner", Types.LONG())

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        return [CountWindow(self.position(context) // self.window_size)]

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self.window_size})"


class CountSlidingWindowAssigner(_CountWindows):
    """Windows of ``window_size`` records, one of which begins with every ``window_slide``-th record
    of a key.

    >>> CountSlidingWindowAssigner.of(3, 1)
    CountSlidingWindowAssigner(3, 1)
    """

    def __init__(self, window_size: int, window_slide: int) -> None:
        self.window_size = positive(window_size, "a count window's size")
        self.window_slide = positive(window_slide, "a count window's slide")
        self._count = ValueStateDescriptor("slide-count-assigner", Types.LONG())

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        position, slide = self.position(context), self.window_slide
        last = position // slide
        # the first window that contains the record
        first = max(0, -((self.window_size - 1 - position) // slide))
        return [CountWindow(number) for number in range(last, first - 1, -1)]

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self.window_size}, {self.window_slide})"
