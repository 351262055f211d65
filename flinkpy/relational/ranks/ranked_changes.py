"""What goes out when the best rows of partitions have changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.relational.changed_rows import AFTER, BEFORE, DELETE, INSERT, equal_rows
from flinkpy.relational.state.taken_back import contents

_NONE = -1


class TakesRows(Protocol):
    """Rows, wherever they lie."""

    def __len__(self) -> int: ...

    def take(self, positions: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """The rows at these positions."""
        ...


@dataclass(frozen=True)
class Ranks:
    """Rows by partition and rank: the position, the partition (from 0) and the rank (from 1) of
    each."""

    positions: Any
    partitions: Any
    ranks: Any

    @staticmethod
    def of(positions: Any, partitions: Any) -> Ranks:
        """Rows in this order, of which ``partitions`` are ascending."""
        count = len(positions)
        begins = np.append(True, partitions[1:] != partitions[:-1])[:count]
        starts = np.maximum.accumulate(np.where(begins, np.arange(count), 0))
        return Ranks(positions, partitions, np.arange(count) - starts + 1)

    def between(self, first: int, last: int) -> Ranks:
        """Those with a rank between these, inclusive."""
        return self.chosen((self.ranks >= first) & (self.ranks <= last))

    def chosen(self, mask: Any) -> Ranks:
        """Those for which this is true."""
        return Ranks(self.positions[mask], self.partitions[mask], self.ranks[mask])


@dataclass(frozen=True)
class Outgoing:
    """The rows that go out: positions, kinds, and ranks."""

    positions: Any
    kinds: Any
    ranks: Any

    def without(self, kind: Any) -> Outgoing:
        """All but those of a kind."""
        mask = self.kinds != kind
        return Outgoing(self.positions[mask], self.kinds[mask], self.ranks[mask])


@dataclass(frozen=True)
class _Events:
    """Rows that go out, with what they are sorted by."""

    positions: Any
    kinds: Any
    ranks: Any
    by: tuple[Any, ...]

    @staticmethod
    def of(rows: Ranks, kind: Any, *by: Any) -> _Events:
        count = len(rows.positions)
        keys = tuple(np.full(count, each) if np.ndim(each) == 0 else each for each in by)
        return _Events(rows.positions, np.full(count, kind), rows.ranks, (rows.partitions, *keys))


def _sorted(parts: list[_Events]) -> Outgoing:
    by = [np.concatenate(each) for each in zip(*(part.by for part in parts))]
    order = np.lexsort(by[::-1])
    return Outgoing(
        np.concatenate([each.positions for each in parts])[order],
        np.concatenate([each.kinds for each in parts])[order],
        np.concatenate([each.ranks for each in parts])[order],
    )


@dataclass(frozen=True)
class RankedChange:
    """The wanted rows of some partitions as they were and as they are, as positions in ``rows``.
    ``successors`` has by position the row that took the place of this one by its upsert key (-1:
    none), where there are such. ``is_net``: several rows came, so of equal rows that go and come
    nothing is said."""

    rows: TakesRows
    old: Ranks
    new: Ranks
    successors: Any = None
    is_net: bool = False

    def by_rank(self) -> Outgoing:
        """The row of each rank that has another one now: an update."""
        old, new = self.old, self.new
        olds, news = self._at_place_of(new, old), self._at_place_of(old, new)
        before = old.chosen(news != _NONE)
        after = new.chosen(olds != _NONE)  # both by partition and rank
        differ = self._differ(before.positions, after.positions)
        before, after = before.chosen(differ), after.chosen(differ)
        at, parts = before.ranks, np.zeros(len(before.ranks), np.int8)
        if self.successors is not None:
            at, parts = self._at_rank_of_successors(before)
        return _sorted(
            [
                _Events.of(before, BEFORE, at, parts),
                _Events.of(after, AFTER, after.ranks, 2),
                _Events.of(new.chosen(olds == _NONE), INSERT, new.ranks[olds == _NONE], 2),
                _Events.of(old.chosen(news == _NONE), DELETE, old.ranks[news == _NONE], 2),
            ]
        )

    def _at_place_of(self, asked: Ranks, others: Ranks) -> Any:
        """For each asked row that of the others with its rank; -1 if there is none."""
        if not len(others.positions) or not len(asked.positions):
            return np.full(len(asked.positions), _NONE)
        span = int(max(asked.ranks.max(), others.ranks.max())) + 1
        codes = others.partitions * span + others.ranks
        wanted = asked.partitions * span + asked.ranks
        at = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
        return np.where(codes[at] == wanted, others.positions[at], _NONE)

    def _differ(self, one: Any, other: Any) -> Any:
        differ = one != other
        if self.is_net and differ.any():
            at = np.flatnonzero(differ)
            left, right = (self.rows.take(each[at]) for each in (one, other))
            differ[at[equal_rows(left, right)]] = False
        return differ

    def _at_rank_of_successors(self, before: Ranks) -> tuple[Any, Any]:
        """Where rows before an update go out: those that are replaced by their upsert key in front
        of the row that replaces them, as in Flink."""
        rank_of = np.zeros(len(self.rows), np.int64)
        rank_of[self.new.positions] = self.new.ranks
        successors = self.successors[before.positions]
        ranks = np.where(successors == _NONE, 0, rank_of[successors])
        moves = (ranks > 0) & (ranks < before.ranks)
        return np.where(moves, ranks, before.ranks), moves.astype(np.int8)

    def by_row(self) -> Outgoing:
        """The rows that are not among them any more, and those that are now."""
        was, is_now = np.zeros(len(self.rows), np.bool_), np.zeros(len(self.rows), np.bool_)
        was[self.old.positions] = True
        is_now[self.new.positions] = True
        left = self.old.chosen(~is_now[self.old.positions])
        come = self.new.chosen(~was[self.new.positions])
        if self.is_net and len(left.positions) and len(come.positions):
            left, come = self._without_equal(left, come)
        updates: list[_Events] = []
        if self.successors is not None and len(left.positions):
            left, come, updates = self._replaced(left, come)
        return _sorted(
            [
                _Events.of(left, DELETE, 0, left.ranks, 0),
                _Events.of(come, INSERT, 2, come.ranks, 0),
                *updates,
            ]
        )

    def _without_equal(self, left: Ranks, come: Ranks) -> tuple[Ranks, Ranks]:
        """Of equal rows that go and come only those that are more."""
        both = np.concatenate([left.positions, come.positions])
        codes, count = contents(self.rows.take(both)), len(left.positions)
        goes, comes = codes[:count], codes[count:]
        size = int(codes.max()) + 1
        fewer = np.minimum(np.bincount(goes, minlength=size), np.bincount(comes, minlength=size))
        return left.chosen(_nth(goes) >= fewer[goes]), come.chosen(_nth(comes) >= fewer[comes])

    def _replaced(self, left: Ranks, come: Ranks) -> tuple[Ranks, Ranks, list[_Events]]:
        """Apart from the others the rows that are replaced by another one of their upsert key."""
        at = np.full(len(self.rows), _NONE)
        at[come.positions] = np.arange(len(come.positions))
        successors = self.successors[left.positions]
        places = np.where(successors == _NONE, _NONE, at[successors])
        is_update = places != _NONE
        places = places[is_update]
        before = left.chosen(is_update)
        after = Ranks(come.positions[places], come.partitions[places], come.ranks[places])
        stays = np.ones(len(come.positions), np.bool_)
        stays[places] = False
        return (
            left.chosen(~is_update),
            come.chosen(stays),
            [
                _Events.of(before, BEFORE, 1, after.ranks, 0),
                _Events.of(after, AFTER, 1, after.ranks, 1),
            ],
        )


def _nth(codes: Any) -> Any:
    """How many of the codes before are equal to each."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    begins = np.append(True, ordered[1:] != ordered[:-1])
    starts = np.maximum.accumulate(np.where(begins, np.arange(len(codes)), 0))
    found = np.empty(len(codes), np.int64)
    found[order] = np.arange(len(codes)) - starts
    return found
