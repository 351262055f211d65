"""The heap backend: every state one flat dict from key to what is stored.

Flat, and not one dict per key group, because the group would have to be found for every access. Measured per look-up with text, integer and
tuple keys: 29, 17 and 32 ns flat; 970, 520 and 2400 ns with the hash that is the same in every process; 64, 52 and 76 ns with the group of
every key kept in a dict (which is 100 bytes a key more). So a key's group is computed when a snapshot is written, once per key and snapshot.
What would change this: snapshots that copy only what changed, which need to know the dirty keys of a group. Only results of running aggregates
may be in a table of numbers (``running_values``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from flinkpy.core.errors import EngineError
from flinkpy.core.keys import key_group
from flinkpy.state.backend import StateStatistics
from flinkpy.state.descriptors import StateKind
from flinkpy.state.heap.heap_states import HeapAggregatingState, HeapListState, heap_map_state, heap_reducing_state, heap_value_state
from flinkpy.state.heap.running_values import RUNNING_RESULT, RunningValues
from flinkpy.state.keyed_snapshots import Group, KeyedSnapshot, dump_groups
from flinkpy.state.table_backend import Table, TableBackend
from flinkpy.state.ttl.incremental_cleanup import Cleanup, IncrementalCleanup
from flinkpy.state.ttl.ttl_states import TtlAggregatingState, TtlListState, TtlMapState, TtlReducingState, TtlRules, ttl_value_state

if TYPE_CHECKING:  # it imports numpy
    from flinkpy.state.heap.number_table import NumbersByGroup


class HeapKeyedStateBackend(TableBackend):
    """Keyed state in this process's memory."""

    lasting = {StateKind.VALUE: heap_value_state, StateKind.LIST: HeapListState, StateKind.MAP: heap_map_state,
               StateKind.REDUCING: heap_reducing_state, StateKind.AGGREGATING: HeapAggregatingState}
    expiring = {StateKind.VALUE: ttl_value_state, StateKind.LIST: TtlListState, StateKind.MAP: TtlMapState,
                StateKind.REDUCING: TtlReducingState, StateKind.AGGREGATING: TtlAggregatingState}

    def _new_entries(self, name: str, kind: StateKind, expires: bool) -> MutableMapping[Any, Any]:
        return RunningValues() if kind is StateKind.ENGINE and name == RUNNING_RESULT else {}

    def _cleanup_of(self, table: Table, rules: TtlRules, size: int) -> Cleanup:
        return IncrementalCleanup(table.entries, table.form.sweep, size, rules.clock.time_ns, rules.ttl_ns)

    def _keys_of(self, table: Table) -> Iterator[Any]:
        return iter(list(table.entries))

    def snapshot(self) -> bytes:
        groups: dict[int, Group] = {}
        numbers: dict[str, NumbersByGroup] = {}
        group_of: dict[Any, int] = {}  # each key is hashed once, however many states hold it
        several = sum(bool(table.entries) for table in self._tables.values()) > 1
        for name, table in self._tables.items():
            by_group = table.entries.by_group(self._max_parallelism) if isinstance(table.entries, RunningValues) else None
            if by_group is not None:
                numbers[name] = by_group
                continue
            dump = table.form.dump
            pairs: dict[int, list[tuple[Any, Any]]] = {}
            for key, stored in table.saved(table.entries.items()):
                group = group_of.get(key)
                if group is None:
                    group = key_group(key, self._max_parallelism)
                    if several:
                        group_of[key] = group
                if group in pairs:
                    pairs[group].append((key, dump(stored)))
                else:
                    pairs[group] = [(key, dump(stored))]
            for group, of_group in pairs.items():
                groups.setdefault(group, {})[name] = of_group
        all_groups = _WithNumbers(groups, numbers)
        strays = [group for group in all_groups if group not in self._groups]
        if strays:
            raise EngineError(f"keyed state holds a key of group {strays[0]}, but this subtask owns {self._groups}: it was not partitioned by it")
        return KeyedSnapshot(self._max_parallelism, {name: table.meta for name, table in self._tables.items()}, dump_groups(all_groups)).to_bytes()

    @property
    def statistics(self) -> StateStatistics:
        return StateStatistics({name: len(table.entries) for name, table in self._tables.items()}, self._groups)

    def forget_all(self) -> None:
        """Empties every state in place, when a batch job has finished a key."""
        for table in self._tables.values():
            table.entries.clear()

    def close(self) -> None:
        self._tables = {}


class _WithNumbers(Mapping[int, Group]):
    """The groups of a snapshot. Entries of number tables are added to a group when it is read, so only one group at a time is made of objects."""

    def __init__(self, groups: Mapping[int, Group], numbers: Mapping[str, NumbersByGroup]) -> None:
        self._groups, self._numbers = groups, numbers
        self._all = sorted({*groups, *(group for each in numbers.values() for group in each.groups)})

    def __getitem__(self, group: int) -> Group:
        return {**self._groups.get(group, {}), **{name: entries for name, each in self._numbers.items() if (entries := each.entries(group))}}

    def __iter__(self) -> Iterator[int]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)
