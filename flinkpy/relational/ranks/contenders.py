"""The rows of some partitions that compete for ranks: those that were kept, and those that came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.operators.columnar.key_index import encoded
from flinkpy.relational.key_columns import key_batch
from flinkpy.relational.ranks.ranked_changes import Ranks
from flinkpy.relational.relational_operator import one_record_batch
from flinkpy.relational.sort_codes import codes_of
from flinkpy.relational.state.taken_back import contents, taken_back
from flinkpy.sql.rex.rex_nodes import SortKey

NEW = -1  # in place of the number of a row that was kept


@dataclass(frozen=True)
class Contenders:
    """``partitions`` are numbers from 0, ``places`` the order in which rows came, ``rows`` the
    numbers of rows that were kept (else NEW), ``was_best`` says which were among the best. A row
    that is not ``added`` takes an equal one back."""

    data: pa.RecordBatch
    keys: tuple[SortKey, ...]
    partitions: Any
    places: Any
    rows: Any
    was_best: Any
    added: Any

    @cached_property
    def codes(self) -> Any:
        """What rows of a partition are sorted by."""
        return codes_of(self.data.columns, self.keys)

    @cached_property
    def order(self) -> Any:
        """The positions of rows by partition and rank."""
        return np.lexsort([self.places, *self.codes[::-1], self.partitions])

    @cached_property
    def peers(self) -> Any:
        """For each position the number of its group of rows with equal sort keys."""
        found = np.empty(len(self.order), np.int64)
        begins = np.zeros(len(self.order), np.bool_)
        for each in (self.partitions, *self.codes):
            ordered = each[self.order]
            begins[1:] |= ordered[1:] != ordered[:-1]
        found[self.order] = np.cumsum(begins)
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

    def with_others(self, others: Contenders) -> Contenders:
        """These and other rows, which stand behind them in ``data``."""
        joined = one_record_batch([self.data, others.data], self.data.schema)
        pairs = [
            (self.partitions, others.partitions),
            (self.places, others.places),
            (self.rows, others.rows),
            (self.was_best, others.was_best),
            (self.added, others.added),
        ]
        return Contenders(joined, self.keys, *map(np.concatenate, pairs))


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
    stay, none = taken_back(contents(of.data.take(pa.array(at))), of.places[at], of.added[at])
    stand[at] = stay
    found_none[at] = none
    return stand, found_none


def replaced(of: Contenders, upsert_key: Sequence[int]) -> tuple[Contenders, Any]:
    """A row takes the place of the one before with its upsert key, also among those with equal sort
    keys, if its own are the same. Gives the rows with these places, and for each row the last one
    of its key."""
    codes = encoded(key_batch([of.data.column(at) for at in upsert_key]).columns).codes
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
