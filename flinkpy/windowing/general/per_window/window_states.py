"""State per key and window: the state of triggers, and what a ProcessWindowFunction keeps for a
window.

The states are those of the heap backend, over a view of the current key's state for the window.
Each window has a dict from the state's name to the stored value, so all state of a window is
removed at once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

from flinkpy.core.errors import ProgramError
from flinkpy.operators.function_contexts.keyed_state_store import KeyedStateStore, S
from flinkpy.state.api import State
from flinkpy.state.backend import CurrentKey
from flinkpy.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateKind,
)
from flinkpy.state.state_isolation import adopt, reveal
from flinkpy.state.states.entry_states import (
    HeapAggregatingState,
    HeapListState,
    heap_map_state,
    heap_reducing_state,
    heap_value_state,
)
from flinkpy.windowing.general.per_window.namespaces import (
    NamespacedState,
    namespaces_of,
    remove_namespace,
)

if TYPE_CHECKING:
    from flinkpy.windowing.windows import Window


class _NamedEntries:
    """What the state of one name stores for the current key, by window. It has the methods of a
    dict that the states use."""

    def __init__(self, name: str, state: NamespacedState, key: CurrentKey) -> None:
        self._name = name
        self._state = state
        self._key = key

    def get(self, window: Window, default: object = None) -> Any:
        by_window = self._state.get(self._key.key)
        named = None if by_window is None else by_window.get(window)
        return default if named is None else named.get(self._name, default)

    def __contains__(self, window: Window) -> bool:
        return self.get(window, self) is not self

    def __getitem__(self, window: Window) -> Any:
        return self._state[self._key.key][window][self._name]

    def __setitem__(self, window: Window, stored: object) -> None:
        by_window = namespaces_of(self._state, self._key.key)
        named = by_window.get(window)
        if named is None:
            by_window[window] = {self._name: stored}
        else:
            named[self._name] = stored

    def pop(self, window: Window, default: object = None) -> Any:
        by_window = self._state.get(self._key.key)
        named = None if by_window is None else by_window.get(window)
        if named is None or self._name not in named:
            return default
        stored = named.pop(self._name)
        if not named:
            remove_namespace(self._state, self._key.key, window)
        return stored

    def __len__(self) -> int:
        by_window = self._state.get(self._key.key) or {}
        return sum(self._name in named for named in by_window.values())


class WindowStates(KeyedStateStore):
    """The states of the current key and window."""

    def __init__(self, state: NamespacedState, key: CurrentKey, window: CurrentKey) -> None:
        self._namespaces = state
        self._key = key
        self._window = window
        self._states: dict[str, tuple[StateKind, State]] = {}

    def state(self, descriptor: StateDescriptor) -> State:
        """The state of that descriptor. Raises ProgramError if the name is used for another kind of
        state, or if the descriptor has a time to live."""
        found = self._states.get(descriptor.name)
        if found is None:
            if descriptor.ttl is not None:
                raise ProgramError(
                    f"state {descriptor.name!r} of a window has a time to live: leave it out, "
                    "the state goes with its window"
                )
            found = self._states[descriptor.name] = descriptor.kind, self._make(descriptor)
        if found[0] is not descriptor.kind:
            raise ProgramError(
                f"state {descriptor.name!r} is a {found[0].value}, and cannot be a "
                f"{descriptor.kind.value} too: "
                "give one of them another name"
            )
        return found[1]

    def _state(
        self, descriptor: StateDescriptor, wanted: type[StateDescriptor], kind: type[S], call: str
    ) -> S:
        if not isinstance(descriptor, wanted):
            raise ProgramError(f"{call} takes a {wanted.__name__}, this is {descriptor!r:.80}")
        return cast("S", self.state(descriptor))

    def _make(self, descriptor: StateDescriptor) -> State:
        entries = cast(
            "dict[Any, Any]", _NamedEntries(descriptor.name, self._namespaces, self._key)
        )
        at = self._window
        if isinstance(descriptor, ReducingStateDescriptor):
            return heap_reducing_state(entries, at, descriptor.reduce)
        if isinstance(descriptor, AggregatingStateDescriptor):
            return HeapAggregatingState(entries, at, descriptor.get_agg_function())
        if descriptor.kind is StateKind.LIST:
            return HeapListState(entries, at)
        return (
            heap_value_state(entries, at)
            if descriptor.kind is StateKind.VALUE
            else heap_map_state(entries, at)
        )

    def clear(self) -> None:
        """Clears all states of the current key and window."""
        remove_namespace(self._namespaces, self._key.key, self._window.key)

    def merge(self, descriptor: StateDescriptor, merged: Iterable[Any]) -> None:
        """Merges what the state holds for these windows into the current window's."""
        entries = _NamedEntries(descriptor.name, self._namespaces, self._key)
        windows = dict.fromkeys((self._window.key, *merged))
        parts = [part for part in map(entries.pop, windows) if part is not None]
        if not parts:
            return
        if isinstance(descriptor, ReducingStateDescriptor):
            merge = descriptor.reduce
        elif isinstance(descriptor, AggregatingStateDescriptor):
            merge = descriptor.get_agg_function().merge
        elif isinstance(descriptor, ListStateDescriptor):
            entries[self._window.key] = [stored for part in parts for stored in part]
            return
        else:
            raise ProgramError(
                f"state {descriptor.name!r} of windows that merge is a "
                f"{descriptor.kind.value}, which cannot be merged: "
                "use reducing, aggregating or list state"
            )
        entries[self._window.key] = adopt(reduce(merge, map(reveal, parts)))


class NoWindowState(KeyedStateStore):
    """Takes the place of state per window for windows that merge: raises ProgramError."""

    def _state(
        self, descriptor: StateDescriptor, wanted: type[StateDescriptor], kind: type[S], call: str
    ) -> S:
        raise ProgramError(
            f"state {getattr(descriptor, 'name', descriptor)!r:.80}: there is no state per "
            "window where windows merge; "
            "use global_state()"
        )
