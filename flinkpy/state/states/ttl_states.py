"""States whose values expire. Each stored value has the time of its last touch; in list and map
state each element has its own.

Flink's rules: a value expires ``ttl`` after its last write (or read, with OnReadAndWrite). Reading
an expired value removes it; with ReturnExpiredIfNotCleanedUp it is returned that once, and a reduce
or aggregate still builds on it. Reading does not touch expired elements.

Every access reads the clock once. What was changed in place is always stored again, because a
backend may return copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from flinkpy.core.clock import Clock
from flinkpy.core.keys import canonical_key
from flinkpy.core.mutability import ATOMS, private_copy
from flinkpy.state.api import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
    pairs_of,
)
from flinkpy.state.backend import CurrentKey
from flinkpy.state.descriptors import Aggregate
from flinkpy.state.state_isolation import PrivateCopy, adopt, protect, release, reveal
from flinkpy.state.states.entry_states import ABSENT, Entries, HeapState, refuse_none, result_of
from flinkpy.state.states.incremental_cleanup import NO_CLEANUP, Cleanup
from flinkpy.state.ttl.stamps import Stamped


@dataclass(frozen=True, slots=True)
class TtlRules:
    """The rules of a StateTtlConfig, ready for use."""

    ttl_ns: int
    on_read: bool
    give_expired: bool
    clock: Clock

    def deadline(self) -> int:
        """Values last touched at this time or before have expired."""
        return self.clock.time_ns() - self.ttl_ns


class TtlState(HeapState):
    """What states that expire share."""

    __slots__ = ("_cleanup", "_clock", "_give_expired", "_on_read", "_ttl_ns")

    def __init__(
        self, entries: Entries, current: CurrentKey, rules: TtlRules, cleanup: Cleanup | None
    ) -> None:
        super().__init__(entries, current)
        self._cleanup = cleanup or NO_CLEANUP
        self._clock, self._ttl_ns = rules.clock.time_ns, rules.ttl_ns
        self._on_read, self._give_expired = rules.on_read, rules.give_expired

    def _now(self) -> int:
        now = self._current.now_ns
        return self._clock() if now is None else now

    def _accessed(self, now: int) -> None:
        if now >= self._cleanup.quiet_until:
            self._cleanup.step()

    def clear(self) -> None:
        super().clear()
        self._accessed(self._now())

    def _read(self, entries: Entries, key: object, now: int) -> Any:
        """The stored value if the program may see it, or ABSENT. Removes it if it has expired;
        touches it if reading prolongs life."""
        found: Stamped | None = entries.get(key)
        if found is None:
            return ABSENT
        stored, touched = found
        if touched + self._ttl_ns <= now:
            del entries[key]
            return stored if self._give_expired else ABSENT
        if self._on_read:
            entries[key] = stored, now
        return stored

    def _to_build_on(self, now: int) -> Any:
        """The stored value that a new one is combined with, or ABSENT."""
        found: Stamped | None = self._get(self._current.key)
        return (
            found[0]
            if found is not None and (self._give_expired or found[1] + self._ttl_ns > now)
            else ABSENT
        )

    def _write(self, stored: object, now: int) -> None:
        self._entries[self._current.key] = stored, now
        if now >= self._cleanup.quiet_until:
            self._cleanup.step()


def ttl_value_state(
    entries: Entries, current: CurrentKey, rules: TtlRules, cleanup: Cleanup | None
) -> ValueState[Any]:
    """A value state, as a closure for speed like that of the heap."""
    look_up = entries.get
    clock = rules.clock.time_ns
    ttl_ns = rules.ttl_ns
    on_read = rules.on_read
    sweeper = cleanup or NO_CLEANUP

    class TtlValueState(TtlState, ValueState[Any]):
        __slots__ = ()

        def rebind(self, new: Entries) -> None:
            nonlocal entries, look_up
            entries, look_up = new, new.get
            super().rebind(new)

        def value(self) -> Any:
            key, now = current.key, current.now_ns
            if now is None:
                now = clock()
            found = look_up(key)
            stored = None
            if found is not None:
                stored, touched = found
                if touched + ttl_ns <= now or on_read:
                    stored = self._read(entries, key, now)
                    stored = None if stored is ABSENT else stored
            if now >= sweeper.quiet_until:
                sweeper.step()
            return private_copy(stored.value) if type(stored) is PrivateCopy else stored

        def update(self, value: object) -> None:
            if value is None:
                self.clear()
                return
            now = current.now_ns
            if now is None:
                now = clock()
            entries[current.key] = value if type(value) in ATOMS else protect(value), now
            if now >= sweeper.quiet_until:
                sweeper.step()

    return TtlValueState(entries, current, rules, cleanup)


class TtlReducingState(TtlState, ReducingState[Any]):
    __slots__ = ("_reduce",)

    def __init__(
        self,
        entries: Entries,
        current: CurrentKey,
        rules: TtlRules,
        cleanup: Cleanup | None,
        reduce: Callable[[Any, Any], Any],
    ) -> None:
        super().__init__(entries, current, rules, cleanup)
        self._reduce = reduce

    def get(self) -> Any:
        now = self._now()
        stored = self._read(self._entries, self._current.key, now)
        self._accessed(now)
        return None if stored is ABSENT else release(stored)

    def add(self, value: object) -> None:
        refuse_none(value)
        now = self._now()
        stored = self._to_build_on(now)
        self._write(
            protect(value)
            if stored is ABSENT
            else adopt(self._reduce(reveal(stored), private_copy(value))),
            now,
        )


class TtlAggregatingState(TtlState, AggregatingState[Any, Any]):
    __slots__ = ("_function",)

    def __init__(
        self,
        entries: Entries,
        current: CurrentKey,
        rules: TtlRules,
        cleanup: Cleanup | None,
        function: Aggregate,
    ) -> None:
        super().__init__(entries, current, rules, cleanup)
        self._function = function

    def get(self) -> Any:
        now = self._now()
        stored = self._read(self._entries, self._current.key, now)
        self._accessed(now)
        return None if stored is ABSENT else result_of(self._function, stored)

    def add(self, value: object) -> None:
        refuse_none(value)
        now = self._now()
        stored = self._to_build_on(now)
        accumulator = self._function.create_accumulator() if stored is ABSENT else reveal(stored)
        self._write(adopt(self._function.add(private_copy(value), accumulator)), now)


class TtlListState(TtlState, ListState[Any]):
    __slots__ = ()

    def get(self) -> list[Any]:
        now, key = self._now(), self._current.key
        deadline = now - self._ttl_ns
        found: list[Stamped] = self._get(key) or []
        alive = [element for element in found if element[1] > deadline]
        seen = [release(stored) for stored, _ in (found if self._give_expired else alive)]
        if not alive:
            self._entries.pop(key, None)
        elif self._on_read:
            self._entries[key] = [(stored, now) for stored, _ in alive]
        elif len(alive) < len(found):
            self._entries[key] = alive
        self._accessed(now)
        return seen

    def _append(self, stored: list[Stamped]) -> None:
        self._entries.setdefault(self._current.key, []).extend(stored)

    def add(self, value: object) -> None:
        self.add_all((value,))

    def add_all(self, values: Iterable[Any]) -> None:
        now = self._now()
        stored = [(protect(refuse_none(value)), now) for value in values]
        if stored:
            self._append(stored)
        self._accessed(now)

    def update(self, values: Iterable[Any] | None) -> None:
        self._entries.pop(self._current.key, None)
        self.add_all(values or ())


class TtlMapState(TtlState, MapState[Any, Any]):
    __slots__ = ()

    def _mapping(self) -> Entries:
        found: Entries = self._get(self._current.key) or {}
        return found

    def _settle(self, found: Entries, now: int) -> None:
        """Removes an empty mapping."""
        if not found:
            self._entries.pop(self._current.key, None)
        self._accessed(now)

    def _seen(self, key: object) -> Any:
        found, now = self._mapping(), self._now()
        stored = self._read(found, canonical_key(key), now)
        self._settle(found, now)
        return stored

    def _all_seen(self) -> list[tuple[Any, Any]]:
        found, now = self._mapping(), self._now()
        seen = [
            (key, stored)
            for key in list(found)
            if (stored := self._read(found, key, now)) is not ABSENT
        ]
        self._settle(found, now)
        return seen

    def get(self, key: object) -> Any:
        stored = self._seen(key)
        return None if stored is ABSENT else release(stored)

    def contains(self, key: object) -> bool:
        return self._seen(key) is not ABSENT

    def put(self, key: object, value: object) -> None:
        now = self._now()
        self._put(canonical_key(key), (protect(value), now))
        self._accessed(now)

    def _put(self, key: object, stamped: Stamped) -> None:
        self._entries.setdefault(self._current.key, {})[key] = stamped

    def put_all(self, dict_value: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        for key, value in pairs_of(dict_value):
            self.put(key, value)

    def remove(self, key: object) -> None:
        found = self._mapping()
        found.pop(canonical_key(key), None)
        self._settle(found, self._now())

    def items(self) -> list[tuple[Any, Any]]:
        return [(key, release(stored)) for key, stored in self._all_seen()]

    def keys(self) -> list[Any]:
        return [key for key, _ in self._all_seen()]

    def values(self) -> list[Any]:
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        deadline = self._now() - self._ttl_ns
        return not any(
            self._give_expired or touched > deadline for _, touched in self._mapping().values()
        )
