"""Evaluates windows when their trigger fires, at a record or a timer, and removes windows that end.

A window's function may yield without end. The results it has yielded are emitted, and the operator
parks (``flinkpy.operators.chain.parking``). What is left to do for the window (evict, purge, end
it) is done when the function has finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flinkpy.core.elements import MAX_TIMESTAMP
from flinkpy.operators.base import Work
from flinkpy.state.backend import CurrentKey
from flinkpy.windowing.general.bound_trigger import BoundTrigger
from flinkpy.windowing.general.contents import StoredContents
from flinkpy.windowing.general.evaluation import Evaluation
from flinkpy.windowing.general.per_window.namespaces import (
    MISSING,
    NamespacedState,
    remove_namespace,
)
from flinkpy.windowing.general.per_window.window_timers import Timer
from flinkpy.windowing.general.window_lifetimes import WindowLifetimes
from flinkpy.windowing.general.window_output import WindowOutput
from flinkpy.windowing.general.window_sets import WindowSet
from flinkpy.windowing.triggers import TriggerResult, checked_result

if TYPE_CHECKING:
    from flinkpy.windowing.windows import Window


@dataclass
class WindowFiring:
    """Evaluates and ends the windows of one operator."""

    key: CurrentKey
    window: CurrentKey  # its key is the window that the contexts refer to
    windows: WindowSet
    contents: StoredContents
    window_state: NamespacedState  # what the window function keeps for each window
    trigger: BoundTrigger
    lifetimes: WindowLifetimes
    evaluation: Evaluation
    clear: Callable[[], None] | None  # the ``clear`` of the window function, for the current window
    output: WindowOutput
    flush: Callable[[], None]  # emits what was gathered, and writes state back
    batch_records: int

    # -- by a trigger ------------------------------------------------------------------------------

    def act(self, result: TriggerResult, key: object, window: Window, namespace: Window) -> Work:
        """Does what the trigger says, which is not CONTINUE. ``namespace`` is the window under
        which the contents are kept."""
        if checked_result(result) is not TriggerResult.PURGE:
            contents = self.contents.get(key, namespace)
            if contents is not MISSING:
                elements = self.evaluation.evaluate(self.output.results, key, window, contents)
                yield from self._go_on()
                left = self.evaluation.left(elements, window)
                if left is not contents:
                    self.contents.replace(key, namespace, left)
        if result is not TriggerResult.FIRE:
            self.contents.remove(key, namespace)

    def _go_on(self) -> Work:
        """Emits what a function yields while it is yielding. Changed state is written back only
        when the window is finished."""
        evaluation, output = self.evaluation, self.output
        try:
            while evaluation.rest is not None:
                output.emit_results()
                yield
                evaluation.go_on(output.results)
        finally:
            evaluation.rest = None  # closes the generator if it did not finish

    # -- by a timer --------------------------------------------------------------------------------

    def fire_by_trigger(self, due: Iterator[tuple[int, Timer]], event_time: bool) -> Work:
        """Handles timers that are due, earliest first: calls the trigger, and does what it says."""
        ends = event_time == self.lifetimes.event_time
        for time, (key, window) in due:
            namespace = self.windows.namespace_of(key, window)
            if namespace is None:
                continue  # the window is gone; the trigger did not delete this timer
            self.key.key = key
            result = self.trigger.on_timer(event_time, time, window)
            if result is not TriggerResult.CONTINUE:
                yield from self.act(result, key, window, namespace)
            if ends and time == self.lifetimes.cleanup_time(window):
                self.contents.remove(key, namespace)
                self.trigger.clear(key, window)
                self._forget(key, window)
                self.windows.retire(key, window)
            if len(self.output.results.values) >= self.batch_records:
                self.flush()
                yield

    def fire_by_default(self, due: Iterator[tuple[int, Timer]]) -> Work:
        """Does the same for default triggers without calling them: their timers are the end of the
        window and the end of its lifetime."""
        current = self.key
        at = self.window
        contents = self.contents.state.mapping
        limit = self.batch_records
        windows = self.windows
        merges = self.windows.merges
        evaluation = self.evaluation
        clear = self.clear
        window_state = self.window_state
        lateness = self.lifetimes.allowed_lateness
        output = self.output
        results = self.output.results
        for time, (key, window) in due:
            namespace = windows.namespace_of(key, window) if merges else window
            of_key = contents.get(key)
            if of_key is None or namespace not in of_key:
                continue
            current.key, at.key = key, window
            last = window[1] - 1  # all these are TimeWindows
            if time == last:
                evaluation.evaluate(results, key, window, of_key[namespace])
                if evaluation.rest is not None:
                    yield from self._go_on()
                    results = output.results
            if time == last + lateness or time == MAX_TIMESTAMP:
                del of_key[namespace]
                if not of_key:
                    del contents[key]
                if clear is not None or window_state:
                    self._forget(key, window)
                if merges:
                    windows.retire(key, window)
            if len(results.values) >= limit:
                self.flush()
                yield
                results = output.results

    def _forget(self, key: object, window: Window) -> None:
        """Removes what the window's function keeps for the window."""
        if self.clear is not None:
            self.clear()
        if self.window_state:
            remove_namespace(self.window_state, key, window)
