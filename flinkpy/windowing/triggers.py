"""Triggers decide when a window is evaluated. One object serves all keys and windows, so a trigger
keeps what it has to remember in partitioned state, by key and window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from operator import add
from typing import Any, Generic, TypeVar

from flinkpy.common.typeinfo import Types
from flinkpy.core.program.program_line import refuse
from flinkpy.core.users_values import bounded_repr
from flinkpy.state.descriptors import ReducingStateDescriptor, StateDescriptor, ValueStateDescriptor
from flinkpy.windowing.arguments import Span, delta_of, milliseconds_of, positive, threshold_of
from flinkpy.windowing.windows import GlobalWindow, TimeWindow, W, Window

T = TypeVar("T")


class TriggerResult(Enum):
    """What to do with the window: (evaluate it, remove its records)."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        return self.value[0]

    def is_purge(self) -> bool:
        return self.value[1]


CONTINUE = TriggerResult.CONTINUE
FIRE = TriggerResult.FIRE
FIRE_AND_PURGE = TriggerResult.FIRE_AND_PURGE


def checked_result(result: object) -> TriggerResult:
    """What a trigger returned, which is None if it forgot to; raises TypeError unless it is a
    TriggerResult."""
    if isinstance(result, TriggerResult):
        return result
    raise TypeError(
        "a trigger returns TriggerResult.CONTINUE, FIRE, PURGE or FIRE_AND_PURGE, "
        f"this one returned {bounded_repr(result, 60)}"
    )


class Trigger(ABC, Generic[T, W]):
    """Called for every record and every timer of a window. For windows that merge it must support
    merging (``can_merge``).

    >>> class OnMarker(Trigger):
    ...     def on_element(self, element, timestamp, window, ctx):
    ...         return TriggerResult.FIRE_AND_PURGE if element == "end" else TriggerResult.CONTINUE
    ...     def on_processing_time(self, time, window, ctx):
    ...         return TriggerResult.CONTINUE
    ...     def on_event_time(self, time, window, ctx):
    ...         return TriggerResult.CONTINUE
    ...     def on_merge(self, window, ctx):
    ...         pass
    ...     def clear(self, window, ctx):
    ...         pass
    >>> OnMarker().can_merge()
    False
    """

    class TriggerContext(ABC):
        """Time, timers and state of the current key and window."""

        @abstractmethod
        def get_current_processing_time(self) -> int: ...

        @abstractmethod
        def get_metric_group(self) -> Any: ...

        @abstractmethod
        def get_current_watermark(self) -> int: ...

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None: ...

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None: ...

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None: ...

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None: ...

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any: ...

    class OnMergeContext(TriggerContext):
        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Merges the state of all windows that were merged into the new window's."""

    @abstractmethod
    def on_element(
        self, element: T, timestamp: int, window: W, ctx: TriggerContext
    ) -> TriggerResult:
        """Called when a record was added to the window."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """Called when a processing-time timer is due."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """Called when an event-time timer is due."""

    def can_merge(self) -> bool:
        """Whether the trigger supports windows that merge: ``on_merge`` then merges its state and
        timers."""
        return False

    @abstractmethod
    def on_merge(self, window: W, ctx: OnMergeContext) -> None:
        """Called when several windows have been merged into this one."""

    @abstractmethod
    def clear(self, window: W, ctx: TriggerContext) -> None:
        """Called when the window ends: remove its state and timers."""


class _BaseTrigger(Trigger[Any, W]):
    """Does nothing, except what a subclass overrides."""

    def on_element(
        self, element: object, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return CONTINUE

    def on_processing_time(
        self, time: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return CONTINUE

    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        return CONTINUE

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        pass

    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        pass

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class NeverTrigger(_BaseTrigger[GlobalWindow]):
    """Never fires.

    >>> NeverTrigger()
    NeverTrigger()
    """


class EndOfStreamTrigger(_BaseTrigger[GlobalWindow]):
    """Fires when the input has ended.

    >>> EndOfStreamTrigger()
    EndOfStreamTrigger()
    """

    def on_element(
        self, element: object, timestamp: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        ctx.register_event_time_timer(window.max_timestamp())
        return CONTINUE

    def on_event_time(
        self, time: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return FIRE_AND_PURGE if time == window.max_timestamp() else CONTINUE


class EventTimeTrigger(_BaseTrigger[TimeWindow]):
    """Fires when the watermark reaches the window's end, and again for every late record.

    >>> EventTimeTrigger.create()
    EventTimeTrigger()
    """

    @staticmethod
    def create() -> EventTimeTrigger:
        return EventTimeTrigger()

    def on_element(
        self, element: object, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return CONTINUE

    def on_event_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return FIRE if time == window.max_timestamp() else CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        # If the watermark has passed the window's end, on_element fires for the record that caused
        # the merge.
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(_BaseTrigger[TimeWindow]):
    """Fires when the machine's clock reaches the window's end.

    >>> ProcessingTimeTrigger.create()
    ProcessingTimeTrigger()
    """

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        return ProcessingTimeTrigger()

    def on_element(
        self, element: object, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return CONTINUE

    def on_processing_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())


class CountTrigger(_BaseTrigger[Any]):
    """Fires each time another ``window_size`` records have come.

    >>> CountTrigger.of(100)
    CountTrigger(100)
    """

    def __init__(self, window_size: int) -> None:
        self._size = positive(window_size, "CountTrigger: the number of records")
        self._count = ReducingStateDescriptor("count", add, Types.LONG())

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        return CountTrigger(window_size)

    def on_element(
        self, element: object, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        count = ctx.get_partitioned_state(self._count)
        count.add(1)
        if count.get() < self._size:
            return CONTINUE
        count.clear()
        return FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._count)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._count).clear()

    def __repr__(self) -> str:
        return f"CountTrigger({self._size})"


class _ContinuousTrigger(_BaseTrigger[TimeWindow]):
    """Fires at multiples of ``interval`` milliseconds while the window has records. The next time
    is kept as state per window."""

    def __init__(self, interval: int) -> None:
        self.interval = positive(interval, f"{type(self).__name__}: the interval (milliseconds)")
        self._next = ReducingStateDescriptor("fire-time", min, Types.LONG())

    @abstractmethod
    def register(self, time: int, ctx: Trigger.TriggerContext) -> None:
        """Registers a timer in this trigger's time domain."""

    @abstractmethod
    def delete(self, time: int, ctx: Trigger.TriggerContext) -> None: ...

    def begin(self, now: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        """Registers the first timer, when the window's first record comes."""
        state = ctx.get_partitioned_state(self._next)
        if state.get() is None:
            self.register_next_fire_timestamp(now - now % self.interval, window, ctx, state)

    def on_timer(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fires if this is the registered time."""
        state = ctx.get_partitioned_state(self._next)
        if state.get() != time:
            return CONTINUE
        state.clear()
        if time < window.max_timestamp():
            self.register_next_fire_timestamp(time, window, ctx, state)
        return FIRE

    def register_next_fire_timestamp(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext, fire_timestamp_state: Any
    ) -> None:
        """Registers a timer one interval after ``time``, but not after the window's end."""
        following = min(time + self.interval, window.max_timestamp())
        fire_timestamp_state.add(following)
        self.register(following, ctx)

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._next)
        following = ctx.get_partitioned_state(self._next).get()
        if following is not None:
            self.register(following, ctx)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        state = ctx.get_partitioned_state(self._next)
        following = state.get()
        if following is not None:
            self.delete(following, ctx)
            state.clear()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.interval})"


class ContinuousEventTimeTrigger(_ContinuousTrigger):
    """Fires every interval of event time, and at the window's end.

    >>> from flinkpy.common.time import Time
    >>> ContinuousEventTimeTrigger.of(Time.minutes(1))
    ContinuousEventTimeTrigger(60000)
    """

    @staticmethod
    def of(interval: Span) -> ContinuousEventTimeTrigger:
        return ContinuousEventTimeTrigger(milliseconds_of(interval, "the interval"))

    def register(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.register_event_time_timer(time)

    def delete(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(time)

    def on_element(
        self, element: object, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        self.begin(timestamp, window, ctx)
        return CONTINUE

    def on_event_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return FIRE if time == window.max_timestamp() else self.on_timer(time, window, ctx)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        super().clear(window, ctx)
        ctx.delete_event_time_timer(window.max_timestamp())


class ContinuousProcessingTimeTrigger(_ContinuousTrigger):
    """Fires every interval of the machine's clock, and at the window's end.

    >>> from flinkpy.common.time import Time
    >>> ContinuousProcessingTimeTrigger.of(Time.seconds(5))
    ContinuousProcessingTimeTrigger(5000)
    """

    @staticmethod
    def of(interval: Span) -> ContinuousProcessingTimeTrigger:
        return ContinuousProcessingTimeTrigger(milliseconds_of(interval, "the interval"))

    def register(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.register_processing_time_timer(time)

    def delete(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(time)

    def on_element(
        self, element: object, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        self.begin(ctx.get_current_processing_time(), window, ctx)
        return CONTINUE

    def on_processing_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return self.on_timer(time, window, ctx)


class DeltaTrigger(_BaseTrigger[Any]):
    """Fires when a record differs by more than ``threshold`` from the record at the last firing:
    ``delta_function(old, new)``. The window's first record is only remembered.

    >>> DeltaTrigger.of(0.5, lambda old, new: abs(new - old))
    DeltaTrigger(0.5)
    """

    def __init__(self, threshold: float, delta_function: object) -> None:
        self.threshold = threshold_of(threshold, "DeltaTrigger")
        self._delta = delta_of(delta_function)
        self._last = ValueStateDescriptor("last-element")

    @staticmethod
    def of(threshold: float, delta_function: object) -> DeltaTrigger:
        return DeltaTrigger(threshold, delta_function)

    def on_element(
        self, element: object, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        state = ctx.get_partitioned_state(self._last)
        last = state.value()
        if last is None:
            state.update(element)
            return CONTINUE
        if self._delta(last, element) > self.threshold:
            state.update(element)
            return FIRE
        return CONTINUE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._last).clear()

    def __repr__(self) -> str:
        return f"DeltaTrigger({self.threshold})"


class PurgingTrigger(Trigger[Any, Any]):
    """Fires when another trigger does, and each time removes the window's records.

    >>> PurgingTrigger.of(CountTrigger.of(100))
    PurgingTrigger(CountTrigger(100))
    """

    def __init__(self, nested_trigger: Trigger[Any, Any]) -> None:
        if not isinstance(nested_trigger, Trigger):
            raise refuse(f"PurgingTrigger takes a trigger, this is {nested_trigger!r:.80}")
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        return PurgingTrigger(nested_trigger)

    def on_element(
        self, element: object, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"PurgingTrigger({self.nested_trigger!r})"


def _purging(result: TriggerResult) -> TriggerResult:
    return FIRE_AND_PURGE if checked_result(result).is_fire() else result
