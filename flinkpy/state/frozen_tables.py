"""Keyed state as it was at a barrier. It is divided by key group and pickled when it is written, which may be in another thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from flinkpy.core.errors import EngineError, ProgramError
from flinkpy.core.keys import key_group
from flinkpy.core.mutability import could_be_mutated, private_copy
from flinkpy.state.descriptors import StateKind
from flinkpy.state.keyed_snapshots import Group, KeyedSnapshot, StateMeta, dump_groups

REGION = StateMeta(StateKind.REGION.value, "", False)


class FrozenTable(Protocol):
    """One state of all keys."""

    def pairs_of(self, group: int) -> list[tuple[Any, Any]]:
        """The (key, value) pairs of a key group, as they stand in snapshots. Groups are asked for in rising order."""
        ...


class FrozenTables:
    """A FrozenKeyedState: the states of one backend, by name, with what they are."""

    def __init__(self, max_parallelism: int, groups: range, tables: Mapping[str, tuple[StateMeta, FrozenTable]]) -> None:
        self._max_parallelism, self._groups, self._tables = max_parallelism, groups, tables

    def write(self) -> bytes:
        metas = {name: meta for name, (meta, _) in self._tables.items()}
        return KeyedSnapshot(self._max_parallelism, metas, dump_groups(self._by_group())).to_bytes()

    def _by_group(self) -> Iterator[tuple[int, Group]]:
        for number in self._groups:
            group = {name: pairs for name, (_, table) in self._tables.items() if (pairs := table.pairs_of(number))}
            if group:
                yield number, group


class GroupsOfKeys:
    """The key group of each key, which is computed once however many states hold the key."""

    def __init__(self, max_parallelism: int, groups: range) -> None:
        self._max_parallelism, self._groups = max_parallelism, groups
        self._known: dict[Any, int] = {}

    def divide(self, entries: Mapping[Any, Any], remember: bool) -> dict[int, list[Any]]:
        """The keys by group. EngineError if a key is in no group of this subtask."""
        divided: dict[int, list[Any]] = {}
        known, max_parallelism = self._known, self._max_parallelism
        for key in entries:
            group = known.get(key)
            if group is None:
                group = key_group(key, max_parallelism)
                if remember:
                    known[key] = group
            if group in divided:
                divided[group].append(key)
            else:
                divided[group] = [key]
        refuse_strays(divided, self._groups)
        return divided


def refuse_strays(found: Any, groups: range) -> None:
    """EngineError if one of these groups is not the subtask's."""
    strays = [group for group in found if group not in groups]
    if strays:
        raise EngineError(f"keyed state holds a key of group {strays[0]}, but this subtask owns {groups}: it was not partitioned by it")


class FrozenEntries:
    """Entries in memory, which nobody changes any more. ``dump`` brings a value into the form of snapshots."""

    def __init__(self, entries: Mapping[Any, Any], dump: Callable[[Any], Any], groups_of_keys: GroupsOfKeys, shares_keys: bool) -> None:
        self._entries, self._dump, self._groups_of_keys, self._shares_keys = entries, dump, groups_of_keys, shares_keys
        self._divided: dict[int, list[Any]] | None = None

    def pairs_of(self, group: int) -> list[tuple[Any, Any]]:
        if self._divided is None:
            self._divided = self._groups_of_keys.divide(self._entries, self._shares_keys)
        entries, dump = self._entries, self._dump
        return [(key, dump(entries[key])) for key in self._divided.pop(group, ())]


def settled(name: str, values: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """The values of a state so that nobody changes them any more: copies, where they could be changed in place."""
    if not could_be_mutated(values.values()):
        return values
    try:
        return {key: private_copy(value) for key, value in values.items()}
    except Exception as error:
        raise ProgramError(f"the state of {name!r} cannot be saved: {type(error).__name__}: {error}") from error
