"""Evictors remove records from a window when it is evaluated. A window with an evictor keeps all
its records; they are not aggregated as they come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, NamedTuple, TypeVar

from flinkpy.windowing.arguments import Span, delta_of, milliseconds_of, positive, threshold_of
from flinkpy.windowing.windows import W, Window

T = TypeVar("T")


class TimestampedValue(NamedTuple):
    """A record of a window, and its timestamp or None.

    >>> TimestampedValue("click", 1000).timestamp
    1000
    """

    value: Any
    timestamp: int | None


class Evictor(ABC, Generic[T, W]):
    """Removes records from a window before or after its function is called. It changes the list
    ``elements``, which is in order of arrival, in place.

    >>> class DropNone(Evictor):
    ...     def evict_before(self, elements, size, window, evictor_context):
    ...         elements[:] = [each for each in elements if each.value is not None]
    ...     def evict_after(self, elements, size, window, evictor_context):
    ...         pass
    """

    class EvictorContext(ABC):
        """What an evictor can ask for: the machine's clock and the watermark."""

        @abstractmethod
        def get_current_processing_time(self) -> int: ...

        @abstractmethod
        def get_current_watermark(self) -> int: ...

    @abstractmethod
    def evict_before(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: W,
        evictor_context: EvictorContext,
    ) -> None:
        """Removes records that the function must not see."""

    @abstractmethod
    def evict_after(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: W,
        evictor_context: EvictorContext,
    ) -> None:
        """Removes records that later evaluations must not see."""


class _OneTimeEvictor(Evictor[Any, Window]):
    """Evicts before the function is called, or with ``do_evict_after`` after it."""

    def __init__(self, do_evict_after: bool) -> None:
        self.do_evict_after = do_evict_after

    @abstractmethod
    def evict(self, elements: list[TimestampedValue]) -> None:
        """Removes the records."""

    def evict_before(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        if not self.do_evict_after:
            self.evict(elements)

    def evict_after(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        if self.do_evict_after:
            self.evict(elements)


class CountEvictor(_OneTimeEvictor):
    """Keeps the last ``max_count`` records.

    >>> CountEvictor.of(3).max_count
    3
    """

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self.max_count = positive(max_count, "CountEvictor: the number of records kept")

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        return CountEvictor(max_count, do_evict_after)

    def evict(self, elements: list[TimestampedValue]) -> None:
        del elements[: -self.max_count]


class TimeEvictor(_OneTimeEvictor):
    """Keeps the records of the last ``window_size`` milliseconds before the latest one. Records
    without timestamps stay.

    >>> from flinkpy.common.time import Time
    >>> TimeEvictor.of(Time.seconds(10)).window_size
    10000
    """

    def __init__(self, window_size: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self.window_size = positive(window_size, "TimeEvictor: the time kept (milliseconds)")

    @staticmethod
    def of(window_size: Span, do_evict_after: bool = False) -> TimeEvictor:
        return TimeEvictor(milliseconds_of(window_size, "the time kept"), do_evict_after)

    def evict(self, elements: list[TimestampedValue]) -> None:
        stamps = [each.timestamp for each in elements if each.timestamp is not None]
        if stamps:
            limit = max(stamps) - self.window_size
            elements[:] = [
                each for each in elements if each.timestamp is None or each.timestamp > limit
            ]


class DeltaEvictor(_OneTimeEvictor):
    """Keeps the records whose distance to the last one, ``delta_function(record, last)``, is less
    than ``threshold``.

    >>> DeltaEvictor.of(0.5, lambda record, last: abs(last - record)).threshold
    0.5
    """

    def __init__(
        self, threshold: float, delta_function: object, do_evict_after: bool = False
    ) -> None:
        super().__init__(do_evict_after)
        self.threshold = threshold_of(threshold, "DeltaEvictor")
        self._delta = delta_of(delta_function)

    @staticmethod
    def of(threshold: float, delta_function: object, do_evict_after: bool = False) -> DeltaEvictor:
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def evict(self, elements: list[TimestampedValue]) -> None:
        if elements:
            last, delta, threshold = elements[-1].value, self._delta, self.threshold
            elements[:] = [each for each in elements if delta(each.value, last) < threshold]
