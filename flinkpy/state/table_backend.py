"""What the backends share: one table for each state, found by its name, saved and restored by key
group.

A backend decides what the entries of a table are (a dict, or a view of a database), which state
classes read and write them, and how expired entries are removed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, TypeAlias

from flinkpy.common.time import to_milliseconds
from flinkpy.core.clock import Clock
from flinkpy.core.errors import EngineError, ProgramError
from flinkpy.core.files.large_bytes import Data
from flinkpy.core.keys import canonical_key
from flinkpy.state.api import State
from flinkpy.state.backend import CurrentKey, KeyedStateBackend, RegionEntries
from flinkpy.state.descriptors import (
    AggregatingStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateKind,
)
from flinkpy.state.held_values import HeldValues
from flinkpy.state.layered_values import COPIED_AT_ONCE, LayeredValues
from flinkpy.state.snapshots.arrow_streams import batches_of
from flinkpy.state.snapshots.chunked_regions import ChunkedTable, FrozenChunks, SavedChunks
from flinkpy.state.snapshots.frozen_tables import (
    REGION,
    FrozenEntries,
    FrozenRegion,
    FrozenTable,
    FrozenTables,
    GroupsOfKeys,
)
from flinkpy.state.snapshots.keyed_snapshots import (
    KeyedSnapshot,
    StateMeta,
    check_max_parallelism,
    load_group,
)
from flinkpy.state.snapshots.saved_state import FrozenKeyedState
from flinkpy.state.states.incremental_cleanup import Cleanup
from flinkpy.state.states.ttl_states import TtlRules
from flinkpy.state.stored_forms import Form, form_of, same
from flinkpy.state.ttl.config import StateTtlConfig, StateVisibility, UpdateType
from flinkpy.state.ttl.stamps import NS_PER_MS
from flinkpy.state.type_changes import RULE, carried_out, changed_values

Pairs: TypeAlias = Iterable[tuple[Any, Any]]  # (key, stored)
Frozen: TypeAlias = "dict[str, tuple[StateMeta, FrozenTable]]"  # by name


@dataclass
class Table:
    """One state, for all keys. A restored table has no ``state`` until the program asks for it, and
    is saved again even if it never does."""

    kind: StateKind
    meta: StateMeta
    entries: Any
    state: State | None = None
    rules: TtlRules | None = None
    cleanup: Cleanup | None = None
    every_record: bool = False
    full_snapshot: bool = False
    layered: LayeredValues | HeldValues | None = None

    def __post_init__(self) -> None:
        self.form: Form = form_of(self.kind, self.meta.expires)

    def make_layered(
        self,
        name: str,
        rebind: Callable[[dict[Any, Any]], None],
        copy: Callable[[Any], Any],
        copied_at_once: int,
    ) -> None:
        """From now on its entries, a dict, are frozen without a copy."""

        def rebind_both(entries: dict[Any, Any]) -> None:
            self.entries = entries
            rebind(entries)

        self.layered = LayeredValues(name, self.entries, rebind_both, copy, copied_at_once)

    def keeps(self) -> Callable[[Pairs], Pairs]:
        """What leaves out the pairs that do not go into a snapshot of this moment: those that have
        expired, if the program wants that."""
        if self.rules is None or not self.full_snapshot:
            return lambda pairs: pairs
        deadline, alive = self.rules.deadline(), self.form.alive
        return lambda pairs: (
            (key, left) for key, stored in pairs if (left := alive(stored, deadline)) is not None
        )


class TableBackend(KeyedStateBackend):
    """States by name. ``lasting`` and ``expiring``: the class of each kind of state, without and
    with a time to live."""

    lasting: ClassVar[Mapping[StateKind, Any]]
    expiring: ClassVar[Mapping[StateKind, Any]]
    layered_from: ClassVar[int] = COPIED_AT_ONCE  # keys; fewer engine values are copied at a freeze

    def __init__(self, max_parallelism: int, groups: range, clock: Clock) -> None:
        self.current = CurrentKey()
        self._max_parallelism = max_parallelism
        self._groups = groups
        self._clock = clock
        self._tables: dict[str, Table] = {}
        self._regions: dict[str, RegionEntries | Callable[[], FrozenChunks]] = {}
        # regions that were restored and not registered yet
        self._unclaimed: dict[str, dict[Any, Any]] = {}
        self._unclaimed_chunks: dict[str, list[SavedChunks]] = {}

    @abstractmethod
    def _new_entries(self, name: str, kind: StateKind, expires: bool) -> Any:
        """The empty entries of a new table."""

    def _state_over(self, table: Table, descriptor: StateDescriptor) -> State:
        """The state object that the program gets."""
        function: tuple[Any, ...] = ()
        if isinstance(descriptor, ReducingStateDescriptor):
            function = (descriptor.reduce,)
        elif isinstance(descriptor, AggregatingStateDescriptor):
            function = (descriptor.get_agg_function(),)
        made: State
        if table.rules is None:
            made = self.lasting[descriptor.kind](table.entries, self.current, *function)
        else:
            made = self.expiring[descriptor.kind](
                table.entries, self.current, table.rules, table.cleanup, *function
            )
        return made

    @abstractmethod
    def _cleanup_of(self, table: Table, rules: TtlRules, size: int) -> Cleanup:
        """Removes expired values, looking at ``size`` of them per access."""

    def state(self, descriptor: StateDescriptor) -> State:
        ttl = descriptor.ttl
        table = self._table(
            descriptor.name,
            descriptor.kind,
            StateMeta(descriptor.kind.value, repr(descriptor.type_info), ttl is not None),
        )
        if table.state is None:
            if ttl is not None:
                self._make_expire(table, ttl)
            table.state = self._state_over(table, descriptor)
        return table.state

    def engine_values(self, name: str) -> MutableMapping[Any, Any]:
        entries: MutableMapping[Any, Any] = self._table(
            name, StateKind.ENGINE, StateMeta(StateKind.ENGINE.value, "", False)
        ).entries
        return entries

    def layer_engine_values(
        self, name: str, rebind: Callable[[dict[Any, Any]], None], copy: Callable[[Any], Any]
    ) -> None:
        table = self._tables[name]
        if type(table.entries) is dict:
            table.make_layered(name, rebind, copy, self.layered_from)

    def register_region(self, name: str, entries: RegionEntries) -> Mapping[Any, Any]:
        self._take_tables(self._unclaimed_chunks.pop(name, ()))
        return self._registered(name, entries)

    def register_chunks(self, name: str, entries: Callable[[], FrozenChunks]) -> Iterator[Any]:
        chunks = self._unclaimed_chunks.pop(name, [])
        tables = self._registered(name, entries)
        return chain(
            chain.from_iterable(map(batches_of, tables.values())),
            chain.from_iterable(each.batches() for each in chunks),
        )

    def _registered(
        self, name: str, entries: RegionEntries | Callable[[], FrozenChunks]
    ) -> Mapping[Any, Any]:
        """What was restored as tables."""
        if name in self._regions or name in self._tables:
            raise EngineError(f"there is a state {name!r} already")
        self._regions[name] = entries
        return self._unclaimed.pop(name, {})

    def held_values(
        self, name: str, rebind: Callable[[Any], None], copy: Callable[[Any], Any]
    ) -> None:
        rebind(self.engine_values(name))
        self.layer_engine_values(name, rebind, copy)

    def take_timed(self, name: str) -> Mapping[Any, Mapping[tuple[int, Any], Any]]:
        table = self._tables.pop(name, None)
        return {} if table is None else table.entries

    def _table(self, name: str, kind: StateKind, meta: StateMeta) -> Table:
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = Table(
                kind, meta, self._new_entries(name, kind, meta.expires)
            )
        elif table.meta != meta and not self._takes_over(name, table, meta):
            origin = "is" if table.state is not None else "was saved as"
            raise ProgramError(
                f"state {name!r} {origin} a {table.meta}, and cannot be a {meta} too: give "
                "one of them another name"
            )
        return table

    def _takes_over(self, name: str, table: Table, meta: StateMeta) -> bool:
        """Brings what was saved into the type that the program declares now, if that is the only
        difference. ProgramError if it cannot be done."""
        if table.state is not None or (table.meta.kind, table.meta.expires) != (
            meta.kind,
            meta.expires,
        ):
            return False
        change = changed_values(table.kind, meta.expires, table.meta.type, meta.type)
        if change is None:
            raise ProgramError(
                f"state {name!r} was saved as a {table.meta}, and the program declares a "
                f"{meta}: {RULE}"
            )
        dump, load = table.form.dump, table.form.load
        for key, stored in list(table.entries.items()):
            table.entries[key] = load(carried_out(change, dump(stored), name))
        table.meta = meta
        return True

    def _make_expire(self, table: Table, ttl: StateTtlConfig) -> None:
        table.rules = rules = TtlRules(
            to_milliseconds(ttl.get_ttl()) * NS_PER_MS,
            ttl.get_update_type() is UpdateType.OnReadAndWrite,
            ttl.get_state_visibility() is StateVisibility.ReturnExpiredIfNotCleanedUp,
            self._clock,
        )
        strategies = ttl.get_cleanup_strategies()
        table.full_snapshot = strategies.in_full_snapshot()
        incremental = strategies.get_incremental_cleanup_strategy()
        if incremental is not None:
            table.cleanup = self._cleanup_of(table, rules, incremental.get_cleanup_size())
            table.every_record = incremental.run_cleanup_for_every_record()

    def keys(self, name: str) -> Iterator[Any]:
        table = self._tables.get(name)
        return iter(()) if table is None else self._keys_of(table)

    @abstractmethod
    def _keys_of(self, table: Table) -> Iterator[Any]:
        """All keys at the time of the call."""

    @property
    def expires(self) -> bool:
        return any(table.rules is not None for table in self._tables.values())

    @property
    def counts_records(self) -> bool:
        return any(table.every_record for table in self._tables.values())

    def after_records(self, count: int) -> None:
        for table in self._tables.values():
            if table.every_record and table.cleanup is not None:
                table.cleanup.step(count)
            if table.layered is not None:
                table.layered.after_batch()

    # -- snapshots ---------------------------------------------------------------------------------

    @property
    def has_states(self) -> bool:
        held = (self._tables, self._regions, self._unclaimed, self._unclaimed_chunks)
        return any(held)

    def freeze(self, in_pieces: bool = False) -> FrozenKeyedState:
        return self._frozen_tables()

    def _frozen_tables(self) -> FrozenTables:
        groups_of_keys = GroupsOfKeys(self._max_parallelism, self._groups)
        shares_keys = len(self._tables) + len(self._regions) > 1
        # first: an operator may lay into a table what it has not written yet
        regions = self._frozen_regions(groups_of_keys)
        tables: Frozen = {}
        for name, table in self._tables.items():
            layered = table.layered
            tables[name] = (
                table.meta,
                self._frozen(name, table, groups_of_keys)
                if layered is None
                else layered.freeze(groups_of_keys, shares_keys),
            )
        return FrozenTables(self._max_parallelism, self._groups, tables | regions)

    def _frozen_regions(self, groups_of_keys: GroupsOfKeys) -> Frozen:
        """What operators hold in forms of their own."""
        while self._unclaimed_chunks:  # of an operator that does not ask for them
            self._take_tables(self._unclaimed_chunks.popitem()[1])
        held: dict[str, FrozenRegion | FrozenChunks] = {
            name: entries() for name, entries in self._regions.items()
        } | self._unclaimed
        found: Frozen = {}
        for name, entries in held.items():
            if isinstance(entries, FrozenChunks):
                found[name] = REGION, ChunkedTable(entries)
            else:
                found[name] = REGION, FrozenEntries(entries, None, same, groups_of_keys, True)
        return found

    @abstractmethod
    def _frozen(self, name: str, table: Table, groups_of_keys: GroupsOfKeys) -> FrozenTable:
        """The table as it is now."""

    def restore(self, snapshot: Data) -> None:
        opened = KeyedSnapshot.from_bytes(snapshot)
        check_max_parallelism(opened.max_parallelism, self._max_parallelism)
        for name, meta in opened.states.items():
            if meta == REGION:
                self._unclaimed[name] = {}
                continue
            if name not in self._tables:
                kind = StateKind(meta.kind)
                self._tables[name] = Table(kind, meta, self._new_entries(name, kind, meta.expires))
        for data in opened.within(self._groups).groups.values():
            for name, pairs in load_group(data).items():
                if name in self._unclaimed:
                    self._unclaimed[name].update(
                        (canonical_key(key), saved) for key, saved in pairs
                    )
                    continue
                table = self._tables[name]
                load = table.form.load
                self._fill(table, ((canonical_key(key), load(saved)) for key, saved in pairs))

    def restore_chunks(self, saved: Sequence[SavedChunks]) -> None:
        for each in saved:
            self._unclaimed_chunks.setdefault(each.region, []).append(each)

    def _take_tables(self, saved: Iterable[SavedChunks]) -> None:
        for each in saved:
            tables = self._unclaimed.setdefault(each.region, {})
            tables.update((canonical_key(key), data) for _, (key, data) in each.tables())

    def _fill(self, table: Table, pairs: Iterator[tuple[Any, Any]]) -> None:
        """Stores entries of keys that have none yet."""
        table.entries.update(pairs)

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {count}" for name, count in self.statistics.keys.items())
        return (
            f"<{type(self).__name__} of key groups "
            f"{self._groups.start}-{self._groups.stop - 1}: {counts or 'empty'}>"
        )
