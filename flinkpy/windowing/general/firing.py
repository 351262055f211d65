"""Windows that fire are evaluated, when a trigger says so or a timer is due, and windows that end are removed.

A window's function may yield without end. What it has yielded so far goes on, and the operator parks (``flinkpy.operators.process.parking``); what
is left to do for the window (its evictor, its purge, its end) is done when the function is through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flinkpy.core.elements import MAX_TIMESTAMP
from flinkpy.operators.base import Work
from flinkpy.state.backend import CurrentKey
from flinkpy.windowing.general.bound_trigger import BoundTrigger
from flinkpy.windowing.general.contents import StoredContents
from flinkpy.windowing.general.evaluation import Evaluation
from flinkpy.windowing.general.per_window.namespaces import MISSING, NamespacedState, remove_namespace
from flinkpy.windowing.general.per_window.window_timers import Timer
from flinkpy.windowing.general.window_lifetimes import WindowLifetimes
from flinkpy.windowing.general.window_output import WindowOutput
from flinkpy.windowing.general.window_sets import WindowSet
from flinkpy.windowing.triggers import TriggerResult


@dataclass
class WindowFiring:
    """Evaluates and ends the windows of one operator."""

    key: CurrentKey
    window: CurrentKey  # its key is the window that the contexts refer to
    windows: WindowSet
    contents: StoredContents
    window_state: NamespacedState  # what the window function keeps per window
    trigger: BoundTrigger
    lifetimes: WindowLifetimes
    evaluation: Evaluation
    clear: Callable[[], None] | None  # the window function's own, for the current window
    output: WindowOutput
    flush: Callable[[], None]  # passes on what was gathered, and writes state back
    batch_records: int

    # -- by a trigger ----------------------------------------------------------------------------------------------------------

    def act(self, result: TriggerResult, key: Any, window: Any, namespace: Any) -> Work:
        """Does what the trigger says, which is not CONTINUE. ``namespace``: the window its contents are kept under."""
        if result is not TriggerResult.PURGE:
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
        """Passes on what a function yields while it yields. Changed state is written back only when the window is through."""
        evaluation, output = self.evaluation, self.output
        try:
            while evaluation.rest is not None:
                output.emit_results()
                yield
                evaluation.go_on(output.results)
        finally:
            evaluation.rest = None  # closes a generator that will not be asked again

    # -- by a timer ------------------------------------------------------------------------------------------------------------

    def fire_by_trigger(self, due: Iterator[tuple[int, Timer]], event_time: bool) -> Work:
        """Timers that are due, earliest first: asks the trigger what is to be done."""
        ends = event_time == self.lifetimes.event_time
        for time, (key, window) in due:
            namespace = self.windows.namespace_of(key, window)
            if namespace is None:
                continue  # a timer that the trigger left behind
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
        """The same for default triggers, whose timers are the end of a window and the end of its life, without asking them."""
        current, at, contents, limit = self.key, self.window, self.contents.state, self.batch_records
        windows, merges, evaluation, clear, window_state = self.windows, self.windows.merges, self.evaluation, self.clear, self.window_state
        lateness, output, results = self.lifetimes.allowed_lateness, self.output, self.output.results
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

    def _forget(self, key: Any, window: Any) -> None:
        """What the window's function keeps for it goes."""
        if self.clear is not None:
            self.clear()
        if self.window_state:
            remove_namespace(self.window_state, key, window)
