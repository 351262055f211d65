"""Changes of the rows of one side of a join."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.common.types import RowKind
from flinkpy.relational.picked_rows import taken
from flinkpy.relational.state.multi_map import by_key

INSERT = RowKind.INSERT.value
UPDATE_BEFORE = RowKind.UPDATE_BEFORE.value
UPDATE_AFTER = RowKind.UPDATE_AFTER.value
DELETE = RowKind.DELETE.value


@dataclass(frozen=True)
class RowChanges:
    """Rows that come or go. ``keys`` are the numbers of their join keys, -1 for those that meet
    nothing. ``kinds``: None if all are inserts. ``identities`` say which rows are the same, or take
    each other's place; -1 for those that are not kept."""

    data: pa.RecordBatch
    keys: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int8] | None = None
    identities: Any = None

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def are_added(self) -> Any:
        """Which rows come."""
        if self.kinds is None:
            return np.ones(len(self), np.bool_)
        return (self.kinds == INSERT) | (self.kinds == UPDATE_AFTER)

    @property
    def only_adds(self) -> bool:
        """Whether no row goes."""
        return self.kinds is None or bool(self.are_added.all())

    def taken(self, at: npt.NDArray[np.int64]) -> RowChanges:
        """The changes at these positions, each of which is named once."""
        if len(at) == len(self) and (at[1:] > at[:-1]).all():
            return self
        return RowChanges(
            taken(self.data, at),
            self.keys[at],
            None if self.kinds is None else self.kinds[at],
            None if self.identities is None else self.identities[at],
        )

    def behind(self, data: pa.RecordBatch, at: npt.NDArray[np.int64]) -> RowChanges:
        """The changes behind rows that go: they have the keys and identities of these changes."""
        kinds = np.zeros(len(self), np.int8) if self.kinds is None else self.kinds
        return RowChanges(
            pa.concat_batches([data, self.data]),
            np.concatenate((self.keys[at], self.keys)),
            np.concatenate((np.full(len(at), DELETE, np.int8), kinds)),
            np.concatenate((self.identities[at], self.identities)),
        )

    def with_identities(self, identities: npt.NDArray[np.int64]) -> RowChanges:
        """The same, with these identities."""
        return replace(self, identities=identities)


def net_of_copies(changes: RowChanges) -> RowChanges:
    """Without the rows that come as well as go: rows of one identity are equal."""
    if changes.only_adds or not changes.are_added.any():
        return changes
    order, _, firsts, counts = by_key(changes.identities + 1)
    comes = changes.are_added[order]
    nets = np.add.reduceat(np.where(comes, 1, -1), firsts)
    if (np.abs(nets) == counts).all():
        return changes
    # of those that are left over, the last ones come and the first ones go
    net = np.repeat(nets, counts)
    came = _running(comes, firsts, counts)
    went = _running(~comes, firsts, counts)
    all_that_come = np.repeat(np.add.reduceat(comes.astype(np.int64), firsts), counts)
    is_left = np.where(comes, came > all_that_come - net, went <= -net)
    is_left |= changes.identities[order] < 0
    return changes.taken(np.sort(order[is_left]))


def net_of_versions(changes: RowChanges, are_known: npt.NDArray[np.bool_]) -> RowChanges:
    """Of each identity at most the row that goes first and the row that comes last: others come and
    go within the batch. ``are_known``: whether there was a row of the identity before."""
    order, _, firsts, counts = by_key(changes.identities + 1)
    if len(firsts) == len(order):
        return changes
    comes = changes.are_added
    first, last = order[firsts], order[firsts + counts - 1]
    is_left = changes.identities < 0
    is_left[first[~comes[first]]] = True
    is_left[last[comes[last]]] = True
    # it replaced a row that nobody had taken back, and is gone itself
    is_left[last[comes[first] & ~comes[last] & are_known[last]]] = True
    return changes.taken(np.flatnonzero(is_left))


def _running(flags: npt.NDArray[np.bool_], firsts: Any, counts: Any) -> Any:
    """How many flags there are up to each place, within each group."""
    totals = np.cumsum(flags)
    return totals - np.repeat(totals[firsts] - flags[firsts], counts)
