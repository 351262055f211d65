"""Rank in plain Python: one change after the other, as Flink's functions do it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from flinkpy.relational.ranks.changing_rank import ChangingRankSpec
from flinkpy.sql.physical.physical_nodes import RankStrategy
from flinkpy.sql.rex.rex_nodes import SortKey
from tests.relational.changing_subtasks import RESTART, Change, shown

Row = tuple[Any, ...]


class PlainRank:
    """The rows of each partition in their order; no more than are wanted where that is enough."""

    def __init__(self, spec: ChangingRankSpec) -> None:
        self._spec = spec
        self._rank = spec.rank
        self._lists: dict[Any, list[Row]] = {}
        self._given: list[Change] = []

    def run(self, changes: Sequence[Change | str]) -> list[Change]:
        """What comes of these."""
        for change in changes:
            if change != RESTART:
                self.take(change[0], tuple(map(shown, change[1])))
        return self._given

    def take(self, kind: str, row: Row) -> list[Change]:
        """What comes of one change."""
        self._given, before = [*self._given], len(self._given)
        key = tuple(row[at] for at in self._rank.partition)
        rows = self._lists.setdefault(key, [])
        if kind in ("-U", "-D"):
            self._retract(rows, row)
        elif not self._update(rows, row):
            self._insert(rows, row)
        return self._given[before:]

    def forget(self, key: Any) -> None:
        """The partition is gone."""
        self._lists.pop(key, None)

    def _sort_key(self, row: Row) -> Any:
        return tuple(part for key in self._rank.keys for part in _parts(row[key.index], key))

    def _place(self, rows: list[Row], row: Row) -> int:
        return bisect_right([self._sort_key(each) for each in rows], self._sort_key(row))

    def _insert(self, rows: list[Row], row: Row) -> None:
        last, old, at = self._rank.last, list(rows), self._place(rows, row)
        rows.insert(at, row)
        if self._spec.strategy is not RankStrategy.RETRACT:
            del rows[last:]
        if at >= last:
            return
        if self._spec.goes_by_rank:
            for rank in range(at, min(len(old), last)):
                self._give("-U", old[rank], rank)
                self._give("+U", rows[rank], rank)
            if len(old) < last:
                self._give("+I", rows[len(old)], len(old))
            return
        self._net(old, rows)

    def _retract(self, rows: list[Row], row: Row) -> None:
        if row not in rows:
            return
        last, old, at = self._rank.last, list(rows), rows.index(row)
        del rows[at]
        if at >= last:
            return
        if self._spec.goes_by_rank:
            for rank in range(at, min(len(rows), last)):
                self._give("-U", old[rank], rank)
                self._give("+U", rows[rank], rank)
            if len(rows) < last:
                self._give("-D", old[len(rows)], len(rows))
            return
        self._net(old, rows)

    def _net(self, old: list[Row], new: list[Row]) -> None:
        """At most one row left the wanted ones, and one came."""
        wanted = slice(self._rank.first - 1, self._rank.last)
        gone, come = list(old[wanted]), list(new[wanted])
        for row in old[wanted]:
            if row in come:
                come.remove(row)
                gone.remove(row)
        for row in gone:
            self._give("-D", row, old.index(row))
        for row in come:
            self._give("+I", row, new.index(row))

    def _update(self, rows: list[Row], row: Row) -> bool:
        """Whether the row took the place of the one with its upsert key."""
        if self._spec.strategy is not RankStrategy.UPDATE_FAST:
            return False
        key = [row[at] for at in self._spec.upsert_key]
        found = [
            at for at, each in enumerate(rows) if [each[at] for at in self._spec.upsert_key] == key
        ]
        if not found:
            return False
        [before], old = found, list(rows)
        del rows[before]
        at = before
        if self._sort_key(row) != self._sort_key(old[before]):
            at = self._place(rows, row)
        rows.insert(at, row)
        if not self._spec.goes_by_rank or at == before:
            self._give("-U", old[before], before)
            self._give("+U", row, at)
            return True
        assert at < before, "never for the worse"
        self._give("-U", old[at], at)
        self._give("-U", old[before], before)
        self._give("+U", row, at)
        for rank in range(at + 1, before):
            self._give("-U", old[rank], rank)
            self._give("+U", rows[rank], rank)
        self._give("+U", rows[before], before)
        return True

    def _give(self, kind: str, row: Row, place: int) -> None:
        if place + 1 < self._rank.first or place >= self._rank.last:
            return
        if kind == "-U" and not self._spec.gives_before:
            return
        self._given.append((kind, (*row, place + 1) if self._rank.gives_rank else row))


def _parts(value: Any, key: SortKey) -> tuple[Any, ...]:
    if value is None:
        return (0 if key.nulls_first else 2, 0)
    if value == "NaN":
        value = float("inf")
    return (1, _Reversed(value) if key.descending else value)


class _Reversed:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and self.value == other.value

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)

    __hash__ = None  # type: ignore[assignment]
