"""State by key and namespace, in the keyed state backend. The namespace is a window, as in Flink:
each key has a dict from window to value.

Backends hold these dicts themselves, so changing one is enough."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeAlias

from flinkpy.core.mutability import could_be_mutated, is_safe
from flinkpy.state.backend import KeyedStateBackend

if TYPE_CHECKING:
    from flinkpy.windowing.windows import Window

ByWindow: TypeAlias = "dict[Any, Any]"  # of one key: window -> value

MISSING = object()  # stands for no value, because None may be a value


class NamespacedState:
    """What the heap backend holds: a dict, or after a freeze something that stands for it until all
    of that is written.

    ``mapping`` is for loops over a batch, or over the windows that are due: it is another one after
    the next barrier or batch."""

    __slots__ = ("get", "mapping")
    get: Callable[..., Any]

    def __init__(self, mapping: dict[Any, ByWindow]) -> None:
        self.rebind(mapping)

    def rebind(self, mapping: dict[Any, ByWindow]) -> None:
        self.mapping, self.get = mapping, mapping.get

    def __getitem__(self, key: object) -> ByWindow:
        return self.mapping[key]

    def __setitem__(self, key: object, by_window: ByWindow) -> None:
        self.mapping[key] = by_window

    def __delitem__(self, key: object) -> None:
        del self.mapping[key]

    def __contains__(self, key: object) -> bool:
        return key in self.mapping

    def __bool__(self) -> bool:
        # what stands for a dict would have to look for a key that is left
        return type(self.mapping) is not dict or bool(self.mapping)


def namespaced_state(backend: KeyedStateBackend, name: str) -> NamespacedState:
    """The engine's state of that name by key and window. The operator calls
    ``backend.after_records`` for each batch."""
    held = NamespacedState({})
    backend.held_values(name, held.rebind, copy_of_windows)
    return held


def copy_of_windows(by_window: ByWindow) -> ByWindow:
    """A copy of a key's dict that shares nothing changeable with it.

    >>> contents = {"morning": [1, 2], "noon": (3, 4)}
    >>> copied = copy_of_windows(contents)
    >>> contents["morning"].append(3)
    >>> copied
    {'morning': [1, 2], 'noon': (3, 4)}
    """
    copied: ByWindow = {}
    for window, value in by_window.items():
        kind = type(value)
        if (kind is list and not could_be_mutated(value)) or (
            kind is dict and not could_be_mutated(value.values())
        ):
            copied[window] = value.copy()
        elif is_safe(value):
            copied[window] = value
        else:  # what several windows share stays shared
            memo: dict[int, Any] = {}
            return {window: deepcopy(value, memo) for window, value in by_window.items()}
    return copied


def namespaces_of(state: NamespacedState, key: object) -> ByWindow:
    """The key's dict, created if there is none. The caller must put a value into it."""
    by_window: ByWindow | None = state.get(key)
    if by_window is None:
        by_window = state[key] = {}
    return by_window


def remove_namespace(state: NamespacedState, key: object, window: Window) -> Any:
    """Removes and returns the value for the window; MISSING if there is none."""
    by_window = state.get(key)
    if by_window is None:
        return MISSING
    found = by_window.pop(window, MISSING)
    if not by_window:
        del state[key]
    return found
