"""The heap backend: every state one flat dict from key to what is stored.

Flat, and not one dict per key group, because the group would have to be found for every access. Measured per look-up with text, integer and
tuple keys: 29, 17 and 32 ns flat; 970, 520 and 2400 ns with the hash that is the same in every process; 64, 52 and 76 ns with the group of
every key kept in a dict (which is 100 bytes a key more). So a key's group is computed when a snapshot is written, once per key and snapshot.
What would change this: snapshots that copy only what changed, which need to know the dirty keys of a group. Only results of running aggregates
may be in a table of numbers (``running_values``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from flinkpy.state.backend import StateStatistics
from flinkpy.state.descriptors import StateKind
from flinkpy.state.frozen_tables import FrozenEntries, FrozenTable, GroupsOfKeys, refuse_strays, settled
from flinkpy.state.heap.heap_states import HeapAggregatingState, HeapListState, heap_map_state, heap_reducing_state, heap_value_state
from flinkpy.state.heap.running_values import RUNNING_RESULT, RunningValues
from flinkpy.state.stored_forms import same
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

    def _frozen(self, name: str, table: Table, groups_of_keys: GroupsOfKeys) -> FrozenTable:
        entries, kind, dump = table.entries, table.kind, table.form.dump
        if isinstance(entries, RunningValues) and (numbers := entries.freeze_table()) is not None:
            return FrozenNumbers(numbers, self._max_parallelism, self._groups)
        frozen: Mapping[Any, Any]
        if table.full_snapshot or not isinstance(entries, dict):
            frozen = dict(table.keeps()(entries.items()))
        else:
            frozen = entries.copy()
        if kind in (StateKind.LIST, StateKind.MAP):
            frozen = {key: stored.copy() for key, stored in frozen.items()}
        elif kind is StateKind.ENGINE:
            frozen = settled(name, frozen)
        elif kind is not StateKind.VALUE:  # a value is never changed, only replaced; a function may change what it has accumulated
            frozen, dump = settled(name, {key: dump(stored) for key, stored in frozen.items()}), same
        return FrozenEntries(frozen, dump, groups_of_keys, len(self._tables) + len(self._regions) > 1)

    @property
    def statistics(self) -> StateStatistics:
        return StateStatistics({name: len(table.entries) for name, table in self._tables.items()}, self._groups)

    def forget_all(self) -> None:
        """Empties every state in place, when a batch job has finished a key."""
        for table in self._tables.values():
            table.entries.clear()

    def close(self) -> None:
        self._tables = {}


class FrozenNumbers:
    """A FrozenTable: a table of numbers. Only the group that is being written is made of objects."""

    def __init__(self, numbers: Callable[[int], NumbersByGroup], max_parallelism: int, groups: range) -> None:
        self._numbers, self._max_parallelism, self._groups = numbers, max_parallelism, groups
        self._by_group: NumbersByGroup | None = None

    def pairs_of(self, group: int) -> list[tuple[Any, Any]]:
        if self._by_group is None:
            self._by_group = self._numbers(self._max_parallelism)
            refuse_strays(self._by_group.groups, self._groups)
        return self._by_group.entries(group)
