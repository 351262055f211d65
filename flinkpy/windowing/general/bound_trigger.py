"""The program's trigger as the window operator calls it: for a window, with its context, and with
its state removed when the window ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.state.backend import CurrentKey
from flinkpy.windowing.general.contexts import TriggerContext
from flinkpy.windowing.general.per_window.namespaces import NamespacedState, remove_namespace
from flinkpy.windowing.triggers import Trigger, TriggerResult

if TYPE_CHECKING:
    from flinkpy.windowing.windows import Window


class BoundTrigger:
    """Each call sets ``window.key``, the window to which the contexts of trigger and window
    function refer. The caller sets the current key."""

    def __init__(
        self,
        trigger: Trigger[Any, Any],
        context: TriggerContext,
        window: CurrentKey,
        state: NamespacedState,
    ) -> None:
        self._trigger = trigger
        self._context = context
        self._window = window
        self._state = state

    def on_element(self, record: object, timestamp: int, window: Window) -> TriggerResult:
        self._window.key = window
        return self._trigger.on_element(record, timestamp, window, self._context)

    def on_timer(self, event_time: bool, time: int, window: Window) -> TriggerResult:
        self._window.key = window
        called = self._trigger.on_event_time if event_time else self._trigger.on_processing_time
        return called(time, window, self._context)

    def on_merge(self, result: object, merged: tuple[Any, ...]) -> None:
        """The windows ``merged`` have become ``result``."""
        self._window.key, self._context.merged = result, merged
        self._trigger.on_merge(result, self._context)

    def clear(self, key: object, window: Window) -> None:
        """Called when the window ends: removes the trigger's state for it."""
        self._window.key = window
        self._trigger.clear(window, self._context)
        if self._state:
            remove_namespace(self._state, key, window)
