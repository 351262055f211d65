"""The function of a window behind slices: called with the one value the window's slices were put
together to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from flinkpy.operators.base import StreamOperator, Work
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.function_contexts.keyed_state_store import S
from flinkpy.operators.functions import RuntimeContext, open_function
from flinkpy.operators.yielding import Moment, emit_results
from flinkpy.state.backend import CurrentKey, KeyedStateBackend
from flinkpy.state.descriptors import StateDescriptor
from flinkpy.windowing.general.contexts import FunctionContext
from flinkpy.windowing.general.evaluation import bound_call
from flinkpy.windowing.general.per_window.namespaces import namespaced_state, remove_namespace
from flinkpy.windowing.general.per_window.window_states import WindowStates
from flinkpy.windowing.general.per_window.window_timers import WindowTimers, WindowTimerService
from flinkpy.windowing.slices.store import Evaluated
from flinkpy.windowing.window_functions import ProcessAllWindowFunction, ProcessWindowFunction
from flinkpy.windowing.windows import TimeWindow

WINDOW_STATE = "_window state"  # key -> {window: ...}


def can_follow_slices(function: object) -> bool:
    """Whether slices can serve the function. Not one with a ``clear`` of its own: slices do not
    know which keys a window had when it goes."""
    bases = (ProcessWindowFunction, ProcessAllWindowFunction)
    return not isinstance(function, bases) or type(function).clear in [base.clear for base in bases]


class _AskedStates(WindowStates):
    """Knows whether the function has asked for any."""

    asked = False

    def _state(
        self, descriptor: StateDescriptor, wanted: type[StateDescriptor], kind: type[S], call: str
    ) -> S:
        self.asked = True
        return super()._state(descriptor, wanted, kind, call)


class SliceFunction:
    """One operator's window function, with its context and state. Which keys have state of a window
    is noted, as it goes with the window."""

    def __init__(
        self, function: object, keyed: bool, context: OperatorContext, backend: KeyedStateBackend
    ) -> None:
        self._key, self._window = backend.current, CurrentKey()
        self._service = WindowTimerService(
            context.timers, lambda due: None, WindowTimers(), WindowTimers()
        )
        self._state = namespaced_state(backend, WINDOW_STATE)
        self._kept: dict[TimeWindow, dict[Any, None]] = {}
        for key in backend.keys(WINDOW_STATE):
            for window in self._state.get(key) or ():
                self._kept.setdefault(window, {})[key] = None
        open_function(function, context, backend)
        self._states = _AskedStates(self._state, self._key, self._window)
        self._call = bound_call(
            function,
            keyed,
            FunctionContext(
                self._service, self._window, self._states, RuntimeContext(context, backend)
            ),
        )

    def evaluate(
        self, windows: Iterable[Evaluated], watermark: int, operator: StreamOperator
    ) -> Work:
        """Emits what the function makes of each key's value in each window, with the window's last
        moment."""
        self._service.watermark = watermark
        stamps = iter(lambda: self._window.key.end - 1, None)
        yield from emit_results(
            self._given,
            self._values(windows),
            stamps,
            Moment(),
            operator,
            endless=True,
            names_record=False,
        )

    def _given(self, found: tuple[Any, TimeWindow, Any], at: Moment) -> Any:
        key, window, value = found
        return self._call(key, window, [value])

    def _values(self, windows: Iterable[Evaluated]) -> Iterator[tuple[Any, TimeWindow, Any]]:
        """One by one: asked for the next, all results of the one before have been given."""
        current, states = self._key, self._states
        for window, merged in windows:
            self._window.key = window
            for key, value in merged.items():
                current.key = key
                yield key, window, value
                if states.asked and window in (self._state.get(key) or ()):
                    self._kept.setdefault(window, {})[key] = None

    def forget(self, is_over: Callable[[TimeWindow], bool]) -> None:
        """The state of windows that are over goes."""
        for window in [window for window in self._kept if is_over(window)]:
            for key in self._kept.pop(window):
                remove_namespace(self._state, key, window)
