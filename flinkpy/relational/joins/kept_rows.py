"""One side of a regular join: its rows, found by the number of their join key.

How a row that goes, or that is replaced, is found depends on what is known of the input. If its
rows are only added, none has to be. If the join key is unique, the key's row is the one. If other
columns are unique, they tell which; else the row is found by all its values, and is kept once with
the number of its copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES, ChangelogMode
from flinkpy.operators.columnar.array_memory import Empty
from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.joins.row_changes import RowChanges, net_of_copies, net_of_versions
from flinkpy.relational.joins.row_identities import (
    ColumnIdentities,
    ContentIdentities,
    JoinKeyIdentities,
    RowIdentities,
)
from flinkpy.relational.relational_operator import with_schema
from flinkpy.relational.state.expiry_of_numbers import Expiry
from flinkpy.relational.state.frozen_chunks import RowsInChunks
from flinkpy.relational.state.multi_map import MultiMap, Numbers, RowsOfKeys, SingleRows, by_key
from flinkpy.relational.state.row_memory import RowMemory
from flinkpy.relational.state.row_store import RowStore
from flinkpy.state.heap.frozen_numbers import FrozenArray

# columns of a snapshot beside those of the rows
PARTNERS, COPIES, WRITTEN = "$partners", "$copies", "$written"


@dataclass(frozen=True)
class JoinInput:
    """What is known of an input of a join. ``unique_keys`` are sets of columns that no two rows
    share; ``changes`` are the kinds of rows that come. After ``ttl_ms`` without being written to a
    row is forgotten; 0: never."""

    schema: pa.Schema
    unique_keys: tuple[tuple[int, ...], ...] = ()
    changes: ChangelogMode = ALL_CHANGES
    ttl_ms: int = 0


def kept_rows(
    input: JoinInput,
    keys: Sequence[int],
    memory: RowMemory,
    *,
    counts_partners: bool,
    is_null_aware: bool = False,
) -> KeptRows:
    """The rows of an input with this join key, in the form that fits. ``counts_partners``: it is
    kept of each row how many partners it has. ``is_null_aware``: all keys with a null have one
    number, so rows of a unique key may share it."""
    store, empty = RowStore(input.schema, memory), memory.arrays.empty
    partners = Grown(np.int32, 0, empty) if counts_partners else None
    if not is_null_aware and any(set(unique) <= set(keys) for unique in input.unique_keys):
        single = SingleRows(empty)
        return VersionedRows(input, store, single, JoinKeyIdentities(single), partners, empty)
    if input.changes.is_insert_only:
        return KeptRows(input, store, MultiMap(empty), partners, empty)
    if input.unique_keys:
        unique = min(input.unique_keys, key=len)
        identities = ColumnIdentities(sorted({*keys, *unique}), empty)
        return VersionedRows(input, store, MultiMap(empty), identities, partners, empty)
    return CountedRows(input, store, partners, empty)


class KeptRows:
    """Rows that are only added. ``empty`` gives arrays."""

    def __init__(
        self,
        input: JoinInput,
        store: RowStore,
        rows_of_keys: RowsOfKeys,
        partners: Grown | None,
        empty: Empty,
    ) -> None:
        self.store = store
        self.partners = partners
        self._rows_of_keys = rows_of_keys
        self._expiry = Expiry(input.ttl_ms, empty) if input.ttl_ms else None

    def __len__(self) -> int:
        return len(self.store)

    # -- what the other side finds here ------------------------------------------------------------

    def counts(self, keys: Numbers) -> Any:
        """How many rows these keys have at most."""
        return self._rows_of_keys.counts(keys)

    def pieces(self, keys: Numbers, now_ms: int) -> Iterator[tuple[Numbers, Numbers]]:
        """Positions of these keys, ascending, and rows that they have; in pieces of bounded
        size."""
        for at, rows in self._rows_of_keys.pieces(keys):
            if self._expiry is None:
                yield at, rows
                continue
            alive = self._expiry.is_alive(rows, now_ms)
            yield at[alive], rows[alive]

    def all(self, now_ms: int) -> Numbers:
        """All rows."""
        rows = self.store.all()
        return rows if self._expiry is None else rows[self._expiry.is_alive(rows, now_ms)]

    def copies_of(self, rows: Numbers) -> Any:
        """How often each of these rows is there; None: once."""
        return None

    def count_partners(self, rows: Numbers, counts: Numbers, now_ms: int) -> None:
        """These rows have so many partners now."""
        assert self.partners is not None
        self.partners.put(rows, counts, self.store.size)
        if self._expiry is not None:
            self._expiry.touch(rows, now_ms)

    # -- changes -----------------------------------------------------------------------------------

    def identified(self, changes: RowChanges) -> RowChanges:
        """The changes with what tells their rows apart."""
        return changes

    def net(self, changes: RowChanges, now_ms: int) -> RowChanges:
        """What a batch changes in the end."""
        return changes

    def replaced(self, changes: RowChanges, now_ms: int) -> Any:
        """For each change the row whose place it takes although nobody has taken that back, or
        -1; None: there is none."""
        return None

    def apply(self, changes: RowChanges, partners: Any, now_ms: int) -> None:
        """Keeps what has come, with so many partners each, and lets go what has gone."""
        self._add(changes, np.flatnonzero(changes.keys >= 0), partners, now_ms)

    def remove(self, changes: RowChanges, rows: Numbers) -> None:
        """Lets rows go, which have these keys and identities."""
        self._rows_of_keys.remove(changes.keys, rows)
        self.store.delete(rows)
        if self._expiry is not None:
            self._expiry.forget(rows)

    def settle(self, changes: RowChanges) -> None:
        """All is done for these changes: forgets identities that have no row."""

    def expired(self, now_ms: int, looks_at: int) -> Numbers:
        """Rows that are to go because nobody has written to them for long."""
        if self._expiry is None:
            return np.empty(0, np.int64)
        found: Numbers = self._expiry.expired(now_ms, looks_at)
        return found

    def _add(self, changes: RowChanges, at: Numbers, partners: Any, now_ms: int) -> Numbers:
        """Keeps the rows at these positions, which are not there yet; gives their numbers."""
        added = changes.taken(at)
        rows = self.store.add(added.data)
        self._rows_of_keys.add(added.keys, rows)
        self._written(rows, None if partners is None else partners[at], now_ms)
        return rows

    def _written(self, rows: Numbers, partners: Any, now_ms: int) -> None:
        if self.partners is not None and len(rows):
            self.partners.put(rows, partners, self.store.size)
        if self._expiry is not None:
            self._expiry.touch(rows, now_ms)

    # -- snapshots ---------------------------------------------------------------------------------

    def freeze(self, keys: Sequence[int], max_parallelism: int) -> RowsInChunks:
        """The rows of now, whose key groups are those of these columns."""
        columns = self._frozen_columns()
        return RowsInChunks(self.store.freeze(), columns, keys, max_parallelism)

    def _frozen_columns(self) -> dict[str, FrozenArray]:
        """What is kept of each row beside its values, by number."""
        found = {}
        if self.partners is not None:
            found[PARTNERS] = self.partners.freeze()
        if self._expiry is not None:
            found[WRITTEN] = self._expiry.freeze()
        return found

    def restore(self, saved: pa.RecordBatch, keys: Numbers, now_ms: int) -> None:
        """Takes back rows of a snapshot, with these keys."""
        data = with_schema(saved.select(self.store.schema.names), self.store.schema)
        rows = self.take_back(RowChanges(data, keys), saved)
        if self.partners is not None:
            self.partners.put(rows, saved_column(saved, PARTNERS, 0), self.store.size)
        if self._expiry is not None:
            self._expiry.set_written(rows, saved_column(saved, WRITTEN, now_ms))

    def take_back(self, changes: RowChanges, saved: pa.RecordBatch) -> Numbers:
        """Adds the rows of a snapshot, and gives their numbers."""
        rows = self.store.add(changes.data)
        self._rows_of_keys.add(changes.keys, rows)
        return rows


class IdentifiedRows(KeptRows):
    """Rows of which each has an identity."""

    def __init__(
        self,
        input: JoinInput,
        store: RowStore,
        rows_of_keys: RowsOfKeys,
        identities: RowIdentities,
        partners: Grown | None,
        empty: Empty,
    ) -> None:
        super().__init__(input, store, rows_of_keys, partners, empty)
        self._identities = identities

    def identified(self, changes: RowChanges) -> RowChanges:
        return changes.with_identities(self._identities.of(changes.data, changes.keys))

    def remove(self, changes: RowChanges, rows: Numbers) -> None:
        if len(rows):
            super().remove(changes, rows)
            self._identities.remove(changes.identities)

    def settle(self, changes: RowChanges) -> None:
        self._identities.settle(changes.identities)

    def _add(self, changes: RowChanges, at: Numbers, partners: Any, now_ms: int) -> Numbers:
        rows = super()._add(changes, at, partners, now_ms)
        self._identities.put(changes.identities[at], rows)
        return rows

    def take_back(self, changes: RowChanges, saved: pa.RecordBatch) -> Numbers:
        changes = self.identified(changes)
        rows = super().take_back(changes, saved)
        self._identities.put(changes.identities, rows)
        return rows


class VersionedRows(IdentifiedRows):
    """Rows with a unique key: one that comes takes the place of the one before."""

    def net(self, changes: RowChanges, now_ms: int) -> RowChanges:
        return net_of_versions(changes, self._alive(changes.identities, now_ms) >= 0)

    def _alive(self, identities: Numbers, now_ms: int) -> Any:
        rows = self._identities.rows(identities)
        if self._expiry is not None:
            at = np.flatnonzero(rows >= 0)
            rows[at[~self._expiry.is_alive(rows[at], now_ms)]] = -1
        return rows

    def replaced(self, changes: RowChanges, now_ms: int) -> Any:
        rows = self._alive(changes.identities, now_ms)
        if not changes.only_adds:
            gone = changes.identities[~changes.are_added]
            rows[np.isin(changes.identities, gone)] = -1
        return rows if (rows >= 0).any() else None

    def apply(self, changes: RowChanges, partners: Any, now_ms: int) -> None:
        identities = changes.identities
        rows = self._identities.rows(identities)
        comes = changes.are_added & (identities >= 0)
        at = np.flatnonzero(comes & (rows >= 0))
        if len(at):
            self.store.replace(rows[at], changes.taken(at).data)
            self._written(rows[at], None if partners is None else partners[at], now_ms)
        if not changes.only_adds:
            goes = np.flatnonzero(~changes.are_added & (rows >= 0))
            goes = goes[~np.isin(identities[goes], identities[comes])]
            self.remove(changes.taken(goes), rows[goes])
        self._add(changes, np.flatnonzero(comes & (rows < 0)), partners, now_ms)


class CountedRows(IdentifiedRows):
    """All values are the identity. Of equal rows one is kept, and how many there are."""

    def __init__(
        self, input: JoinInput, store: RowStore, partners: Grown | None, empty: Empty
    ) -> None:
        identities = ContentIdentities(store, empty)
        super().__init__(input, store, MultiMap(empty), identities, partners, empty)
        self._copies = Grown(np.int32, 1, empty)

    def net(self, changes: RowChanges, now_ms: int) -> RowChanges:
        return net_of_copies(changes)

    def copies_of(self, rows: Numbers) -> Any:
        copies = self._copies.values[rows]
        return copies if len(copies) and copies.max() > 1 else None

    def apply(self, changes: RowChanges, partners: Any, now_ms: int) -> None:
        at = np.flatnonzero(changes.identities >= 0)
        if not len(at):
            return
        order, identities, firsts, _ = by_key(changes.identities[at])
        at = at[order]
        more = np.add.reduceat(np.where(changes.are_added[at], 1, -1), firsts)
        at = at[firsts]  # the others are equal, and either all come or all go
        rows = self._identities.rows(identities)
        is_new = rows < 0
        self._change(changes.taken(at[~is_new]), rows[~is_new], more[~is_new], now_ms)
        comes = is_new & (more > 0)
        new = self._add(changes, at[comes], partners, now_ms)
        self._copies.put(new, more[comes], self.store.size)
        if partners is not None:
            more_of = ~is_new & (more > 0)
            assert self.partners is not None
            self.partners.put(rows[more_of], partners[at[more_of]], self.store.size)

    def _change(self, changes: RowChanges, rows: Numbers, more: Any, now_ms: int) -> None:
        """There are more or fewer copies of these rows."""
        if not len(rows):
            return
        copies = self._copies.values[rows]
        if self._expiry is not None:
            copies[~self._expiry.is_alive(rows, now_ms)] = 0
        copies += more
        self._copies.put(rows, copies, self.store.size)
        stays = copies > 0
        if self._expiry is not None:
            self._expiry.touch(rows[stays], now_ms)
        if not stays.all():
            self.remove(changes.taken(np.flatnonzero(~stays)), rows[~stays])

    def _frozen_columns(self) -> dict[str, FrozenArray]:
        self._copies.reach(self.store.size)
        return {**super()._frozen_columns(), COPIES: self._copies.freeze()}

    def take_back(self, changes: RowChanges, saved: pa.RecordBatch) -> Numbers:
        changes = self.identified(changes)
        copies = saved_column(saved, COPIES, 1)
        # a side that only grew before has a row for each copy
        order, _, firsts, _ = by_key(changes.identities)
        first = order[firsts]
        rows = self.store.add(changes.taken(first).data)
        self._rows_of_keys.add(changes.keys[first], rows)
        self._identities.put(changes.identities[first], rows)
        self._copies.put(rows, np.add.reduceat(copies[order], firsts), self.store.size)
        found = np.empty(len(changes), np.int64)
        found[order] = np.repeat(rows, np.diff(firsts, append=len(order)))
        return found


def saved_column(saved: pa.RecordBatch, name: str, default: int) -> npt.NDArray[np.int64]:
    """A column of a snapshot; the default for each row if an older plan did not need it."""
    at = saved.schema.get_field_index(name)
    if at < 0:
        return np.full(saved.num_rows, default, np.int64)
    found: npt.NDArray[np.int64] = saved.column(at).to_numpy()
    return found
