"""States that never expire. Each is a view, at the current key, of one dict
from key to stored value.

Value, reducing and map state are called with every record, so they are closures over their table:
their methods need no attribute of ``self``, and check the usual case first (the key exists, the
value has the same type as the one before)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import PLAIN_KEYS, canonical_key
from flinkpy.core.mutability import ATOMS, private_copy
from flinkpy.state.api import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    State,
    ValueState,
    pairs_of,
)
from flinkpy.state.backend import CurrentKey
from flinkpy.state.descriptors import Aggregate
from flinkpy.state.state_isolation import PrivateCopy, adopt, protect, release, reveal

Entries = dict[Any, Any]
ABSENT: Any = object()


class HeapState(State):
    """What the states of the heap share."""

    __slots__ = ("_current", "_entries", "_get")

    def __init__(self, entries: Entries, current: CurrentKey) -> None:
        self._current = current
        self.rebind(entries)

    def rebind(self, entries: Entries) -> None:
        """From now on it reads and writes this dict."""
        self._entries, self._get = entries, entries.get

    def clear(self) -> None:
        self._entries.pop(self._current.key, None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self._entries)} keys>"


def heap_value_state(entries: Entries, current: CurrentKey) -> ValueState[Any]:
    """A value state."""
    look_up = entries.get
    usual: type | None = None  # the type of the value before, if values of it need no copy

    class HeapValueState(HeapState, ValueState[Any]):
        __slots__ = ()

        def rebind(self, new: Entries) -> None:
            nonlocal entries, look_up
            entries, look_up = new, new.get
            super().rebind(new)

        def value(self) -> Any:
            found = look_up(current.key)
            return private_copy(found.value) if type(found) is PrivateCopy else found

        def update(self, value: object) -> None:
            nonlocal usual
            if type(value) is usual:
                entries[current.key] = value
            elif value is None:
                entries.pop(current.key, None)
            else:
                usual = _atomic_type(value)
                entries[current.key] = protect(value)

    return HeapValueState(entries, current)


def heap_reducing_state(
    entries: Entries, current: CurrentKey, reduce: Callable[[Any, Any], Any]
) -> ReducingState[Any]:
    """A reducing state. The function gets private values, so its result is private too."""
    look_up = entries.get
    usual: type | None = None

    class HeapReducingState(HeapState, ReducingState[Any]):
        __slots__ = ()

        def rebind(self, new: Entries) -> None:
            nonlocal entries, look_up
            entries, look_up = new, new.get
            super().rebind(new)

        def get(self) -> Any:
            found = look_up(current.key)
            return private_copy(found.value) if type(found) is PrivateCopy else found

        def add(self, value: object) -> None:
            nonlocal usual
            key = current.key
            stored = look_up(key, ABSENT)
            if type(value) is not usual:
                usual = _atomic_type(refuse_none(value))
                value = private_copy(value)
            result = (
                value
                if stored is ABSENT
                else reduce(stored.value if type(stored) is PrivateCopy else stored, value)
            )
            entries[key] = result if type(result) is usual else adopt(result)

    return HeapReducingState(entries, current)


class HeapAggregatingState(HeapState, AggregatingState[Any, Any]):
    __slots__ = ("_function",)

    def __init__(self, entries: Entries, current: CurrentKey, function: Aggregate) -> None:
        super().__init__(entries, current)
        self._function = function

    def get(self) -> Any:
        stored = self._get(self._current.key, ABSENT)
        return None if stored is ABSENT else result_of(self._function, stored)

    def add(self, value: object) -> None:
        refuse_none(value)
        key, function = self._current.key, self._function
        stored = self._get(key, ABSENT)
        accumulator = function.create_accumulator() if stored is ABSENT else reveal(stored)
        self._entries[key] = adopt(function.add(private_copy(value), accumulator))


class HeapListState(HeapState, ListState[Any]):
    __slots__ = ()

    def get(self) -> list[Any]:
        return [
            private_copy(stored.value) if type(stored) is PrivateCopy else stored
            for stored in self._get(self._current.key, ())
        ]

    def add(self, value: object) -> None:
        if value is None:
            refuse_none(value)
        stored = value if type(value) in ATOMS else protect(value)
        key = self._current.key
        found = self._get(key)
        if found is None:
            self._entries[key] = [stored]
        else:
            found.append(stored)

    def add_all(self, values: Iterable[Any]) -> None:
        for value in values:
            self.add(value)

    def update(self, values: Iterable[Any] | None) -> None:
        stored = [protect(refuse_none(value)) for value in values or ()]
        if stored:
            self._entries[self._current.key] = stored
        else:
            self.clear()


def heap_map_state(entries: Entries, current: CurrentKey) -> MapState[Any, Any]:
    """A map state: a dict per key, and none for a key without entries. Its keys are equal as keys
    of streams are (``canonical_key``)."""
    look_up = entries.get
    usual: type | None = None
    # the type of the key before, if keys of it need no canonical form
    usual_key: type | None = None

    def found_or_empty() -> dict[Any, Any]:
        return look_up(current.key) or {}

    def known(key: object) -> Any:
        nonlocal usual_key
        usual_key = type(key) if type(key) in PLAIN_KEYS else None
        return canonical_key(key)

    class HeapMapState(HeapState, MapState[Any, Any]):
        __slots__ = ()

        def rebind(self, new: Entries) -> None:
            nonlocal entries, look_up
            entries, look_up = new, new.get
            super().rebind(new)

        def get(self, key: object) -> Any:
            if type(key) is not usual_key:
                key = known(key)
            found = look_up(current.key)
            if found is None:
                return None
            stored = found.get(key)
            return private_copy(stored.value) if type(stored) is PrivateCopy else stored

        def contains(self, key: object) -> bool:
            return known(key) in found_or_empty()

        def put(self, key: object, value: object) -> None:
            nonlocal usual
            if type(value) is not usual:
                usual = _atomic_type(value)
                value = protect(value)
            if type(key) is not usual_key:
                key = known(key)
            found = look_up(current.key)
            if found is None:
                entries[current.key] = {key: value}
            else:
                found[key] = value

        def put_all(self, dict_value: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
            for key, value in pairs_of(dict_value):
                self.put(key, value)

        def remove(self, key: object) -> None:
            found = found_or_empty()
            if found.pop(known(key), ABSENT) is not ABSENT and not found:
                self.clear()

        def items(self) -> list[tuple[Any, Any]]:
            return [(key, release(stored)) for key, stored in found_or_empty().items()]

        def keys(self) -> list[Any]:
            return list(found_or_empty())

        def values(self) -> list[Any]:
            return [release(stored) for stored in found_or_empty().values()]

        def is_empty(self) -> bool:
            return not found_or_empty()

    return HeapMapState(entries, current)


def _atomic_type(value: object) -> type | None:
    """The type of the value, if no value of this type can be changed in place; else None."""
    kind = type(value)
    return kind if kind in ATOMS else None


def refuse_none(value: object) -> Any:
    """Returns the value; ProgramError for None."""
    if value is None:
        raise ProgramError(
            "None cannot be added to state: a state without a value gives None, the two could "
            "not be told apart"
        )
    return value


def result_of(function: Aggregate, stored: object) -> Any:
    """The result as the program gets it: a copy if it may be the accumulator itself."""
    result = function.get_result(reveal(stored))
    return private_copy(result) if type(stored) is PrivateCopy else result
