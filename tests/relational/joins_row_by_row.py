"""A regular join in plain Python: row by row as Flink's StreamingJoinOperator and
StreamingSemiAntiJoinOperator do it, with lists as state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from flinkpy.common.types import RowKind
from flinkpy.sql.rex.relational_terms import JoinKind

Row: TypeAlias = tuple[Any, ...]
Change: TypeAlias = tuple[RowKind, Row]

_I, _D = RowKind.INSERT, RowKind.DELETE


def comparable(value: Any) -> Any:
    """All NaNs are one value."""
    return "NaN" if isinstance(value, float) and value != value else value


def comparable_row(row: Row) -> Row:
    return tuple(map(comparable, row))


@dataclass
class Kept:
    """A row, and with how many rows it is joined."""

    row: Row
    partners: int
    written: int

    def gets_one(self, now: int, more: int) -> None:
        """It is joined with one more row, or with another one than before."""
        self.partners += more
        self.written = now

    def loses_one(self, now: int) -> bool:
        """Whether it was the last. One that had expired before this row came was not counted."""
        if not self.partners:
            return False
        self.partners -= 1
        self.written = now
        return self.partners == 0


@dataclass
class JoinRowByRow:
    """``key`` is the number of the key column of both sides. ``unique`` is the columns by which a
    row of each side replaces another one, if there are some."""

    kind: JoinKind
    key: int
    unique: tuple[Sequence[int] | None, Sequence[int] | None] = (None, None)
    condition: Callable[[Row, Row], bool] | None = None
    null_safe: bool = False
    null_aware: bool = False
    width: int = 3
    ttl: tuple[int, int] = (0, 0)
    rows: tuple[list[Kept], list[Kept]] = field(default_factory=lambda: ([], []))

    def take(self, side: int, change: Change, now: int = 0) -> list[Change]:
        """What comes of one change."""
        self.now = now
        for at, kept in enumerate(self.rows):
            if self.ttl[at]:
                kept[:] = [each for each in kept if each.written + self.ttl[at] > now]
        kind, row = change
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return self._of_left(side, kind, comparable_row(row))
        return self._joined(side, kind, comparable_row(row))

    def _partners(self, side: int, row: Row) -> list[Kept]:
        found: list[Kept] = []
        if row[self.key] is None and not self.null_safe and not self.null_aware:
            return found
        for other in self.rows[1 - side]:
            left, right = (other.row, row) if side else (row, other.row)
            is_unknown = self.null_aware and None in (row[self.key], other.row[self.key])
            if (is_unknown or other.row[self.key] == row[self.key]) and (
                self.condition is None or self.condition(left, right)
            ):
                found.append(other)
        return found

    def _joined(self, side: int, kind: RowKind, row: Row) -> list[Change]:
        keeps = (JoinKind.LEFT, JoinKind.FULL), (JoinKind.RIGHT, JoinKind.FULL)
        is_outer, other_is_outer = self.kind in keeps[side], self.kind in keeps[1 - side]
        partners = self._partners(side, row)
        found: list[Change] = []

        def pair(mine: Row | None, other: Row | None) -> Row:
            one, two = mine or (None,) * self.width, other or (None,) * self.width
            return (*two, *one) if side else (*one, *two)

        if kind in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            replaced = self._add(side, row, len(partners))
            given = _I if is_outer or other_is_outer else kind
            for other in partners:
                if other_is_outer and other.partners == 0:
                    found.append((_D, pair(None, other.row)))
                found.append((given, pair(row, other.row)))
                if other_is_outer:
                    other.gets_one(self.now, 0 if replaced else 1)
            if is_outer and not partners:
                found.append((_I, pair(row, None)))
            return found
        self._remove(side, row)
        given = _D if is_outer else kind
        for other in partners:
            found.append((given, pair(row, other.row)))
            if other_is_outer and other.loses_one(self.now):
                found.append((_I, pair(None, other.row)))
        if is_outer and not partners:
            found.append((_D, pair(row, None)))
        return found

    def _of_left(self, side: int, kind: RowKind, row: Row) -> list[Change]:
        partners = self._partners(side, row)
        is_semi = self.kind is JoinKind.SEMI
        comes = kind in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        if side == 0:
            self._add(0, row, len(partners)) if comes else self._remove(0, row)
            return [(kind, row)] if bool(partners) == is_semi else []
        found: list[Change] = []
        if comes:
            replaced = self._add(1, row, 0)
            for other in partners:
                if other.partners == 0:
                    found.append((kind if is_semi else _D, other.row))
                other.partners += not replaced
                other.written = self.now
        else:
            self._remove(1, row)
            given = kind if is_semi else _I
            found += [(given, other.row) for other in partners if other.loses_one(self.now)]
        return found

    def _identity(self, side: int, row: Row) -> Row:
        unique = self.unique[side]
        return row if unique is None else (row[self.key], *(row[at] for at in unique))

    def _add(self, side: int, row: Row, partners: int) -> bool:
        """Whether it replaces a row."""
        if row[self.key] is None and not self.null_safe and not self.null_aware:
            return False
        replaced = self.unique[side] is not None and self._remove(side, row)
        self.rows[side].append(Kept(row, partners, self.now))
        return replaced

    def _remove(self, side: int, row: Row) -> bool:
        identity = self._identity(side, row)
        for at, each in enumerate(self.rows[side]):
            if self._identity(side, each.row) == identity:
                del self.rows[side][at]
                return True
        return False
