"""The states of the RocksDB backend. What is read is private already, and what is written becomes
bytes at once, so nothing is copied.

States that expire are those of ``flinkpy.state.states.ttl_states``. Only list and map state differ:
they read and write single elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flinkpy.core.keys import canonical_key
from flinkpy.core.mutability import private_copy
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
from flinkpy.state.rocksdb.entries import EntriesOfKey, ListEntries, MapEntries, ValueEntries
from flinkpy.state.states.entry_states import refuse_none
from flinkpy.state.states.ttl_states import TtlListState, TtlMapState
from flinkpy.state.ttl.stamps import Stamped


class RocksDBState(State):
    """What the states of RocksDB share."""

    def __init__(self, entries: Any, current: CurrentKey) -> None:
        self._entries, self._current = entries, current

    def clear(self) -> None:
        self._entries.discard(self._current.key)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class RocksDBValueState(RocksDBState, ValueState[Any]):
    def __init__(self, entries: ValueEntries, current: CurrentKey) -> None:
        super().__init__(entries, current)
        self._get, self._put = entries.slots.get, entries.slots.put

    def value(self) -> Any:
        return self._get(self._current.key)

    def update(self, value: Any) -> None:
        if value is None:
            self.clear()
        else:
            self._put(self._current.key, value)


class RocksDBReducingState(RocksDBState, ReducingState[Any]):
    def __init__(
        self, entries: ValueEntries, current: CurrentKey, reduce: Callable[[Any, Any], Any]
    ) -> None:
        super().__init__(entries, current)
        self._reduce = reduce

    def get(self) -> Any:
        return self._entries.get(self._current.key)

    def add(self, value: Any) -> None:
        refuse_none(value)
        key = self._current.key
        found = self._entries.get(key)
        self._entries.put(key, value if found is None else self._reduce(found, private_copy(value)))


class RocksDBAggregatingState(RocksDBState, AggregatingState[Any, Any]):
    def __init__(self, entries: ValueEntries, current: CurrentKey, function: Aggregate) -> None:
        super().__init__(entries, current)
        self._function = function

    def get(self) -> Any:
        key = self._current.key
        return self._function.get_result(self._entries[key]) if key in self._entries else None

    def add(self, value: Any) -> None:
        refuse_none(value)
        key, function = self._current.key, self._function
        accumulator = self._entries[key] if key in self._entries else function.create_accumulator()
        self._entries.put(key, function.add(private_copy(value), accumulator))


class RocksDBListState(RocksDBState, ListState[Any]):
    _entries: ListEntries

    def get(self) -> list[Any]:
        return self._entries.get(self._current.key) or []

    def add(self, value: Any) -> None:
        self._entries.extend(self._current.key, (refuse_none(value),))

    def add_all(self, values: Iterable[Any]) -> None:
        for value in values:
            self.add(value)

    def update(self, values: Iterable[Any] | None) -> None:
        self._entries[self._current.key] = [refuse_none(value) for value in values or ()]


class RocksDBMapState(RocksDBState, MapState[Any, Any]):
    _entries: MapEntries

    def __init__(self, entries: MapEntries, current: CurrentKey) -> None:
        super().__init__(entries, current)
        self._slots = entries.slots

    def get(self, key: Any) -> Any:
        return self._slots.get((self._current.key, canonical_key(key)))

    def contains(self, key: Any) -> bool:
        return self._slots.get((self._current.key, canonical_key(key)), self) is not self

    def put(self, key: Any, value: Any) -> None:
        self._slots.put((self._current.key, canonical_key(key)), value)

    def put_all(self, dict_value: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        for key, value in pairs_of(dict_value):
            self.put(key, value)

    def remove(self, key: Any) -> None:
        self._slots.delete((self._current.key, canonical_key(key)))

    def items(self) -> list[tuple[Any, Any]]:
        return list(self._entries.elements(self._current.key))

    def keys(self) -> list[Any]:
        return [key for key, _ in self.items()]

    def values(self) -> list[Any]:
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        return next(self._entries.elements(self._current.key), None) is None


class RocksDBTtlListState(TtlListState):
    _entries: ListEntries  # type: ignore[assignment]

    def _append(self, stored: list[Stamped]) -> None:
        self._entries.extend(self._current.key, stored)


class RocksDBTtlMapState(TtlMapState):
    _entries: MapEntries  # type: ignore[assignment]

    def _mapping(self) -> Any:
        return EntriesOfKey(self._entries, self._current.key)

    def _settle(self, found: Any, now: int) -> None:
        self._accessed(now)

    def _put(self, key: Any, stamped: Stamped) -> None:
        self._entries.slots.put((self._current.key, key), stamped)
