"""What assigners and triggers are given, as plain dictionaries and sets."""

from __future__ import annotations

from typing import Any

from flinkpy.core.elements import MIN_TIMESTAMP
from flinkpy.state.descriptors import ReducingStateDescriptor, StateDescriptor
from flinkpy.windowing.assigners import MergingWindowAssigner, WindowAssigner
from flinkpy.windowing.triggers import Trigger
from flinkpy.windowing.windows import TimeWindow, Window


class Cell:
    """A value or reducing state."""

    def __init__(self, cells: dict[Any, Any], name: Any, reduce: Any = None) -> None:
        self._cells = cells
        self._name = name
        self._reduce = reduce

    def value(self) -> Any:
        return self._cells.get(self._name)

    get = value

    def update(self, value: Any) -> None:
        self._cells[self._name] = value

    def add(self, value: Any) -> None:
        before = self.value()
        self.update(value if before is None else self._reduce(before, value))

    def clear(self) -> None:
        self._cells.pop(self._name, None)


class OneKey:
    """The state, timers and clocks of one key; ``of(window)`` is the context a trigger gets for
    it."""

    def __init__(self) -> None:
        self.cells: dict[Any, Any] = {}
        self.event_timers: set[tuple[int, Window]] = set()
        self.processing_timers: set[tuple[int, Window]] = set()
        self.watermark, self.now = MIN_TIMESTAMP, 0

    def of(self, window: Window, merged: tuple[Window, ...] = ()) -> WindowContext:
        return WindowContext(self, window, merged)


class WindowContext(Trigger.OnMergeContext):
    def __init__(self, key: OneKey, window: Window, merged: tuple[Window, ...]) -> None:
        self._key = key
        self._window = window
        self._merged = merged

    def get_current_processing_time(self) -> int:
        return self._key.now

    def get_current_watermark(self) -> int:
        return self._key.watermark

    def get_metric_group(self) -> Any:
        raise NotImplementedError

    def register_processing_time_timer(self, time: int) -> None:
        self._key.processing_timers.add((time, self._window))

    def register_event_time_timer(self, time: int) -> None:
        self._key.event_timers.add((time, self._window))

    def delete_processing_time_timer(self, time: int) -> None:
        self._key.processing_timers.discard((time, self._window))

    def delete_event_time_timer(self, time: int) -> None:
        self._key.event_timers.discard((time, self._window))

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        reduce = (
            state_descriptor.reduce
            if isinstance(state_descriptor, ReducingStateDescriptor)
            else None
        )
        return Cell(self._key.cells, (state_descriptor.name, self._window), reduce)

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        values = [
            self._key.cells.pop((state_descriptor.name, window))
            for window in self._merged
            if (state_descriptor.name, window) in self._key.cells
        ]
        for value in values:
            self.get_partitioned_state(state_descriptor).add(value)


class AssignerContext(WindowAssigner.WindowAssignerContext):
    """The clock, and the state of one key."""

    def __init__(self, now: int = 0) -> None:
        self.now = now
        self.cells: dict[Any, Any] = {}

    def get_current_processing_time(self) -> int:
        return self.now

    def get_runtime_context(self) -> Any:
        return self

    def get_state(self, descriptor: StateDescriptor) -> Cell:
        return Cell(self.cells, descriptor.name)


class Merges(MergingWindowAssigner.MergeCallback[TimeWindow]):
    """What was merged into what."""

    def __init__(self) -> None:
        self.results: dict[TimeWindow, list[TimeWindow]] = {}

    def merge(self, to_be_merged: Any, merge_result: TimeWindow) -> None:
        assert merge_result not in self.results
        self.results[merge_result] = sorted(to_be_merged)
