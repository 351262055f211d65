"""Keyed state as it was at a barrier. It is divided by key group and pickled when it is written,
which may be in another thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from flinkpy.core.clock import Turns
from flinkpy.core.errors import EngineError
from flinkpy.core.files.large_bytes import Data
from flinkpy.core.keys import key_groups
from flinkpy.state.descriptors import StateKind
from flinkpy.state.layers.overlay import View, parts_of_entries
from flinkpy.state.snapshots.keyed_snapshots import Group, KeyedEntries, StateMeta

T = TypeVar("T")
Pairs: TypeAlias = Iterable[tuple[Any, Any]]

FrozenRegion: TypeAlias = Mapping[Any, Any] | Callable[[Turns], Mapping[Any, Any]]
Part: TypeAlias = tuple[list[Any], list[Any]]  # keys, and their values

_AT_ONCE = 1 << 10  # entries between two turns
REGION = StateMeta(StateKind.REGION.value, "", False)


class FrozenTable(ABC):
    """One state of all keys."""

    @abstractmethod
    def pairs_of(self, group: int, turns: Turns) -> list[tuple[Any, Any]]:
        """The (key, value) pairs of a key group, as they stand in snapshots. Groups are asked for
        in rising order, and may be large: it gives way between parts of them."""


class FrozenTables:
    """A FrozenKeyedState: the states of one backend, by name, with what they are."""

    def __init__(
        self,
        max_parallelism: int,
        groups: range,
        tables: Mapping[str, tuple[StateMeta, FrozenTable]],
    ) -> None:
        self._max_parallelism = max_parallelism
        self._groups = groups
        self._tables = tables

    def without(self, kind: type[T]) -> tuple[dict[str, T], FrozenTables]:
        """The tables of this kind, and the others."""
        found: dict[str, T] = {}
        for name, (_, table) in self._tables.items():
            if isinstance(table, kind):
                found[name] = table
        others = {name: each for name, each in self._tables.items() if name not in found}
        return found, FrozenTables(self._max_parallelism, self._groups, others)

    def write(self) -> bytes:
        return b"".join(self.chunks())

    def entries(self, turns: Turns | None = None) -> KeyedEntries:
        metas = {name: meta for name, (meta, _) in self._tables.items()}
        return KeyedEntries(self._max_parallelism, metas, self._by_group(turns or Turns()))

    def chunks(self, turns: Turns | None = None) -> Iterator[Data]:
        turns = turns or Turns()
        return self.entries(turns).chunks(turns)

    def _by_group(self, turns: Turns) -> Iterator[tuple[int, Group]]:
        for number in self._groups:
            group = {
                name: pairs
                for name, (_, table) in self._tables.items()
                if (pairs := table.pairs_of(number, turns))
            }
            if group:
                yield number, group


class GroupsOfKeys:
    """The key group of each key, which is computed once however many states hold the key."""

    def __init__(self, max_parallelism: int, groups: range) -> None:
        self._max_parallelism, self._groups = max_parallelism, groups
        self._known: dict[Any, int] = {}

    def divide(self, parts: deque[Part], remember: bool, turns: Turns) -> list[Part]:
        """The keys and values of each group. EngineError if a key is in no group of this
        subtask."""
        divided: list[Part] = [([], []) for _ in range(self._max_parallelism)]
        appends = [(keys.append, values.append) for keys, values in divided]
        while parts:
            # to free all of them at once would hold up other threads
            keys, values = parts.popleft()
            groups = self._remembered(keys) if remember else key_groups(keys, self._max_parallelism)
            for key, value, group in zip(keys, values, groups):
                append_key, append_value = appends[group]
                append_key(key)
                append_value(value)
            turns.give_way()
        refuse_strays([group for group, (keys, _) in enumerate(divided) if keys], self._groups)
        return divided

    def _remembered(self, keys: list[Any]) -> Sequence[int]:
        groups = [self._known.get(key, -1) for key in keys]
        if -1 in groups:
            groups = key_groups(keys, self._max_parallelism)
            self._known.update(zip(keys, groups))
        return groups


def parts_of(items: Iterable[T], turns: Turns) -> Iterator[list[T]]:
    """The items, some at a time, with turns in between."""
    left = iter(items)
    while part := list(islice(left, _AT_ONCE)):
        yield part
        turns.give_way()


def refuse_strays(found: Any, groups: range) -> None:
    """EngineError if one of these groups is not the subtask's."""
    strays = [group for group in found if group not in groups]
    if strays:
        raise EngineError(
            f"keyed state holds a key of group {strays[0]}, but this subtask owns {groups}: "
            "it was not partitioned by it"
        )


class FrozenEntries(FrozenTable):
    """Entries in memory, or a function that gives them. They are copied when they are written, and
    not needed any more from then on. ``private`` gives a copy of a value that could be changed in
    place; ``pairs`` makes pairs of a snapshot of those in memory, or leaves some out."""

    def __init__(
        self,
        entries: FrozenRegion,
        private: Callable[[Any], Any] | None,
        pairs: Callable[[Pairs], Pairs],
        groups_of_keys: GroupsOfKeys,
        shares_keys: bool,
    ) -> None:
        self._entries = entries
        self._private = private
        self._pairs = pairs
        self._groups_of_keys, self._shares_keys = groups_of_keys, shares_keys
        self._divided: list[Part] | None = None

    def pairs_of(self, group: int, turns: Turns) -> list[tuple[Any, Any]]:
        if self._divided is None:
            self._divided = self._groups_of_keys.divide(
                self._copied(turns), self._shares_keys, turns
            )
        (keys, values), self._divided[group] = self._divided[group], ([], [])
        found: list[tuple[Any, Any]] = []
        for start in range(0, len(keys), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            found += self._pairs(zip(keys[part], values[part]))
            turns.give_way()
        return found

    def _copied(self, turns: Turns) -> deque[Part]:
        private, copied = self._private, deque[Part]()
        entries = self._entries(turns) if callable(self._entries) else self._entries
        for keys, values in parts_of_entries(entries, _AT_ONCE):
            copied.append(
                (keys, values if private is None else [private(value) for value in values])
            )
            turns.give_way()
        if isinstance(entries, View):
            entries.check()
        self._entries = {}
        return copied
