"""States whose values expire. What is stored knows when it was last touched; list and map state know it per element.

Flink's rules: a value expires ``ttl`` after its last write (or read, with OnReadAndWrite). Reading one that has expired removes it; with
ReturnExpiredIfNotCleanedUp it is given out that once, and a reduce or aggregate still builds on it. Expired elements are not touched by reads.

What was changed in place is always stored again: the entries may be those of a backend that gives out copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from flinkpy.core.clock import Clock
from flinkpy.core.mutability import ATOMS, private_copy
from flinkpy.state.api import AggregatingState, ListState, MapState, ReducingState, ValueState
from flinkpy.state.backend import CurrentKey
from flinkpy.state.cleanup import Cleanup
from flinkpy.state.descriptors import Aggregate
from flinkpy.state.heap_states import Entries, HeapState, reduced, refuse_none, result_of
from flinkpy.state.isolation import adopt, protect, release, reveal
from flinkpy.state.stamps import Stamped


@dataclass(frozen=True, slots=True)
class TtlRules:
    """What a StateTtlConfig comes down to."""

    ttl_ms: int
    on_read: bool
    give_expired: bool
    clock: Clock

    def now(self) -> int:
        return self.clock.time_ms()

    def deadline(self) -> int:
        """What was last touched then or before has expired."""
        return self.clock.time_ms() - self.ttl_ms

    def expired(self, stamped: Stamped, now: int) -> bool:
        return stamped.touched_ms + self.ttl_ms <= now

    def visible(self, stamped: Stamped, now: int) -> bool:
        return self.give_expired or not self.expired(stamped, now)


class TtlState(HeapState):
    """What they share."""

    __slots__ = ("_cleanup", "_now", "_rules", "_ttl_ms")

    def __init__(self, entries: Entries, current: CurrentKey, rules: TtlRules, cleanup: Cleanup | None) -> None:
        super().__init__(entries, current)
        self._rules, self._cleanup = rules, cleanup
        self._now, self._ttl_ms = rules.clock.time_ms, rules.ttl_ms  # at hand: they are used with every access

    def _accessed(self) -> None:
        if self._cleanup is not None:
            self._cleanup.step()

    def clear(self) -> None:
        super().clear()
        self._accessed()

    def _read(self, entries: Entries, key: Any) -> Stamped | None:
        """The entry, if the user may see it; removed if it has expired, touched if reading does that."""
        found: Stamped | None = entries.get(key)
        if found is None:
            return None
        now = self._now()
        if found.touched_ms + self._ttl_ms <= now:
            del entries[key]
            return found if self._rules.give_expired else None
        if self._rules.on_read:
            found.touched_ms = now
            entries[key] = found
        return found

    def _read_current(self) -> Stamped | None:
        found = self._read(self._entries, self._current.key)
        if self._cleanup is not None:
            self._cleanup.step()
        return found

    def _to_build_on(self) -> Stamped | None:
        """The entry a new value is combined with."""
        found: Stamped | None = self._entries.get(self._current.key)
        return found if found is not None and self._rules.visible(found, self._rules.now()) else None

    def _write(self, stored: Any) -> None:
        self._entries[self._current.key] = Stamped(stored, self._now())
        if self._cleanup is not None:
            self._cleanup.step()


class TtlValueState(TtlState, ValueState[Any]):
    __slots__ = ()

    def value(self) -> Any:
        found = self._read_current()
        return None if found is None else release(found.value)

    def update(self, value: Any) -> None:
        if value is None:
            self.clear()
        else:
            self._write(value if type(value) in ATOMS else protect(value))


class TtlReducingState(TtlState, ReducingState[Any]):
    __slots__ = ("_reduce",)

    def __init__(
        self, entries: Entries, current: CurrentKey, rules: TtlRules, cleanup: Cleanup | None, reduce: Callable[[Any, Any], Any],
    ) -> None:
        super().__init__(entries, current, rules, cleanup)
        self._reduce = reduce

    def get(self) -> Any:
        found = self._read_current()
        return None if found is None else release(found.value)

    def add(self, value: Any) -> None:
        refuse_none(value)
        found = self._to_build_on()
        self._write(protect(value) if found is None else reduced(self._reduce, found.value, value))


class TtlAggregatingState(TtlState, AggregatingState[Any, Any]):
    __slots__ = ("_function",)

    def __init__(
        self, entries: Entries, current: CurrentKey, rules: TtlRules, cleanup: Cleanup | None, function: Aggregate,
    ) -> None:
        super().__init__(entries, current, rules, cleanup)
        self._function = function

    def get(self) -> Any:
        found = self._read_current()
        return None if found is None else result_of(self._function, found.value)

    def add(self, value: Any) -> None:
        refuse_none(value)
        found = self._to_build_on()
        accumulator = self._function.create_accumulator() if found is None else reveal(found.value)
        self._write(adopt(self._function.add(private_copy(value), accumulator)))


class TtlListState(TtlState, ListState[Any]):
    __slots__ = ()

    def get(self) -> list[Any]:
        rules, now, key = self._rules, self._rules.now(), self._current.key
        found: list[Stamped] = self._entries.get(key, [])
        seen = [release(element.value) for element in found if rules.visible(element, now)]
        alive = [element for element in found if not rules.expired(element, now)]
        if rules.on_read:
            for element in alive:
                element.touched_ms = now
        if not alive:
            self._entries.pop(key, None)
        elif rules.on_read or len(alive) < len(found):
            self._entries[key] = alive
        self._accessed()
        return seen

    def _append(self, stored: list[Stamped]) -> None:
        self._entries.setdefault(self._current.key, []).extend(stored)

    def add(self, value: Any) -> None:
        self.add_all((value,))

    def add_all(self, values: Iterable[Any]) -> None:
        now = self._rules.now()
        stored = [Stamped(protect(refuse_none(value)), now) for value in values]
        if stored:
            self._append(stored)
        self._accessed()

    def update(self, values: Iterable[Any] | None) -> None:
        self._entries.pop(self._current.key, None)
        self.add_all(values or ())


class TtlMapState(TtlState, MapState[Any, Any]):
    __slots__ = ()

    def _mapping(self) -> Entries:
        found: Entries = self._entries.get(self._current.key) or {}
        return found

    def _settle(self, found: Entries) -> None:
        """An empty mapping is none."""
        if not found:
            self._entries.pop(self._current.key, None)
        self._accessed()

    def _seen(self, key: Any) -> Stamped | None:
        found = self._mapping()
        stamped = self._read(found, key)
        self._settle(found)
        return stamped

    def _all_seen(self) -> list[tuple[Any, Stamped]]:
        found = self._mapping()
        seen = [(key, stamped) for key in list(found) if (stamped := self._read(found, key)) is not None]
        self._settle(found)
        return seen

    def get(self, key: Any) -> Any:
        stamped = self._seen(key)
        return None if stamped is None else release(stamped.value)

    def contains(self, key: Any) -> bool:
        return self._seen(key) is not None

    def put(self, key: Any, value: Any) -> None:
        self._put(key, Stamped(protect(value), self._rules.now()))
        self._accessed()

    def _put(self, key: Any, stamped: Stamped) -> None:
        self._entries.setdefault(self._current.key, {})[key] = stamped

    def put_all(self, dict_value: Mapping[Any, Any]) -> None:
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        found = self._mapping()
        found.pop(key, None)
        self._settle(found)

    def items(self) -> list[tuple[Any, Any]]:
        return [(key, release(stamped.value)) for key, stamped in self._all_seen()]

    def keys(self) -> list[Any]:
        return [key for key, _ in self._all_seen()]

    def values(self) -> list[Any]:
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        now = self._rules.now()
        return not any(self._rules.visible(stamped, now) for stamped in self._mapping().values())
