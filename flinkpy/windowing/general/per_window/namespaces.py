"""State by key and namespace, in the keyed state backend. The namespace is a window, as in Flink: each key has a dict
from window to value.

The heap backend holds these dicts themselves, so changing one is enough. Other backends return copies: a key's dict
is read once per batch, and ``write_back`` stores the dicts that were read.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, TypeAlias

from flinkpy.core.keys import canonical_key

ByWindow: TypeAlias = "dict[Any, Any]"  # of one key: window -> value
NamespacedState: TypeAlias = "dict[Any, ByWindow]"  # key -> window -> value

MISSING = object()  # stands for no value, because None may be a value


class _LoadedState(dict[Any, ByWindow]):
    """The keys read since the last ``write_back``, in canonical form. A key with an empty dict has no state."""

    def __init__(self, values: MutableMapping[Any, ByWindow]) -> None:
        super().__init__()
        self._values = values

    def get(self, key: Any, default: Any = None) -> Any:
        found = super().get(key)
        if found is None:
            found = self._values.get(key) if canonical_key(key) is key else None
            if found is None:
                return default
            self[key] = found
        return found

    def __delitem__(self, key: Any) -> None:
        self[key] = {}

    def __bool__(self) -> bool:
        return True  # the backend may have keys that were not read

    def write_back(self) -> None:
        for key, by_window in self.items():
            if by_window:
                self._values[key] = by_window
            else:
                self._values.pop(key, None)
        self.clear()


def namespaced_state(values: MutableMapping[Any, ByWindow]) -> NamespacedState:
    """State by key and window, over what ``backend.engine_values(name)`` returns."""
    return values if type(values) is dict else _LoadedState(values)


def write_back(state: NamespacedState) -> None:
    """Stores changes. Called at the end of a batch and before a snapshot."""
    if type(state) is _LoadedState:
        state.write_back()


def namespaces_of(state: NamespacedState, key: Any) -> ByWindow:
    """The key's dict, created if there is none. The caller must put a value into it."""
    by_window = state.get(key)
    if by_window is None:
        by_window = state[key] = {}
    return by_window


def remove_namespace(state: NamespacedState, key: Any, window: Any) -> Any:
    """Removes and returns the value for the window; MISSING if there is none."""
    by_window = state.get(key)
    if by_window is None:
        return MISSING
    found = by_window.pop(window, MISSING)
    if not by_window:
        del state[key]
    return found
