"""Windows that merge: when a record joins windows, their contents, trigger state and timers become
those of one window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.windowing.assigners import MergingWindowAssigner
from flinkpy.windowing.general.bound_trigger import BoundTrigger
from flinkpy.windowing.general.contents import StoredContents
from flinkpy.windowing.general.merging_window_set import Merge, MergingWindowSet
from flinkpy.windowing.general.per_window.namespaces import NamespacedState, remove_namespace
from flinkpy.windowing.general.window_lifetimes import WindowLifetimes
from flinkpy.windowing.general.window_sets import Place, WindowSet

if TYPE_CHECKING:
    from flinkpy.windowing.windows import Window

# The name of the state: key -> {window: the window under which its contents are kept}
MERGING_WINDOWS = "_merging windows"


class MergingWindows(WindowSet):
    """The open windows of all keys. For each window, ``state`` has the window under which its
    contents are kept."""

    merges = True

    def __init__(
        self,
        assigner: MergingWindowAssigner[Any, Any],
        state: NamespacedState,
        contents: StoredContents,
        trigger: BoundTrigger,
        lifetimes: WindowLifetimes,
    ) -> None:
        self.state = state
        self._assigner = assigner
        self._contents = contents
        self._trigger = trigger
        self._lifetimes = lifetimes

    def place(self, key: object, window: Window) -> Place | None:
        windows: MergingWindowSet[Any] = MergingWindowSet(self._assigner, self.state.get(key))
        actual, merges = windows.add(window)
        for merge in merges:
            self._merge(key, merge)
        namespace = windows.state_window(actual)
        if self._lifetimes.has_ended(actual):
            windows.retire(actual)
            namespace = None
        if windows.changed:
            if len(windows):
                self.state[key] = windows.snapshot()
            elif key in self.state:
                del self.state[key]
        return None if namespace is None else (actual, namespace)

    def namespace_of(self, key: object, window: Window) -> Any:
        by_window = self.state.get(key)
        return None if by_window is None else by_window.get(window)

    def retire(self, key: object, window: Window) -> None:
        remove_namespace(self.state, key, window)

    def _merge(self, key: object, merge: Merge[Any]) -> None:
        self._lifetimes.refuse_ended(merge.result, self._assigner)
        self._trigger.on_merge(merge.result, merge.merged)
        for window in merge.merged:
            if window != merge.result:
                self._trigger.clear(key, window)
                self._lifetimes.delete_cleanup(key, window)
        self._contents.merge(key, merge.state_window, merge.absorbed)
