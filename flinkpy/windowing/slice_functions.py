"""The function of a window behind slices: called with the one value the window's slices were put together to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flinkpy.operators.base import OperatorContext
from flinkpy.operators.errors import user_code_error
from flinkpy.operators.functions import RuntimeContext, S, open_function
from flinkpy.operators.given_out import private
from flinkpy.operators.giving import Results, stamp_new
from flinkpy.state.backend import CurrentKey, KeyedStateBackend
from flinkpy.state.descriptors import StateDescriptor
from flinkpy.windowing.contexts import FunctionContext
from flinkpy.windowing.evaluation import bound_call
from flinkpy.windowing.pages import pages_over, take, write_back
from flinkpy.windowing.window_functions import ProcessAllWindowFunction, ProcessWindowFunction
from flinkpy.windowing.window_state import WindowStates
from flinkpy.windowing.window_timers import WindowTimerService
from flinkpy.windowing.windows import TimeWindow

WINDOW_STATE = "_window state"  # key -> {window: ...}


def can_follow_slices(function: Any) -> bool:
    """Whether slices can serve the function. Not one with a ``clear`` of its own: slices do not know which keys a window had when it goes."""
    bases = (ProcessWindowFunction, ProcessAllWindowFunction)
    return not isinstance(function, bases) or type(function).clear in [base.clear for base in bases]


class _AskedStates(WindowStates):
    """Knows whether the function has asked for any."""

    asked = False

    def _state(self, descriptor: StateDescriptor, wanted: type[StateDescriptor], kind: type[S], call: str) -> S:
        self.asked = True
        return super()._state(descriptor, wanted, kind, call)


class SliceFunction:
    """One operator's window function, with its context and state. Which keys have state of a window is noted, as it goes with the window."""

    def __init__(self, function: Any, keyed: bool, context: OperatorContext, backend: KeyedStateBackend) -> None:
        self._context, self._key, self._window = context, backend.current, CurrentKey()
        self._service = WindowTimerService(context.timers, lambda due: None)
        self._pages = pages_over(backend.engine_values(WINDOW_STATE))
        self._kept: dict[TimeWindow, dict[Any, None]] = {}
        for key in backend.keys(WINDOW_STATE):
            for window in self._pages.get(key) or ():
                self._kept.setdefault(window, {})[key] = None
        open_function(function, context, backend)
        self._states = _AskedStates(self._pages, self._key, self._window)
        self._call = bound_call(function, keyed, FunctionContext(self._service, self._window, self._states, RuntimeContext(context, backend)))

    def evaluate(self, window: TimeWindow, merged: Mapping[Any, Any], watermark: int, results: Results) -> None:
        """For each key what the function makes of its value, with the last moment of the window."""
        self._service.watermark, self._window.key = watermark, window
        call, current, states, last_moment, reuse = self._call, self._key, self._states, window.end - 1, self._context.object_reuse
        try:
            for key, value in merged.items():
                current.key = key
                given = call(key, window, [value])
                if given is not None:
                    results.values.extend(given if reuse else map(private, given))
                    stamp_new(results, last_moment)
                if states.asked and window in (self._pages.get(key) or ()):
                    self._kept.setdefault(window, {})[key] = None
        except Exception as error:
            raise user_code_error(error, self._context) from error

    def forget(self, is_over: Callable[[TimeWindow], bool]) -> None:
        """The state of windows that are over goes."""
        for window in [window for window in self._kept if is_over(window)]:
            for key in self._kept.pop(window):
                take(self._pages, key, window)

    def write_back(self) -> None:
        """State that was looked at returns to a backend that gives copies."""
        write_back(self._pages)
