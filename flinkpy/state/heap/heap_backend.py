"""The heap backend: every state one flat dict from key to what is stored.

Flat, and not one dict per key group, because the group would have to be found for every access.
Measured per look-up with text, integer and tuple keys: 29, 17 and 32 ns flat; 970, 520 and 2400 ns
with the hash that is the same in every process; 64, 52 and 76 ns with the group of every key kept
in a dict (which is 100 bytes a key more). So a key's group is computed when a snapshot is written,
once per key and snapshot. Only results of running aggregates may be in a table of numbers
(``running_values``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import partial
from typing import TYPE_CHECKING, Any

from flinkpy.core.clock import Clock, Turns
from flinkpy.metrics.definitions import ENTRIES, STATE_BYTES
from flinkpy.state.backend import StateStatistics
from flinkpy.state.descriptors import StateKind
from flinkpy.state.heap.running_values import RUNNING_RESULT, RunningValues
from flinkpy.state.heap.sampled_sizes import bytes_of_entries
from flinkpy.state.layers.layers import Layers
from flinkpy.state.layers.overlay import View
from flinkpy.state.snapshots.frozen_tables import (
    FrozenEntries,
    FrozenTable,
    GroupsOfKeys,
    Pairs,
    refuse_strays,
)
from flinkpy.state.snapshots.keyed_pieces import FrozenGroups
from flinkpy.state.snapshots.saved_state import FrozenKeyedState
from flinkpy.state.state_isolation import not_saved, settled
from flinkpy.state.states.entry_states import (
    HeapAggregatingState,
    HeapListState,
    HeapState,
    heap_map_state,
    heap_reducing_state,
    heap_value_state,
)
from flinkpy.state.states.incremental_cleanup import Cleanup, IncrementalCleanup
from flinkpy.state.states.ttl_states import (
    TtlAggregatingState,
    TtlListState,
    TtlMapState,
    TtlReducingState,
    TtlRules,
    ttl_value_state,
)
from flinkpy.state.table_backend import Table, TableBackend

if TYPE_CHECKING:  # it imports numpy
    from flinkpy.state.heap.frozen_numbers import NumbersByGroup

# entries, up to which a freeze copies all of a state; an eighth of it where each value is copied
# too
COPIED_AT_ONCE = 1 << 15


class HeapKeyedStateBackend(TableBackend):
    """Keyed state in this process's memory."""

    lasting = {
        StateKind.VALUE: heap_value_state,
        StateKind.LIST: HeapListState,
        StateKind.MAP: heap_map_state,
        StateKind.REDUCING: heap_reducing_state,
        StateKind.AGGREGATING: HeapAggregatingState,
    }
    expiring = {
        StateKind.VALUE: ttl_value_state,
        StateKind.LIST: TtlListState,
        StateKind.MAP: TtlMapState,
        StateKind.REDUCING: TtlReducingState,
        StateKind.AGGREGATING: TtlAggregatingState,
    }

    def __init__(
        self,
        max_parallelism: int,
        groups: range,
        clock: Clock,
        copied_at_once: int = COPIED_AT_ONCE,
        incremental: bool = False,
    ) -> None:
        super().__init__(max_parallelism, groups, clock)
        self._copied_at_once, self._incremental = copied_at_once, incremental
        self._layers: dict[str, Layers] = {}
        # of states that have something left to do after a freeze
        self._unsettled: list[Layers] = []

    def _new_entries(self, name: str, kind: StateKind, expires: bool) -> MutableMapping[Any, Any]:
        return (
            RunningValues(self._copied_at_once)
            if kind is StateKind.ENGINE and name == RUNNING_RESULT
            else {}
        )

    def _cleanup_of(self, table: Table, rules: TtlRules, size: int) -> Cleanup:
        return IncrementalCleanup(
            table.entries, table.form.sweep, size, rules.clock.time_ns, rules.ttl_ns
        )

    def after_records(self, count: int) -> None:
        super().after_records(count)
        if self._unsettled:
            self.between_batches()

    def between_batches(self) -> None:
        for layers in self._unsettled:
            layers.after_batch()
        self._unsettled = [layers for layers in self._unsettled if not layers.is_settled]

    def _keys_of(self, table: Table) -> Iterator[Any]:
        return iter(list(table.entries))

    def freeze(self, in_pieces: bool = False) -> FrozenKeyedState:
        frozen = self._frozen_tables()
        return FrozenGroups(frozen) if in_pieces and self._incremental else frozen

    def _frozen(self, name: str, table: Table, groups_of_keys: GroupsOfKeys) -> FrozenTable:
        entries, dump, keeps = table.entries, table.form.dump, table.keeps()
        if isinstance(entries, RunningValues) and (numbers := entries.freeze_table()) is not None:
            return FrozenNumbers(numbers, self._max_parallelism, self._groups)

        def pairs(of: Pairs) -> Pairs:
            return ((key, dump(stored)) for key, stored in keeps(of))

        frozen = self._freeze_entries(name, table)
        private = (
            partial(_private, name, table.form.private)
            if isinstance(frozen, View) and table.form.private is not None
            else None
        )
        return FrozenEntries(
            frozen, private, pairs, groups_of_keys, len(self._tables) + len(self._regions) > 1
        )

    def _freeze_entries(self, name: str, table: Table) -> Mapping[Any, Any]:
        entries = table.entries
        if isinstance(entries, RunningValues):
            return entries.freeze_entries()
        if table.kind in (StateKind.ENGINE, StateKind.TIMED):
            return settled(name, entries.copy())
        layers = self._layers.get(name)
        if layers is None:
            private = table.form.private
            at_once = self._copied_at_once if private is None else self._copied_at_once // 8
            layers = self._layers[name] = Layers(
                name, entries, partial(_rebind, table), private, at_once
            )
        frozen = layers.freeze()
        if not layers.is_settled and layers not in self._unsettled:
            self._unsettled.append(layers)
        return frozen

    @property
    def statistics(self) -> StateStatistics:
        return StateStatistics(
            {name: len(table.entries) for name, table in self._tables.items()}, self._groups
        )

    def measures(self) -> dict[str, float]:
        tables = self._tables.values()
        return {
            ENTRIES: sum(len(table.entries) for table in tables),
            STATE_BYTES: sum(bytes_of_entries(table.entries) for table in tables),
        }

    def forget_all(self) -> None:
        """Empties every state in place, when a batch job has finished a key."""
        for table in self._tables.values():
            table.entries.clear()

    def close(self) -> None:
        self._tables = {}
        self._layers = {}
        self._unsettled = []


def _private(name: str, copy: Callable[[Any], Any], value: object) -> Any:
    """A copy of a value of the state; ProgramError if it cannot be copied."""
    try:
        return copy(value)
    except Exception as error:
        raise not_saved(name, error) from error


def _rebind(table: Table, entries: Any) -> None:
    """The entries of the table are in this dict from now on."""
    table.entries = entries
    for holder in (table.state, table.cleanup):
        if isinstance(holder, (HeapState, IncrementalCleanup)):
            holder.rebind(entries)


class FrozenNumbers(FrozenTable):
    """A FrozenTable: a table of numbers. Only the group that is being written is made of
    objects."""

    def __init__(
        self, numbers: Callable[[int, Turns], NumbersByGroup], max_parallelism: int, groups: range
    ) -> None:
        self._numbers = numbers
        self._max_parallelism = max_parallelism
        self._groups = groups
        self._by_group: NumbersByGroup | None = None

    def pairs_of(self, group: int, turns: Turns) -> list[tuple[Any, Any]]:
        if self._by_group is None:
            self._by_group = self._numbers(self._max_parallelism, turns)
            refuse_strays(self._by_group.groups, self._groups)
        return self._by_group.entries(group, turns)
