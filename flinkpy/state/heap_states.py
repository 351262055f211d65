"""The states of the heap backend that never expire. Each is a view of one dict from key to what is stored, at the current key.

What is called with every record is written out for speed: one look-up and one look at a type, and what cannot be changed in place is stored as it
is (``isolation`` says the same in words).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flinkpy.core.errors import ProgramError
from flinkpy.core.mutability import ATOMS, private_copy
from flinkpy.state.api import AggregatingState, ListState, MapState, ReducingState, State, ValueState, pairs_of
from flinkpy.state.backend import CurrentKey
from flinkpy.state.descriptors import Aggregate
from flinkpy.state.isolation import Kept, adopt, protect, release, reveal

Entries = dict[Any, Any]
ABSENT: Any = object()


class HeapState(State):
    """What they share."""

    __slots__ = ("_current", "_entries", "_get")

    def __init__(self, entries: Entries, current: CurrentKey) -> None:
        self._entries, self._current = entries, current
        self._get = entries.get

    def clear(self) -> None:
        self._entries.pop(self._current.key, None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self._entries)} keys>"


class HeapValueState(HeapState, ValueState[Any]):
    __slots__ = ()

    def value(self) -> Any:
        found = self._get(self._current.key)
        return private_copy(found.value) if type(found) is Kept else found

    def update(self, value: Any) -> None:
        if value is None:
            self._entries.pop(self._current.key, None)
        else:
            self._entries[self._current.key] = value if type(value) in ATOMS else protect(value)


class HeapReducingState(HeapState, ReducingState[Any]):
    __slots__ = ("_reduce",)

    def __init__(self, entries: Entries, current: CurrentKey, reduce: Callable[[Any, Any], Any]) -> None:
        super().__init__(entries, current)
        self._reduce = reduce

    def get(self) -> Any:
        found = self._get(self._current.key)
        return private_copy(found.value) if type(found) is Kept else found

    def add(self, value: Any) -> None:
        atom = type(value) in ATOMS
        if value is None:
            refuse_none(value)
        key = self._current.key
        stored = self._get(key, ABSENT)
        if stored is ABSENT:
            self._entries[key] = value if atom else protect(value)
        else:  # the function gets a value of its own, so what it makes of the two is nobody else's
            result = self._reduce(stored.value if type(stored) is Kept else stored, value if atom else private_copy(value))
            self._entries[key] = result if type(result) in ATOMS else adopt(result)


class HeapAggregatingState(HeapState, AggregatingState[Any, Any]):
    __slots__ = ("_function",)

    def __init__(self, entries: Entries, current: CurrentKey, function: Aggregate) -> None:
        super().__init__(entries, current)
        self._function = function

    def get(self) -> Any:
        stored = self._get(self._current.key, ABSENT)
        return None if stored is ABSENT else result_of(self._function, stored)

    def add(self, value: Any) -> None:
        refuse_none(value)
        key, function = self._current.key, self._function
        stored = self._get(key, ABSENT)
        accumulator = function.create_accumulator() if stored is ABSENT else reveal(stored)
        self._entries[key] = adopt(function.add(private_copy(value), accumulator))


class HeapListState(HeapState, ListState[Any]):
    __slots__ = ()

    def get(self) -> list[Any]:
        return [private_copy(stored.value) if type(stored) is Kept else stored for stored in self._get(self._current.key, ())]

    def add(self, value: Any) -> None:
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


class HeapMapState(HeapState, MapState[Any, Any]):
    __slots__ = ()

    def _found(self) -> dict[Any, Any]:
        found: dict[Any, Any] = self._get(self._current.key) or {}
        return found

    def get(self, key: Any) -> Any:
        found = self._get(self._current.key)
        if found is None:
            return None
        stored = found.get(key)
        return private_copy(stored.value) if type(stored) is Kept else stored

    def contains(self, key: Any) -> bool:
        return key in self._found()

    def put(self, key: Any, value: Any) -> None:
        stored = value if type(value) in ATOMS else protect(value)
        found = self._get(self._current.key)
        if found is None:
            self._entries[self._current.key] = {key: stored}
        else:
            found[key] = stored

    def put_all(self, dict_value: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        for key, value in pairs_of(dict_value):
            self.put(key, value)

    def remove(self, key: Any) -> None:
        found = self._found()
        if found.pop(key, self) is not self and not found:
            self.clear()

    def items(self) -> list[tuple[Any, Any]]:
        return [(key, release(stored)) for key, stored in self._found().items()]

    def keys(self) -> list[Any]:
        return list(self._found())

    def values(self) -> list[Any]:
        return [release(stored) for stored in self._found().values()]

    def is_empty(self) -> bool:
        return not self._found()


def refuse_none(value: Any) -> Any:
    """Gives the value back; None is no element."""
    if value is None:
        raise ProgramError("None cannot be added to state: a state without a value gives None, the two could not be told apart")
    return value


def result_of(function: Aggregate, stored: Any) -> Any:
    """The result as the user gets it: it may be the accumulator itself."""
    result = function.get_result(reveal(stored))
    return private_copy(result) if type(stored) is Kept else result
