"""Rank of STREAMING: the best rows of each partition by ROW_NUMBER, as they change.

The best rows of a partition are kept in a list, and sorted anew, with those that came, when one of
a batch may be among them. Where rows are only added, or replace one of their key and never for the
worse (APPEND, UPDATE_FAST), no others are needed. Where rows go (RETRACT), others take their place:
these are kept in a second list, in which nothing is looked up. It is a log: a row that takes one of
it back is added as such. When the best rows have become too few, those of the log that stand are
found, and the best of them move up; more than are needed, so that this is seldom done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES, INSERT_ONLY, ChangelogMode
from flinkpy.common.types import RowKind
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.base import BatchForm
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.columnar.key_index import Grown
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.changed_rows import BEFORE, are_added, changed_pieces, rounds
from flinkpy.relational.ordering.rank_rows import RankSpec
from flinkpy.relational.ranks.contenders import Contenders, Newcomers, replaced, standing
from flinkpy.relational.ranks.first_key_limits import FirstKeyLimits
from flinkpy.relational.ranks.ranked_changes import RankedChange, Ranks
from flinkpy.relational.ranks.sort_keys import SortKeys
from flinkpy.relational.ranks.upsert_numbers import UpsertNumbers
from flinkpy.relational.relational_operator import RelationalOperator, empty_batch, with_schema
from flinkpy.relational.state.ordered_rows import OrderedRows
from flinkpy.relational.state.taken_back import contents, taken_back
from flinkpy.sql.physical.physical_nodes import RankStrategy
from flinkpy.state.snapshots.chunked_regions import FrozenChunks

REGIONS = {
    RankStrategy.APPEND: "top",
    RankStrategy.UPDATE_FAST: "top",
    RankStrategy.RETRACT: "ranked",
}
_TAKES = {
    RankStrategy.APPEND: INSERT_ONLY,
    RankStrategy.UPDATE_FAST: ChangelogMode.of(RowKind.INSERT, RowKind.UPDATE_AFTER),
    RankStrategy.RETRACT: ALL_CHANGES,
}
_KINDS = (np.int64, np.int64, np.bool_)
_MOST = 1 << 60  # of rows that are kept
_RESTORED = 1 << 14  # partitions that are ranked together
TAKES_BACK = "$takes back"  # beside the rows of a log in chunks: 1 of those that do
_FEW = 64  # rows of a log that take others back, before it is cleaned


@dataclass(frozen=True)
class ChangingRankSpec:
    """Which ranks are wanted, and what is known of the changes of the input: ``upsert_key`` are
    columns for UPDATE_FAST, those of the partition among them. ``gives`` are the kinds of rows that
    go out. ``every_change``: also what the next row of a batch replaces goes out."""

    rank: RankSpec
    strategy: RankStrategy
    gives: ChangelogMode
    upsert_key: tuple[int, ...] = ()
    every_change: bool = False

    def __post_init__(self) -> None:
        if self.rank.function != "ROW_NUMBER":
            raise ProgramError(
                f"{self.rank.function}() over rows that come without end is not supported, as in "
                "Flink; use ROW_NUMBER()"
            )

    @property
    def gives_before(self) -> bool:
        """Whether an update goes out with the row before it."""
        return self.gives.contains(RowKind.UPDATE_BEFORE)

    @property
    def goes_by_rank(self) -> bool:
        """Whether each rank whose row is another one is an update; else rows come and go."""
        rank = self.rank
        if rank.last == 1:  # the number says nothing
            return self.strategy is not RankStrategy.RETRACT
        # who does not want rows before updates would not hear of a row that goes without its rank
        return rank.gives_rank or (rank.first > 1 and self.gives_before)


class ChangingRankOperator(KeyedStateOperator, RelationalOperator):
    """``inputs`` is the schema of its input. With ``ttl_ms`` (0: none) a partition that was not
    written to for so long is forgotten."""

    batch_form = BatchForm.AT_END_OF_TIME
    takes_changes = ALL_CHANGES

    def __init__(
        self, spec: ChangingRankSpec, inputs: pa.Schema, schema: pa.Schema, ttl_ms: int = 0
    ) -> None:
        super().__init__(schema)
        self.spec = spec
        self.inputs = inputs
        self.ttl_ms = ttl_ms
        self.takes_changes = _TAKES[spec.strategy]
        self.emits_changes = spec.gives

    def open(self) -> None:
        rank = self.spec.rank
        self._logs = self.spec.strategy is RankStrategy.RETRACT
        self._kept = OrderedRows(self.inputs, rank.partition, self.ttl_ms, self.context)
        store, empty = self._kept.store, self._kept.empty
        self._limits = FirstKeyLimits(rank.keys, self.inputs, empty)
        self._sort_keys = SortKeys(rank.keys, store, empty)
        self._upserts: UpsertNumbers | None = None
        if self.spec.strategy is RankStrategy.UPDATE_FAST:
            self._upserts = UpsertNumbers(self.spec.upsert_key, store, empty)
        self._takes_back = Grown(np.bool_, False, empty)  # by row of a log
        self._takers = Grown(np.int64, 0, empty)  # by partition: how many rows of its log do
        saved = self.backend.register_chunks(REGIONS[self.spec.strategy], self._freeze)
        for keyed, rows, marks in self._kept.restore(saved):
            self._take_back(keyed.ids[keyed.codes], rows, marks)
        for begin in range(0, self._kept.size, _RESTORED):
            self._rank_again(np.arange(begin, min(begin + _RESTORED, self._kept.size)))

    def free_memory(self) -> None:
        self._kept.free_memory()

    def entries_held(self) -> int:
        return len(self._kept)

    def bytes_held(self) -> int:
        return held_bytes(self._kept)

    def process_batch(self, batch: Any) -> None:
        batch = columns(batch, self.context, self.takes_changes)
        with explained(batch.data, self.context):
            data = with_schema(batch.data, self.inputs)
            batch = batch.with_columns(data)
            parts = rounds(batch, self.spec.rank.partition) if self.spec.every_change else [batch]
            for part in parts:
                for each in self._changes_of(part):
                    self.output.emit(each)

    def process_columns(self, batch: ColumnBatch) -> Any:
        raise NotImplementedError("process_batch emits what comes of a batch")

    # -- a batch -----------------------------------------------------------------------------------

    def _changes_of(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        keyed, places = self._kept.of(batch.data)
        ids = keyed.ids
        came = Newcomers(batch.data, keyed.codes, places, are_added(batch))
        if self._logs:
            self._kept.touch(ids)
        came, ids = self._in_front(came, ids)
        if len(ids):
            yield from self._ranked(came, ids, is_net=len(batch) > 1)
        if self._logs:
            self._clean(keyed.ids)
            self._forget_empty(keyed.ids)

    def _in_front(self, came: Newcomers, ids: Any) -> tuple[Newcomers, Any]:
        """The rows that may be among the best ones, and the partitions that they have."""
        codes, is_full = came.partitions, self._is_full(ids)
        behind = self._limits.are_behind(came.data, ids[codes], is_full[codes], came.added)
        if behind is None:
            return came, ids
        if self._upserts is not None:  # what is kept is replaced, also for the worse
            behind &= self._upserts.find(came.data) < 0
        if self._logs:
            self._log(came.chosen(np.flatnonzero(behind)), ids)
        front = came.chosen(np.flatnonzero(~behind))
        codes, ids = _renumbered(front.partitions, ids)
        return replace(front, partitions=codes), ids

    def _contenders(self, at: Any, rows: Any, was_best: Any, came: Newcomers) -> Contenders:
        """Rows of the store, of the partitions ``at``, and those that came."""
        count = len(came.places)
        return Contenders(
            self._kept.store,
            came,
            self._sort_keys.beside(rows, self._sort_keys.of(came.data)),
            np.concatenate([at, came.partitions]),
            np.concatenate([self._kept.places(rows), came.places]),
            np.concatenate([rows, ~np.arange(count)]),
            np.concatenate([was_best, np.zeros(count, np.bool_)]),
            np.concatenate([np.ones(len(rows), np.bool_), came.added]),
        )

    def _ranked(self, came: Newcomers, ids: Any, *, is_net: bool) -> Iterator[ColumnBatch]:
        """What goes out when these have been ranked; keeps the best ones."""
        rank, successors = self.spec.rank, None
        at, rows = self._kept.first.pairs(ids)
        of = self._contenders(at, rows, np.ones(len(rows), np.bool_), came)
        if self._upserts is not None:
            old = of.ranks(of.was_best)
            of, last = replaced(of, self._upserts.beside(rows, came.data))
            stand = last == np.arange(len(last))
            successors = np.where(stand, -1, last)
        else:
            stand = of.added
            if self._logs:
                of, stand = self._with_more(of, self._standing(of, ids), ids)
            old = of.ranks(of.was_best)
        new = of.ranks(stand)
        wanted = old.between(rank.first, rank.last), new.between(rank.first, rank.last)
        change = RankedChange(of, *wanted, successors, is_net=is_net)
        out = change.by_rank() if self.spec.goes_by_rank else change.by_row()
        if not self.spec.gives_before:
            out = out.without(BEFORE)
        arrays = of.take(out.positions).columns
        self._keep(of, stand, new, ids)
        if rank.gives_rank:
            arrays.append(pa.array(out.ranks))
        yield from changed_pieces(pa.RecordBatch.from_arrays(arrays, schema=self.schema), out.kinds)

    # -- the rows that are kept --------------------------------------------------------------------

    def _most(self, ids: Any) -> Any:
        """How many rows of these partitions are kept among the best ones."""
        last = min(self.spec.rank.last, _MOST)
        if not self._logs:
            return np.full(len(ids), last)
        spare = np.sqrt(self._kept.others.counts(ids)).astype(np.int64)
        return last + np.maximum(spare, last)

    def _keep(self, of: Contenders, stand: Any, new: Ranks, ids: Any) -> None:
        kept, most = self._kept, self._most(ids)
        is_best = np.zeros(len(stand), np.bool_)
        is_best[new.positions[new.ranks <= most[new.partitions]]] = True
        last = self._last(of, is_best, new, ids)
        of_ids = ids[of.partitions]
        leaves = of.was_best & ~is_best
        kept.first.remove(of_ids[leaves], of.rows[leaves])
        pushed = leaves & stand
        if self._logs:
            kept.others.add(of_ids[pushed], of.rows[pushed])
            self._log_new(of, ids, of.is_new & stand & ~is_best)
            leaves &= ~stand
        kept.store.delete(of.rows[leaves])
        moves = is_best & ~of.was_best & ~of.is_new
        kept.others.remove(of_ids[moves], of.rows[moves])
        kept.first.add(of_ids[moves], of.rows[moves])
        comes = np.flatnonzero(is_best & of.is_new)
        came = of.came.chosen(~of.rows[comes])
        rows = self._added(replace(came, places=of.places[comes]), of_ids[comes])
        kept.first.add(of_ids[comes], rows)
        if self.ttl_ms and not self._logs:
            kept.touch(np.unique(of_ids[comes]))
        is_full = self._is_full(ids)
        self._limits.put(ids[is_full], last.filter(pa.array(is_full)))

    def _added(self, came: Newcomers, ids: Any) -> Any:
        """The numbers of these rows of these partitions, which are kept from now on."""
        rows = self._kept.add(came.data, came.places, ids)
        self._sort_keys.put(rows, self._sort_keys.of(came.data))
        if self._upserts is not None:
            self._upserts.put(rows, came.data)
        self._takes_back.put(rows, ~came.added, self._kept.store.size)
        return rows

    def _last(self, of: Contenders, is_best: Any, new: Ranks, ids: Any) -> pa.RecordBatch:
        """The last one of the best rows of each partition; any row where there is none."""
        last = np.zeros(len(ids), np.int64)
        best = new.positions[is_best[new.positions]]
        last[of.partitions[best]] = best  # the last assignment wins
        return of.take(last)

    def _is_full(self, ids: Any) -> Any:
        """Which partitions have as many of the best rows as are wanted, or more rows behind."""
        if self._logs:
            return self._kept.others.counts(ids) > 0
        return self._kept.first.counts(ids) >= self.spec.rank.last

    # -- the log of rows that are not among the best -----------------------------------------------

    def _log(self, came: Newcomers, ids: Any) -> None:
        partitions = ids[came.partitions]
        rows = self._added(came, partitions)
        self._kept.others.add(partitions, rows)
        self._takers.reach(self._kept.size)
        np.add.at(self._takers.values, partitions[~came.added], 1)

    def _log_new(self, of: Contenders, ids: Any, mask: Any) -> None:
        if mask.any():
            self._log(of.came.chosen(~of.rows[mask]), ids)

    def _standing(self, of: Contenders, ids: Any) -> Any:
        """Which rows stand among those that are not behind the best ones of a partition with a log;
        those that are go into it."""
        is_full = self._is_full(ids)
        if not is_full.any():
            return standing(of, np.ones(len(of.rows), np.bool_))[0]
        last = of.last_best(len(ids))[of.partitions]
        place_of = np.empty(len(of.order), np.int64)
        place_of[of.order] = np.arange(len(of.order))
        behind = of.is_new & is_full[of.partitions] & (place_of > place_of[last])
        ties = behind & (of.peers == of.peers[last])
        # of equal sort keys rows are taken back where they came first: among the best ones
        front = ~behind | (ties & ~of.added)
        stand, none = standing(of, front)
        logged = behind & (~front | none)
        self._log_new(of, ids, logged)
        return stand & ~logged

    def _with_more(self, of: Contenders, stand: Any, ids: Any) -> tuple[Contenders, Any]:
        """The contenders, with rows of the log where there are too few."""
        counts = np.bincount(of.partitions[stand], minlength=len(ids))
        short = np.flatnonzero((counts < self.spec.rank.last) & (self._kept.others.counts(ids) > 0))
        if not len(short):
            return of, stand
        at, rows = self._clean_log(ids[short])
        count, more = int((~of.is_new).sum()), np.ones(len(rows), np.bool_)
        joined = self._contenders(
            np.concatenate([of.partitions[:count], short[at]]),
            np.concatenate([of.rows[:count], rows]),
            np.concatenate([of.was_best[:count], ~more]),
            of.came,
        )
        return joined, np.concatenate([stand[:count], more, stand[count:]])

    def _clean_log(self, ids: Any) -> tuple[Any, Any]:
        """Leaves in the logs of these partitions only rows that stand; gives the partitions'
        positions, and these rows."""
        kept = self._kept
        at, rows = kept.others.pairs(ids)
        takes_back = self._takes_back.reach(kept.store.size)[rows]
        self._takers.reach(kept.size)[ids] = 0
        if not takes_back.any():
            return at, rows
        data = kept.store.take(rows)
        stay, _ = taken_back(contents(data), kept.places(rows), ~takes_back)
        gone = rows[~stay]
        kept.others.remove(ids[at[~stay]], gone)
        kept.store.delete(gone)
        return at[stay], rows[stay]

    def _clean(self, ids: Any) -> None:
        """Cleans logs in which rows that take others back are more than a third."""
        takers = self._takers.reach(self._kept.size)[ids]
        many = 3 * takers > self._kept.others.counts(ids) + _FEW
        if many.any():
            self._clean_log(ids[many])

    def _forget_empty(self, ids: Any) -> None:
        kept = self._kept
        kept.forget(ids[(kept.first.counts(ids) == 0) & (kept.others.counts(ids) == 0)])

    # -- snapshots ---------------------------------------------------------------------------------

    def _freeze(self) -> FrozenChunks:
        if not self._logs:
            return self._kept.freeze()
        self._takes_back.reach(self._kept.store.size)
        return self._kept.freeze(_rest, {TAKES_BACK: self._takes_back.freeze()})

    def _take_back(self, partitions: Any, rows: Any, marks: Mapping[str, Any]) -> None:
        """Rows of a snapshot belong to these partitions. They are ranked when all are there."""
        kept = self._kept
        (kept.others if self._logs else kept.first).add(partitions, rows)
        takes_back = marks.get(TAKES_BACK, np.zeros(len(rows), np.int64)) > 0
        self._takes_back.put(rows, takes_back, kept.store.size)
        data = kept.store.take(rows)
        self._sort_keys.put(rows, self._sort_keys.of(data))
        if self._upserts is not None:
            self._upserts.put(rows, data)

    def _rank_again(self, ids: Any) -> None:
        """Ranks the rows that these partitions have from a snapshot."""
        at, rows = self._clean_log(ids) if self._logs else self._kept.first.pairs(ids)
        if len(rows):
            nobody = Newcomers(empty_batch(self.inputs), *(np.empty(0, kind) for kind in _KINDS))
            of = self._contenders(at, rows, np.full(len(rows), not self._logs), nobody)
            self._keep(of, of.added, of.ranks(of.added), ids)
        self._forget_empty(ids)


def _rest(data: pa.RecordBatch, beside: Mapping[str, Any]) -> Any:
    """Which rows of a log stand, in the order in which they came."""
    is_added = beside[TAKES_BACK] == 0
    if is_added.all():
        return is_added
    return taken_back(contents(data), np.arange(len(is_added)), is_added)[0]


def _renumbered(codes: Any, ids: Any) -> tuple[Any, Any]:
    """The numbers that are left, from 0, and what they stand for."""
    is_there = np.zeros(len(ids), np.bool_)
    is_there[codes] = True
    return (np.cumsum(is_there) - 1)[codes], ids[is_there]
