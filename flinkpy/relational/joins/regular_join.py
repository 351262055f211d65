"""A join of STREAMING over all rows that there are, as they come and go on both sides.

With one row in a batch it gives what Flink's StreamingJoinOperator gives. Of a larger batch the
rows that come as well as go cancel first; then all rows find their partners at once, since a batch
of one side does not change the other. It changes which rows of the other side have partners at
all: a row that had none goes before its first pair, and one that has none any more comes behind
its last pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES, ChangelogMode
from flinkpy.common.types import RowKind
from flinkpy.core.elements import ColumnBatch
from flinkpy.operators.base import BatchForm
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.joins.kept_rows import JoinInput, KeptRows, kept_rows
from flinkpy.relational.joins.row_changes import DELETE, INSERT, UPDATE_BEFORE, RowChanges
from flinkpy.relational.joins.unending_join import UnendingJoin
from flinkpy.relational.picked_rows import taken
from flinkpy.relational.relational_operator import ROWS_AT_ONCE, empty_batch, with_schema
from flinkpy.relational.state.frozen_chunks import RowsInChunks
from flinkpy.relational.state.multi_map import Numbers, by_key
from flinkpy.relational.state.row_store import RowStore
from flinkpy.sql.rex.relational_terms import JoinKind

REGIONS = ("left", "right")
_PAIRS_AT_ONCE = 1 << 20  # a batch that may make more is taken in parts
_NONE = -1  # instead of a row: nulls


@dataclass(frozen=True)
class Meeting:
    """Pairs of changes and rows of the other side: positions, ascending, and rows. With copies of
    rows ``begins`` says where those of each pair begin."""

    at: Numbers
    rows: Numbers
    begins: Any = None

    def with_copies(self, copies: Any) -> Meeting:
        """Each pair as often as this; None: once."""
        if copies is None:
            return self
        begins = np.cumsum(copies) - copies
        return Meeting(np.repeat(self.at, copies), np.repeat(self.rows, copies), begins)


@dataclass(frozen=True)
class Turned:
    """Rows of the other side that had no partner and have one now, with the first pair that they
    are in; and those that have none any more, with the last one. ``met_at`` and ``alone_at`` are
    the changes of these pairs."""

    met: Numbers
    met_by: Numbers
    met_at: Numbers
    alone: Numbers
    alone_by: Numbers
    alone_at: Numbers


@dataclass(frozen=True)
class Given:
    """Results: positions of changes and rows of the other side, -1 for nulls; their kinds, None for
    inserts; and numbers in the order of which they go out."""

    at: Numbers
    rows: Numbers
    kinds: npt.NDArray[np.int8] | None
    places: Numbers

    def filtered(self, mask: npt.NDArray[np.bool_]) -> Given:
        """Those for which the mask is true."""
        kinds = None if self.kinds is None else self.kinds[mask]
        return Given(self.at[mask], self.rows[mask], kinds, self.places[mask])

    @staticmethod
    def in_order(parts: Sequence[Given]) -> Given:
        """All of these."""
        places = np.concatenate([each.places for each in parts])
        order = np.argsort(places, kind="stable")
        at = np.concatenate([each.at for each in parts])[order]
        rows = np.concatenate([each.rows for each in parts])[order]
        if all(each.kinds is None for each in parts):
            return Given(at, rows, None, places[order])
        nothing = [np.zeros(len(each.at), np.int8) for each in parts]
        kinds = [none if each.kinds is None else each.kinds for each, none in zip(parts, nothing)]
        return Given(at, rows, np.concatenate(kinds)[order], places[order])


class RegularJoinOperator(UnendingJoin):
    """Joins two inputs. ``gives`` are the kinds of rows that the plan wants."""

    batch_form = BatchForm.AS_IN_STREAM
    takes_changes = ALL_CHANGES

    def __init__(
        self,
        spec: JoinSpec,
        left: JoinInput,
        right: JoinInput,
        schema: pa.Schema,
        gives: ChangelogMode = ALL_CHANGES,
    ) -> None:
        super().__init__(spec, left.schema, right.schema, schema)
        self.inputs = left, right
        self.emits_changes = gives

    def open(self) -> None:
        super().open()
        kind = self.spec.kind
        self._is_of_one_side = kind in (JoinKind.SEMI, JoinKind.ANTI)
        self._is_outer = self.spec.keeps_left, self.spec.keeps_right
        # what has met a row that stays for ever needs not be kept
        self._forgets_met = self._is_of_one_side and self.inputs[1].changes.is_insert_only
        self._gives_before = self.emits_changes.contains(RowKind.UPDATE_BEFORE)
        counts = self._is_of_one_side or self._is_outer[0], self._is_outer[1]
        # NOT IN: a null may be any value, so rows meet others of their key and those with nulls
        self._is_null_aware = self.spec.null_aware
        self._came_by = ((), ()) if self._is_null_aware else self._columns
        left, right = (
            kept_rows(
                self.inputs[side],
                self._columns[side],
                self._memory,
                counts_partners=counts[side],
                is_null_aware=self._is_null_aware,
            )
            for side in (0, 1)
        )
        self._kept: tuple[KeptRows, KeptRows] = left, right
        for side, name in enumerate(REGIONS):
            for each in self.backend.register_chunks(name, self._frozen(side)):
                self._restore(each, side)

    def entries_held(self) -> int:
        return sum(map(len, self._kept))

    def free_memory(self) -> None:
        self._memory.free()

    def bytes_held(self) -> int:
        return held_bytes(self._kept, self._index)

    def _now(self) -> int:
        if any(each.ttl_ms for each in self.inputs):
            return self.context.clock.time_ms()
        return 0

    # -- snapshots ---------------------------------------------------------------------------------

    def _frozen(self, side: int) -> Callable[[], RowsInChunks]:
        keys = self._came_by[side]
        return lambda: self._kept[side].freeze(keys, self.context.task.max_parallelism)

    def _restore(self, saved: pa.RecordBatch, side: int) -> None:
        data = with_schema(saved.select(self._schemas[side].names), self._schemas[side])
        self._kept[side].restore(saved, self._keys_of(data, side), self._now())

    # -- batches -----------------------------------------------------------------------------------

    def take(self, batch: ColumnBatch, side: int) -> None:
        changes = RowChanges(batch.data, self._keys_of(batch.data, side), batch.kinds)
        for each in self._taken(changes, side):
            self.output.emit(each)

    def _keys_of(self, data: pa.RecordBatch, side: int) -> Numbers:
        """The number of each row's key, -1 if it can meet nothing. If nulls may meet anything, 0
        stands for them, and the numbers of others are one more."""
        found, mask = self.numbers(data, side)
        if self._is_null_aware:
            found = found + 1
        if mask is None:
            keys: Numbers = found
            return keys
        keys = np.full(data.num_rows, 0 if self._is_null_aware else -1, np.int64)
        keys[mask.to_numpy(zero_copy_only=False)] = found
        return keys

    def _taken(self, changes: RowChanges, side: int) -> Iterator[ColumnBatch]:
        mine, now = self._kept[side], self._now()
        changes = mine.identified(changes)
        for part in self._parts(mine.net(changes, now), side):
            yield from self._joined_changes(part, side, now)
        mine.settle(changes)
        self._forget_keys_of(changes)
        self._sweep(now, 4 * len(changes))

    def _parts(self, changes: RowChanges, side: int) -> Iterator[RowChanges]:
        """The changes in parts that do not make too many pairs at once."""
        ends = np.cumsum(self._kept[1 - side].counts(changes.keys))
        if not len(ends) or ends[-1] <= _PAIRS_AT_ONCE:
            yield changes
            return
        part = (ends - 1) // _PAIRS_AT_ONCE
        for at in np.split(np.arange(len(ends)), np.flatnonzero(np.diff(part)) + 1):
            yield changes.taken(at)

    def _joined_changes(self, changes: RowChanges, side: int, now: int) -> Iterator[ColumnBatch]:
        mine, other = self._kept[side], self._kept[1 - side]
        changes, replaced = self._with_replaced(changes, mine, now)
        meeting = self._meeting(changes, side, now)
        turned = self._turned(changes, meeting, side, now) if other.partners is not None else None
        meeting = meeting.with_copies(other.copies_of(meeting.rows))
        partners = None
        if mine.partners is not None:
            partners = np.bincount(meeting.at, minlength=len(changes))
        if self._is_of_one_side:
            yield from self._of_one_side(changes, partners, turned)
        else:
            given = self._given(changes, side, meeting, partners, replaced)
            if turned is not None:
                given = [*given, *self._turned_rows(turned, meeting, other)]
            yield from self._emitted(changes, side, given)
        if self._forgets_met and partners is not None:
            waits = np.flatnonzero(partners == 0)
            mine.apply(changes.taken(waits), partners[waits], now)
        else:
            mine.apply(changes, partners, now)
        if self._forgets_met and turned is not None and len(turned.met):
            self._remove(0, turned.met, self._keys_of(other.store.take(turned.met), 0))

    def _with_replaced(
        self, changes: RowChanges, mine: KeptRows, now: int
    ) -> tuple[RowChanges, int]:
        """If there is a condition, the changes behind the rows whose places they take although
        nobody has taken these back, and how many these are: a row may have met others than the one
        that replaces it. Without one both meet the same rows."""
        if self.spec.condition is None:
            return changes, 0
        rows = mine.replaced(changes, now)
        if rows is None:
            return changes, 0
        at = np.flatnonzero(rows >= 0)
        return changes.behind(mine.store.take(rows[at]), at), len(at)

    # -- pairs -------------------------------------------------------------------------------------

    def _meeting(self, changes: RowChanges, side: int, now: int) -> Meeting:
        """The pairs for which the condition is true."""
        other = self._kept[1 - side]
        pieces = other.pieces(changes.keys, now)
        if self._is_null_aware:
            pieces = chain(pieces, self._pieces_of_nulls(changes, other, now))
        found = [self._passing(changes, at, rows, side) for at, rows in pieces]
        if len(found) == 1:
            return found[0]
        nothing = np.empty(0, np.int64)
        at = np.concatenate([nothing, *(each.at for each in found)])
        rows = np.concatenate([nothing, *(each.rows for each in found)])
        if self._is_null_aware:
            order = np.argsort(at, kind="stable")
            at, rows = at[order], rows[order]
        return Meeting(at, rows)

    def _pieces_of_nulls(
        self, changes: RowChanges, other: KeptRows, now: int
    ) -> Iterator[tuple[Numbers, Numbers]]:
        """NOT IN: rows whose key has no null meet those of the other side whose key has one, and
        the other way round."""
        without = np.flatnonzero(changes.keys > 0)
        for at, rows in other.pieces(np.zeros(len(without), np.int64), now):
            yield without[at], rows
        nulls = np.flatnonzero(changes.keys == 0)
        if len(nulls):
            found = [rows for _, rows in other.pieces(np.zeros(1, np.int64), now)]
            others = np.setdiff1d(other.all(now), np.concatenate([nulls[:0], *found]))
            step = max(1, ROWS_AT_ONCE // max(len(others), 1))
            for begin in range(0, len(nulls), step):
                some = nulls[begin : begin + step]
                yield np.repeat(some, len(others)), np.tile(others, len(some))

    def _passing(self, changes: RowChanges, at: Numbers, rows: Numbers, side: int) -> Meeting:
        if self.spec.condition is None or not len(at):
            return Meeting(at, rows)
        pair = taken(changes.data, at), self._kept[1 - side].store.take(rows)
        left, right = reversed(pair) if side else pair
        passed = self._joined.passing(left, right)
        return Meeting(at, rows) if passed is None else Meeting(at[passed], rows[passed])

    def _turned(self, changes: RowChanges, meeting: Meeting, side: int, now: int) -> Turned:
        """Counts the partners of the other side's rows."""
        other = self._kept[1 - side]
        nothing = np.empty(0, np.int64)
        if not len(meeting.rows):
            return Turned(nothing, nothing, nothing, nothing, nothing, nothing)
        signs = np.where(changes.are_added, 1, -1)
        replaced = self._kept[side].replaced(changes, now)
        if replaced is not None:
            signs[replaced >= 0] = 0
        order, rows, firsts, counts = by_key(meeting.rows)
        more = np.add.reduceat(signs[meeting.at[order]], firsts)
        assert other.partners is not None
        before = other.partners.values[rows]
        after = np.maximum(before + more, 0)
        changed = more != 0
        other.count_partners(rows[changed], after[changed], now)
        met, alone = (before == 0) & (after > 0), (before > 0) & (after == 0)
        first, last = order[firsts][met], order[firsts + counts - 1][alone]
        return Turned(rows[met], first, meeting.at[first], rows[alone], last, meeting.at[last])

    def _given(
        self, changes: RowChanges, side: int, meeting: Meeting, partners: Any, replaced: int
    ) -> list[Given]:
        """The pairs, and changes alone."""
        at, rows = meeting.at, meeting.rows
        pairs = Given(at, rows, self._kinds_of_pairs(changes, side, at), 4 * np.arange(len(at)))
        found = [pairs.filtered(_are_new(changes, meeting, replaced)) if replaced else pairs]
        alone = np.flatnonzero(partners == 0) if self._is_outer[side] else at[:0]
        if len(alone):
            places = 4 * np.searchsorted(at, alone) - 2
            kinds = self._kinds_of_pairs(changes, side, alone)
            found.append(Given(alone, np.full(len(alone), _NONE), kinds, places))
        return found

    def _turned_rows(self, turned: Turned, meeting: Meeting, other: KeptRows) -> Iterator[Given]:
        """Rows of the other side alone: each goes before the first pair that it is in now, and
        comes behind the last one that it was in."""
        for rows, pairs, kind, beside in (
            (turned.met, turned.met_by, DELETE, -1),
            (turned.alone, turned.alone_by, INSERT, 1),
        ):
            if not len(rows):
                continue
            copies = other.copies_of(rows)
            places = pairs if meeting.begins is None else meeting.begins[pairs]
            if copies is not None:
                nth = np.arange(copies.sum()) - np.repeat(np.cumsum(copies) - copies, copies)
                rows, places = np.repeat(rows, copies), np.repeat(places, copies) + nth
            kinds = np.full(len(rows), kind, np.int8)
            yield Given(np.full(len(rows), _NONE), rows, kinds, 4 * places + beside)

    def _emitted(self, changes: RowChanges, side: int, given: list[Given]) -> Iterator[ColumnBatch]:
        whole = given[0] if len(given) == 1 else Given.in_order(given)
        if whole.kinds is not None and not self._gives_before:
            whole = whole.filtered(whole.kinds != UPDATE_BEFORE)
        at, rows, kinds = whole.at, whole.rows, whole.kinds
        store = self._kept[1 - side].store
        for begin in range(0, len(at), ROWS_AT_ONCE):
            part = slice(begin, begin + ROWS_AT_ONCE)
            pair = _rows_or_nulls(changes.data, at[part]), _stored_or_nulls(store, rows[part])
            left, right = reversed(pair) if side else pair
            data = self._joined.joined(left, right)
            yield ColumnBatch(data, None, None if kinds is None else kinds[part])

    def _kinds_of_pairs(
        self, changes: RowChanges, side: int, at: Numbers
    ) -> npt.NDArray[np.int8] | None:
        """Where a side is outer, a pair may stand for a row with nulls that has gone: rows are
        inserted and deleted."""
        if changes.kinds is None:
            return None
        added = changes.are_added
        kinds = changes.kinds
        if self._is_outer[side]:
            kinds = np.where(added, INSERT, DELETE).astype(np.int8)
        elif self._is_outer[1 - side]:
            kinds = np.where(added, INSERT, kinds).astype(np.int8)
        return kinds[at]

    # -- SEMI and ANTI -----------------------------------------------------------------------------

    def _of_one_side(
        self, changes: RowChanges, partners: Any, turned: Turned | None
    ) -> Iterator[ColumnBatch]:
        is_semi = self.spec.kind is JoinKind.SEMI
        if turned is None:  # rows of the left
            wanted = np.flatnonzero((partners > 0) == is_semi)
            data, kinds = taken(changes.data, wanted), changes.kinds
            kinds = None if kinds is None else kinds[wanted]
        else:
            rows = np.concatenate((turned.met, turned.alone))
            if is_semi:
                kinds = self._kinds_of_turned(changes, turned)
            else:
                kinds = np.repeat(
                    np.array([DELETE, INSERT], np.int8), (len(turned.met), len(turned.alone))
                )
            copies = self._kept[0].copies_of(rows)
            if copies is not None:
                rows, kinds = (
                    np.repeat(rows, copies),
                    None if kinds is None else np.repeat(kinds, copies),
                )
            data = self._kept[0].store.take(rows)
        if kinds is not None and not self._gives_before:
            wanted = np.flatnonzero(kinds != UPDATE_BEFORE)
            data, kinds = taken(data, wanted), kinds[wanted]
        whole = ColumnBatch(self._joined.alone(data.columns), None, kinds)
        for begin in range(0, len(whole), ROWS_AT_ONCE):
            yield whole.slice(begin, ROWS_AT_ONCE)

    def _kinds_of_turned(self, changes: RowChanges, turned: Turned) -> npt.NDArray[np.int8] | None:
        """A row of a semi-join comes or goes with the kind of the row that it met or lost."""
        if changes.kinds is None:
            return None
        came, went = changes.kinds[turned.met_at], changes.kinds[turned.alone_at]
        came = np.where(changes.are_added[turned.met_at], came, INSERT)
        went = np.where(changes.are_added[turned.alone_at], DELETE, went)
        return np.concatenate((came, went)).astype(np.int8)

    # -- what is forgotten -------------------------------------------------------------------------

    def _remove(self, side: int, rows: Numbers, keys: Numbers) -> None:
        kept = self._kept[side]
        changes = kept.identified(RowChanges(kept.store.take(rows), keys))
        kept.remove(changes, rows)
        kept.settle(changes)

    def _sweep(self, now: int, looks_at: int) -> None:
        for side, kept in enumerate(self._kept):
            rows = kept.expired(now, looks_at)
            if len(rows):
                keys = self._keys_of(kept.store.take(rows), side)
                self._remove(side, rows, keys)
                self._forget_unused(keys)

    def _forget_keys_of(self, changes: RowChanges) -> None:
        """After rows have gone, or were not kept."""
        if not changes.only_adds or self._forgets_met:
            self._forget_unused(changes.keys)

    def _forget_unused(self, keys: Numbers) -> None:
        if not self._columns[0]:
            return
        left, right = self._kept
        first = 1 if self._is_null_aware else 0
        unused = (keys >= first) & (left.counts(keys) == 0) & (right.counts(keys) == 0)
        if unused.any():
            self._index.forget(np.unique(keys[unused]) - first)


def _are_new(changes: RowChanges, meeting: Meeting, replaced: int) -> npt.NDArray[np.bool_]:
    """Which pairs do not belong to the first rows, which are replaced by others, or are none of
    those others: the rest are updated."""
    size = int(meeting.rows.max(initial=0)) + 1
    codes = changes.identities[meeting.at] * size + meeting.rows
    is_new = meeting.at >= replaced
    return is_new | ~np.isin(codes, codes[is_new])


def _rows_or_nulls(data: pa.RecordBatch, at: Numbers) -> pa.RecordBatch:
    """The rows at these positions; nulls for -1."""
    is_none = at < 0
    return data.take(pa.array(at, mask=is_none)) if is_none.any() else taken(data, at)


def _stored_or_nulls(store: RowStore, rows: Numbers) -> pa.RecordBatch:
    """The rows with these numbers; nulls for -1."""
    is_none = rows < 0
    if not is_none.any():
        return store.take(rows)
    found = store.take(rows[~is_none])
    if not found.num_rows:
        return empty_batch(store.schema).take(pa.nulls(len(rows), pa.int64()))
    return found.take(pa.array(np.cumsum(~is_none) - 1, mask=is_none))
