"""The rows of some partitions that compete for ranks: those that were kept, and those that came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.relational.ranks.ranked_changes import Ranks
from flinkpy.relational.relational_operator import one_record_batch
from flinkpy.relational.state.row_store import RowStore
from flinkpy.relational.state.taken_back import contents, taken_back

_SMALL = 1 << 16


@dataclass(frozen=True)
class Newcomers:
    """Rows that came. ``partitions`` are numbers from 0, ``places`` the order in which rows came. A
    row that is not ``added`` takes an equal one back."""

    data: pa.RecordBatch
    partitions: Any
    places: Any
    added: Any

    def chosen(self, at: npt.NDArray[np.int64]) -> Newcomers:
        """Those at these positions."""
        data = self.data.take(pa.array(at))
        return Newcomers(data, self.partitions[at], self.places[at], self.added[at])


@dataclass(frozen=True)
class Contenders:
    """``rows`` are numbers of rows in the store, or of those that came: ``~`` of where they are
    among them. ``codes`` are what rows of a partition are sorted by. ``was_best`` says which were
    among the best."""

    store: RowStore
    came: Newcomers
    codes: Sequence[Any]
    partitions: Any
    places: Any
    rows: Any
    was_best: Any
    added: Any

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def is_new(self) -> Any:
        """Which rows have come."""
        return self.rows < 0

    def take(self, positions: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """The rows at these positions."""
        rows = self.rows[positions]
        is_new = rows < 0
        if is_new.all():
            return self.came.data.take(pa.array(~rows))
        kept = self.store.take(rows[~is_new])
        if not is_new.any():
            return kept
        come = self.came.data.take(pa.array(~rows[is_new]))
        both = one_record_batch([kept, come], self.store.schema)
        at = np.empty(len(rows), np.int64)
        at[~is_new] = np.arange(kept.num_rows)
        at[is_new] = np.arange(kept.num_rows, len(rows))
        return both.take(pa.array(at))

    @cached_property
    def order(self) -> Any:
        """The positions of rows by partition and rank."""
        partitions = self.partitions
        if not len(partitions) or partitions.max() < _SMALL:
            partitions = partitions.astype(np.uint16)  # sorted by counting
        if len(self.codes) == 1:
            order = np.argsort(self.codes[0])  # not stable, and several times faster
            order = order[np.argsort(partitions[order], kind="stable")]
        else:
            order = np.lexsort([*self.codes[::-1], partitions])
        if (~self._begins_peers(order)).any():
            return np.lexsort([self.places, *self.codes[::-1], partitions])
        return order

    def _begins_peers(self, order: Any) -> Any:
        begins = np.zeros(len(order), np.bool_)
        begins[:1] = True
        for each in (self.partitions, *self.codes):
            ordered = each[order]
            begins[1:] |= ordered[1:] != ordered[:-1]
        return begins

    @cached_property
    def peers(self) -> Any:
        """For each position the number of its group of rows with equal sort keys."""
        found = np.empty(len(self.order), np.int64)
        found[self.order] = np.cumsum(self._begins_peers(self.order))
        return found

    def ranks(self, mask: Any) -> Ranks:
        """The ranks among the rows for which this is true."""
        chosen = self.order[mask[self.order]]
        return Ranks.of(chosen, self.partitions[chosen])

    def last_best(self, count: int) -> Any:
        """The position of the last one that was among the best of each of ``count`` partitions."""
        found = np.full(count, -1)
        best = self.order[self.was_best[self.order]]
        found[self.partitions[best]] = best  # the last assignment wins
        return found


def standing(of: Contenders, mask: Any) -> tuple[Any, Any]:
    """Of the rows for which ``mask`` is true: which stand, as nobody takes them back; and which
    take a row back that is not among them."""
    stand, found_none = of.added & mask, np.zeros(len(mask), np.bool_)
    takers = mask & ~of.added
    if not takers.any():
        return stand, found_none
    is_asked = np.zeros(int(of.peers.max()) + 1, np.bool_)
    is_asked[of.peers[takers]] = True
    at = np.flatnonzero(mask & is_asked[of.peers])
    stay, none = taken_back(contents(of.take(at)), of.places[at], of.added[at])
    stand[at] = stay
    found_none[at] = none
    return stand, found_none


def replaced(of: Contenders, codes: Any) -> tuple[Contenders, Any]:
    """A row takes the place of the one before with its upsert key, also among those with equal sort
    keys, if its own are the same; ``codes`` are equal where upsert keys are. Gives the rows with
    these places, and for each row the last one of its key."""
    order = np.lexsort((of.places, codes))
    ordered = codes[order]
    begins = np.append(True, ordered[1:] != ordered[:-1])
    moves = begins.copy()
    for each in of.codes:
        moves[1:] |= each[order][1:] != each[order][:-1]
    count = len(order)
    runs = np.maximum.accumulate(np.where(moves, np.arange(count), 0))
    ends = np.append(np.flatnonzero(begins)[1:], count) - 1
    places, last = np.empty(count, np.int64), np.empty(count, np.int64)
    places[order] = of.places[order][runs]
    last[order] = order[ends][np.cumsum(begins) - 1]
    return replace(of, places=places), last
