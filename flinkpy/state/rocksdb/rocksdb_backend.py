"""The RocksDB backend: keyed state on local disk, for state that does not fit into memory.

It has the same rules and snapshots as the heap backend, so a job can be saved with one and restored
with the other. The database is opened with the first state, in a folder that ``close`` deletes.
Read on in ``rocksdb_states`` (what the program calls), ``entries`` (a state as a mapping),
``slot_cache`` (what is cached), ``layout`` (where a slot is in the database) and ``database``; for
incremental checkpoints in ``frozen_database`` (its files as pieces of a checkpoint) and
``prepared_database`` (a database made of such pieces)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from flinkpy.core.clock import SYSTEM_CLOCK, Clock, Turns
from flinkpy.core.files.large_bytes import Data
from flinkpy.state.backend import StateStatistics
from flinkpy.state.checkpoints.own_folder import OwnFolder
from flinkpy.state.descriptors import StateKind
from flinkpy.state.held_values import FrozenTogether, HeldValues
from flinkpy.state.rocksdb.database import RocksDBConfig, RocksDBStore, require_rocksdb
from flinkpy.state.rocksdb.entries import Entries, ListEntries, MapEntries, ValueEntries
from flinkpy.state.rocksdb.expiry import RangeCleanup
from flinkpy.state.rocksdb.frozen_database import Contents, FrozenDatabase, SavedTable
from flinkpy.state.rocksdb.layout import HEAD, STATE
from flinkpy.state.rocksdb.prepared_database import PreparedDatabase, open_database
from flinkpy.state.rocksdb.rocksdb_states import (
    RocksDBAggregatingState,
    RocksDBListState,
    RocksDBMapState,
    RocksDBReducingState,
    RocksDBTtlListState,
    RocksDBTtlMapState,
    RocksDBValueState,
)
from flinkpy.state.rocksdb.timed_table import TimedEntriesOnDisk, TimedTable
from flinkpy.state.snapshots.frozen_tables import (
    FrozenTable,
    FrozenTables,
    GroupsOfKeys,
    parts_of,
    refuse_strays,
)
from flinkpy.state.snapshots.keyed_pieces import FrozenGroups
from flinkpy.state.snapshots.keyed_snapshots import StateMeta
from flinkpy.state.snapshots.saved_state import FrozenKeyedState, PreparedPieces
from flinkpy.state.states.incremental_cleanup import Cleanup
from flinkpy.state.states.ttl_states import (
    TtlAggregatingState,
    TtlReducingState,
    TtlRules,
    ttl_value_state,
)
from flinkpy.state.stored_forms import same
from flinkpy.state.table_backend import Pairs, Table, TableBackend
from flinkpy.state.timed_entries import TimedEntries

_SHAPES: Mapping[StateKind, Callable[..., Entries]] = {
    StateKind.LIST: ListEntries,
    StateKind.MAP: MapEntries,
    StateKind.TIMED: TimedTable,
}


class RocksDBKeyedStateBackend(TableBackend):
    """Keyed state in a RocksDB database of its own."""

    lasting = {
        StateKind.VALUE: RocksDBValueState,
        StateKind.LIST: RocksDBListState,
        StateKind.MAP: RocksDBMapState,
        StateKind.REDUCING: RocksDBReducingState,
        StateKind.AGGREGATING: RocksDBAggregatingState,
    }
    expiring = {
        StateKind.VALUE: ttl_value_state,
        StateKind.LIST: RocksDBTtlListState,
        StateKind.MAP: RocksDBTtlMapState,
        StateKind.REDUCING: TtlReducingState,
        StateKind.AGGREGATING: TtlAggregatingState,
    }

    def __init__(
        self, max_parallelism: int, groups: range, clock: Clock, config: RocksDBConfig | None = None
    ) -> None:
        super().__init__(max_parallelism, groups, clock)
        require_rocksdb()
        self._config, self._made = config or RocksDBConfig(), 0
        self._timed = 0  # how many holders of what goes to disk beyond their share there are
        self._held: dict[str, HeldValues] = {}
        self._opened: RocksDBStore | None = None

    @property
    def directory(self) -> str | None:
        """Where the database is, once it is open."""
        return self._opened.directory if self._opened is not None else None

    @property
    def _store(self) -> RocksDBStore:
        if self._opened is None:
            self._opened = RocksDBStore(self._config)
        return self._opened

    def _new_entries(self, name: str, kind: StateKind, expires: bool) -> Entries:
        self._made += 1
        return self._entries(kind, self._store, self._made, name, expires)

    def _entries(
        self, kind: StateKind, store: RocksDBStore, number: int, name: str, expires: bool
    ) -> Entries:
        shape = _SHAPES.get(kind, ValueEntries)
        return shape(store, number, self._max_parallelism, name, expires)

    def held_values(
        self, name: str, rebind: Callable[[Any], None], copy: Callable[[Any], Any]
    ) -> None:
        self._timed += 1
        entries = self.engine_values(name)
        assert isinstance(entries, ValueEntries)
        table, disk = self._tables[name], EngineValuesOnDisk(entries, self._share)
        table.layered = HeldValues(name, disk, rebind, copy, self.layered_from)
        self._held[name] = table.layered

    def timed_entries(self, name: str) -> TimedEntries:
        self._timed += 1
        return TimedEntriesOnDisk(partial(self._timed_table, name), self._groups, self._share)

    def _timed_table(self, name: str, make: bool) -> TimedTable | None:
        """The database is not opened before something has to be written to it."""
        if not make and name not in self._tables:
            return None
        meta = StateMeta(StateKind.TIMED.value, "", False)
        entries: TimedTable = self._table(name, StateKind.TIMED, meta).entries
        return entries

    def _share(self) -> int:
        """What each holder of timed entries may keep in memory."""
        return self._config.objects // max(1, self._timed)

    def _cleanup_of(self, table: Table, rules: TtlRules, size: int) -> Cleanup:
        return RangeCleanup(table.entries.slots, size, rules.clock.time_ns, rules.ttl_ns)

    def _keys_of(self, table: Table) -> Iterator[Any]:
        if isinstance(table.layered, HeldValues):
            return iter(table.layered.keys())
        return iter(table.entries)

    def _fill(self, table: Table, pairs: Iterator[tuple[Any, Any]]) -> None:
        table.entries.fill(pairs)

    def _frozen(self, name: str, table: Table, groups_of_keys: GroupsOfKeys) -> FrozenTable:
        self._refuse_strays(table)
        entries, keeps = table.entries, table.keeps()
        places = entries.slots.places(entries.slots.layout.prefix)
        return FrozenPlaces(places, lambda found: keeps(entries.pairs_at(found)), table.form.dump)

    def freeze(self, in_pieces: bool = False) -> FrozenKeyedState:
        if not (in_pieces and self._config.incremental):
            return super().freeze()
        if self._opened is None:
            return FrozenGroups(self._frozen_tables())
        for table in self._tables.values():
            self._refuse_strays(table)
        # since the cache was written, it is known
        if any(table.entries.slots.is_only_here for table in self._tables.values()):
            return FrozenGroups(self._frozen_tables())
        groups_of_keys = GroupsOfKeys(self._max_parallelism, self._groups)
        regions = FrozenTables(
            self._max_parallelism,
            self._groups,
            self._frozen_regions(groups_of_keys) | self._frozen_memory(groups_of_keys),
        )
        whole = partial(
            whole_snapshot,
            max_parallelism=self._max_parallelism,
            groups=self._groups,
            config=self._config,
        )
        return FrozenDatabase(
            self._opened.frozen_files(), self._contents(self._opened), regions, whole
        )

    def _frozen_memory(self, groups_of_keys: GroupsOfKeys) -> dict[str, Any]:
        """What the database has not, or not as it is now. It is restored over it."""
        return {
            name: (
                self._tables[name].meta,
                FrozenTogether(held.freeze_memory(groups_of_keys, shares_keys=True)),
            )
            for name, held in self._held.items()
        }

    def _contents(self, store: RocksDBStore) -> Contents:
        tables = {}
        for name, table in self._tables.items():
            slots = table.entries.slots
            number = int.from_bytes(slots.layout.prefix, "big")
            tables[name] = SavedTable(
                number, table.meta, table.entries.next_number, slots.forms_differ
            )
        return Contents(self._max_parallelism, self._groups, tables, dict(store.definitions))

    def restore_pieces(self, prepared: PreparedPieces) -> None:
        if not isinstance(prepared, PreparedDatabase) or self._opened is not None:
            super().restore_pieces(prepared)
            return
        self._opened = prepared.store
        self._made = max((saved.number for saved in prepared.tables.values()), default=0)
        for name, saved in prepared.tables.items():
            kind = StateKind(saved.meta.kind)
            entries = self._entries(kind, prepared.store, saved.number, name, saved.meta.expires)
            entries.next_number, entries.slots.forms_differ = saved.next_number, saved.forms_differ
            self._tables[name] = Table(kind, saved.meta, entries)

    def _refuse_strays(self, table: Table) -> None:
        """Checks that all key groups are this subtask's. The first and the last key are enough to
        see it."""
        slots = table.entries.slots
        slots.flush()
        prefix = slots.layout.prefix
        behind = (int.from_bytes(slots.layout.prefix, "big") + 1).to_bytes(
            len(slots.layout.prefix), "big"
        )
        first = next(self._store.scan(prefix), (None,))[0]
        if first is None:
            return
        refuse_strays(
            [group_of(place) for place in (first, self._store.last_before(behind) or first)],
            self._groups,
        )

    @property
    def statistics(self) -> StateStatistics:
        return StateStatistics(Counts(self._tables), self._groups)

    def measures(self) -> dict[str, float]:
        return {} if self._opened is None else self._opened.measures()

    def close(self) -> None:
        self._tables, self._held = {}, {}
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def whole_snapshot(
    folder: OwnFolder,
    contents: Contents,
    regions: bytes,
    max_parallelism: int,
    groups: range,
    config: RocksDBConfig,
) -> bytes:
    """One snapshot, which any backend can restore, of a database in a folder, which is removed, and
    of what was held in other forms."""
    return merged_snapshot(
        open_database(folder, contents, config), regions, max_parallelism, groups, config
    )


def merged_snapshot(
    prepared: PreparedDatabase,
    regions: Data | None,
    max_parallelism: int,
    groups: range,
    config: RocksDBConfig,
) -> bytes:
    """The same of a database that is open, which is closed."""
    backend = RocksDBKeyedStateBackend(max_parallelism, groups, SYSTEM_CLOCK, config)
    try:
        backend.restore_pieces(prepared)
        if regions is not None:
            backend.restore(regions)
        return backend.freeze().write()
    finally:
        backend.close()


class EngineValuesOnDisk:
    """The values of the engine in the database, past the cache."""

    def __init__(self, entries: ValueEntries, memory: Callable[[], int]) -> None:
        self._slots, self.memory = entries.slots, memory

    def is_empty(self) -> bool:
        return next(self._slots.places(self._slots.layout.prefix), None) is None

    def read(self, keys: list[Any]) -> dict[Any, Any]:
        return self._slots.read_all(keys, list(map(self._slots.layout.place, keys)))

    def write(self, entries: Iterable[tuple[Any, Any]]) -> None:
        pairs = list(entries)
        keys, values = [key for key, _ in pairs], [value for _, value in pairs]
        self._slots.write_all(keys, list(map(self._slots.layout.place, keys)), values)

    def remove(self, keys: list[Any]) -> None:
        self._slots.delete_all(list(map(self._slots.layout.place, keys)))

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        return self._slots.scan(self._slots.layout.prefix)

    def freeze(self) -> FrozenTable:
        places = self._slots.places(self._slots.layout.prefix)
        return FrozenPlaces(places, self._slots.decoded, same)


class FrozenPlaces(FrozenTable):
    """A FrozenTable: what was in the database, read while it is written."""

    def __init__(
        self,
        places: Iterator[tuple[bytes, bytes]],
        pairs_at: Callable[[Iterator[tuple[bytes, bytes]]], Pairs],
        dump: Callable[[Any], Any],
    ) -> None:
        self._places = places
        self._pairs_at = pairs_at
        self._dump = dump
        self._next = next(places, None)

    def pairs_of(self, group: int, turns: Turns) -> list[tuple[Any, Any]]:
        dump, found = self._dump, list[tuple[Any, Any]]()
        for part in parts_of(self._pairs_at(self._within(group)), turns):
            found += [(key, dump(stored)) for key, stored in part]
        return found

    def _within(self, group: int) -> Iterator[tuple[bytes, bytes]]:
        found = self._next
        while found is not None and group_of(found[0]) == group:
            yield found
            found = self._next = next(self._places, None)


def group_of(place: bytes) -> int:
    """The key group of a place in the database."""
    return int.from_bytes(place[STATE:HEAD], "big")


class Counts(Mapping[str, int]):
    """How many keys each state holds. They are counted on demand, as keeping a count would mean a
    read for every write."""

    def __init__(self, tables: dict[str, Table]) -> None:
        self._tables = dict(tables)

    def __getitem__(self, name: str) -> int:
        table = self._tables[name]
        if isinstance(table.layered, HeldValues):
            return len(table.layered.keys())
        return len(table.entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)
