"""The contexts of assigners, triggers, evictors and window functions: the operator's time, timers
and state, for the current key and window.

One object of each class serves all keys and windows of an operator.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flinkpy.operators.function_contexts.keyed_state_store import KeyedStateStore
from flinkpy.operators.functions import RuntimeContext
from flinkpy.state.backend import CurrentKey
from flinkpy.state.descriptors import StateDescriptor
from flinkpy.windowing.assigners import WindowAssigner
from flinkpy.windowing.evictors import Evictor
from flinkpy.windowing.general.per_window.window_states import WindowStates
from flinkpy.windowing.general.per_window.window_timers import WindowTimerService
from flinkpy.windowing.triggers import Trigger
from flinkpy.windowing.window_functions import ProcessAllWindowFunction, ProcessWindowFunction


class AssignerContext(WindowAssigner.WindowAssignerContext):
    def __init__(self, service: WindowTimerService, runtime_context: RuntimeContext) -> None:
        self._service, self._runtime_context = service, runtime_context

    def get_current_processing_time(self) -> int:
        return self._service.now_ms()

    def get_runtime_context(self) -> RuntimeContext:
        return self._runtime_context


class TriggerContext(Trigger.OnMergeContext):
    """``window.key`` is the current window; ``merged`` are the windows that have just been merged
    into it."""

    def __init__(
        self,
        service: WindowTimerService,
        key: CurrentKey,
        window: CurrentKey,
        states: WindowStates,
        runtime_context: RuntimeContext,
    ) -> None:
        self._service = service
        self._key = key
        self._window = window
        self._states = states
        self._runtime_context = runtime_context
        self.merged: Iterable[Any] = ()

    def get_current_processing_time(self) -> int:
        return self._service.now_ms()

    def get_current_watermark(self) -> int:
        return self._service.watermark

    def get_metric_group(self) -> Any:
        return self._runtime_context.get_metrics_group()

    def register_processing_time_timer(self, time: int) -> None:
        self._service.add_processing(time, self._key.key, self._window.key)

    def register_event_time_timer(self, time: int) -> None:
        self._service.event.add(time, self._key.key, self._window.key)

    def delete_processing_time_timer(self, time: int) -> None:
        self._service.processing.remove(time, self._key.key, self._window.key)

    def delete_event_time_timer(self, time: int) -> None:
        self._service.event.remove(time, self._key.key, self._window.key)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        return self._states.state(state_descriptor)

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        self._states.merge(state_descriptor, self.merged)


class EvictorContext(Evictor.EvictorContext):
    def __init__(self, service: WindowTimerService) -> None:
        self._service = service

    def get_current_processing_time(self) -> int:
        return self._service.now_ms()

    def get_current_watermark(self) -> int:
        return self._service.watermark


class FunctionContext(ProcessWindowFunction.Context, ProcessAllWindowFunction.Context):
    """The context of both kinds of process window functions."""

    def __init__(
        self,
        service: WindowTimerService,
        window: CurrentKey,
        window_state: KeyedStateStore,
        global_state: KeyedStateStore,
    ) -> None:
        self._service = service
        self._window = window
        self._window_state = window_state
        self._global_state = global_state

    def window(self) -> Any:
        return self._window.key

    def current_processing_time(self) -> int:
        return self._service.now_ms()

    def current_watermark(self) -> int:
        return self._service.watermark

    def window_state(self) -> KeyedStateStore:
        return self._window_state

    def global_state(self) -> KeyedStateStore:
        return self._global_state
