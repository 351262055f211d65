"""Queries over state with a time to live, drawn together with a model in plain Python that forgets
alike: one row after the other, each operator as lists and dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

Row = tuple[Any, ...]  # every relation has the columns k and v
Change = tuple[bool, Row]  # whether the row comes, or goes


class Model(Protocol):
    """What an operator makes of a change of one of its tables, at a time in milliseconds."""

    def take(self, table: str, row: Row, now: int) -> Iterator[Change]: ...


@dataclass
class Table:
    """The rows of a table, which only come."""

    name: str

    def take(self, table: str, row: Row, now: int) -> Iterator[Change]:
        if table == self.name:
            yield True, row


@dataclass
class Chosen:
    """WHERE."""

    below: Model
    test: Callable[[Row], bool]

    def take(self, table: str, row: Row, now: int) -> Iterator[Change]:
        return (each for each in self.below.take(table, row, now) if self.test(each[1]))


class NotKeptError(Exception):
    """A row goes that the operator has forgotten, while it knows others of its key. What the
    operator makes of it is undefined, in Flink as well."""


@dataclass
class Kept:
    """What an operator knows of a key, and when it was written."""

    rows: list[Row] = field(default_factory=list)
    written: int = 0

    def forget(self, row: Row) -> None:
        if row not in self.rows:
            raise NotKeptError(row)
        self.rows.remove(row)


class ByKey:
    """What is known of keys, as long as they are alive."""

    def __init__(self, ttl: int) -> None:
        self._ttl = ttl
        self._kept: dict[Any, Kept] = {}

    def of(self, key: Any, now: int) -> Kept:
        kept = self._kept.get(key)
        if kept is None or kept.written <= now - self._ttl:
            kept = self._kept[key] = Kept(written=now)
        return kept


class Grouped:
    """GROUP BY: ``key`` and ``result`` make k and v."""

    def __init__(
        self, below: Model, ttl: int, key: Callable[[Row], Any], result: Callable[[list[Row]], Any]
    ) -> None:
        self._below, self._key, self._result = below, key, result
        self._kept = ByKey(ttl)

    def take(self, table: str, row: Row, now: int) -> Iterator[Change]:
        for comes, each in list(self._below.take(table, row, now)):
            key = self._key(each)
            kept = self._kept.of(key, now)
            before = self._result(kept.rows) if kept.rows else None
            if comes:
                kept.rows.append(each)
            else:
                kept.forget(each)
            kept.written = now
            if before is not None:
                yield False, (key, before[0])
            if kept.rows:
                yield True, (key, self._result(kept.rows)[0])


class FirstRows:
    """The first row of each k, of rows that only come; the key is written once."""

    def __init__(self, below: Model, ttl: int) -> None:
        self._below, self._kept = below, ByKey(ttl)

    def take(self, table: str, row: Row, now: int) -> Iterator[Change]:
        for _, each in list(self._below.take(table, row, now)):
            kept = self._kept.of(each[0], now)
            if not kept.rows:
                kept.rows.append(each)
                kept.written = now
                yield True, each


class LastRows:
    """The last row of each k, of rows that only come."""

    def __init__(self, below: Model, ttl: int) -> None:
        self._below, self._kept = below, ByKey(ttl)

    def take(self, table: str, row: Row, now: int) -> Iterator[Change]:
        for _, each in list(self._below.take(table, row, now)):
            kept = self._kept.of(each[0], now)
            yield from ((False, before) for before in kept.rows)
            kept.rows, kept.written = [each], now
            yield True, each


class Best:
    """The rows of each k with the greatest v. Of rows that only come no others are kept, and only
    one that is among them writes."""

    def __init__(self, below: Model, ttl: int, most: int, *, grows: bool) -> None:
        self._below, self._most, self._grows = below, most, grows
        self._kept = ByKey(ttl)

    def take(self, table: str, row: Row, now: int) -> Iterator[Change]:
        for comes, each in list(self._below.take(table, row, now)):
            kept = self._kept.of(each[0], now)
            before = kept.rows[: self._most]
            if comes:
                place = sum(1 for other in kept.rows if _order(other) <= _order(each))
                kept.rows.insert(place, each)
            else:
                kept.forget(each)
            if self._grows:
                del kept.rows[self._most :]
            after = kept.rows[: self._most]
            if not self._grows or before != after or (comes and place < self._most):
                kept.written = now
            yield from _differences(before, after)


def _order(row: Row) -> Any:
    """Descending, nulls last."""
    return (row[1] is None, 0 if row[1] is None else -row[1])


def _differences(before: list[Row], after: list[Row]) -> Iterator[Change]:
    gone, come = list(before), list(after)
    for row in before:
        if row in come:
            come.remove(row)
            gone.remove(row)
    yield from ((False, row) for row in gone)
    yield from ((True, row) for row in come)


@dataclass
class Side:
    """The rows of one side of a join: each row, when it was written, and how many partners it has
    met."""

    ttl: int
    rows: list[list[Any]] = field(default_factory=list)

    def alive(self, now: int) -> list[list[Any]]:
        self.rows = [each for each in self.rows if not self.ttl or each[1] > now - self.ttl]
        return self.rows

    def remove(self, row: Row) -> None:
        at = next((at for at, each in enumerate(self.rows) if each[0] == row), None)
        if at is not None:
            del self.rows[at]


class Joined:
    """A join by k: v is the sum of both; of a LEFT join -1 is that of a row that is not there."""

    def __init__(self, left: Model, right: Model, ttls: tuple[int, int], *, keeps: bool) -> None:
        self._below = (left, right)
        self._sides = (Side(ttls[0]), Side(ttls[1]))
        self._keeps = keeps

    def take(self, table: str, row: Row, now: int) -> Iterator[Change]:
        for at, below in enumerate(self._below):
            for comes, each in list(below.take(table, row, now)):
                yield from (
                    self._left(comes, each, now) if at == 0 else self._right(comes, each, now)
                )

    def _left(self, comes: bool, row: Row, now: int) -> Iterator[Change]:
        left, right = self._sides
        left.alive(now)
        partners = [
            each for each in right.alive(now) if row[0] is not None and each[0][0] == row[0]
        ]
        if comes and row[0] is not None:
            left.rows.append([row, now, len(partners)])
        elif not comes:
            left.remove(row)
        for partner in partners:
            yield comes, _pair(row, partner[0])
        if self._keeps and not partners:
            yield comes, _pair(row, None)

    def _right(self, comes: bool, row: Row, now: int) -> Iterator[Change]:
        left, right = self._sides
        right.alive(now)
        partners = [each for each in left.alive(now) if row[0] is not None and each[0][0] == row[0]]
        if comes and row[0] is not None:
            right.rows.append([row, now, 0])
        elif not comes:
            right.remove(row)
        for partner in partners:
            if comes and self._keeps and partner[2] == 0:
                yield False, _pair(partner[0], None)
            yield comes, _pair(partner[0], row)
            if self._keeps and comes:
                partner[1:] = [now, partner[2] + 1]
            elif self._keeps and partner[2]:
                partner[1:] = [now, partner[2] - 1]
                if not partner[2]:
                    yield True, _pair(partner[0], None)


def _pair(left: Row, right: Row | None) -> Row:
    added = -1 if right is None else right[1]
    return left[0], None if left[1] is None or added is None else left[1] + added


# -- drawing ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """A relation of k and v: its text, its model, and whether its rows only come."""

    text: str
    model: Model
    grows: bool = True


@dataclass
class Drawing:
    """Draws a query and its model over the tables a and b, whose state lives for ``ttl``."""

    random: Random
    ttl: int
    names: int = 0

    def query(self) -> Drawn:
        """A query of one or two tables and one to three operators that keep state."""
        found = self._kept(self._table("a"))
        if self.random.random() < 0.6:
            other = self._table("b")
            found = self._join(found, self._kept(other) if self.random.random() < 0.5 else other)
        for _ in range(self.random.randrange(2)):
            found = self._kept(found)
        return found

    def _name(self) -> str:
        self.names += 1
        return f"r{self.names}"

    def _table(self, name: str) -> Drawn:
        made = Drawn(f"SELECT k, v, pt FROM {name}", Table(name))
        least = self.random.choice([None, 0, 1])
        if least is None:
            return made
        text = f"{made.text} WHERE v >= {least}"
        return Drawn(text, Chosen(made.model, lambda row: row[1] is not None and row[1] >= least))

    def _kept(self, below: Drawn) -> Drawn:
        forms: list[Callable[[Drawn], Drawn]] = [self._group, self._count, self._best]
        if below.text.startswith("SELECT k, v, pt"):
            forms += [self._first, self._last]
        return self.random.choice(forms)(below)

    def _group(self, below: Drawn) -> Drawn:
        call, result = self.random.choice(
            [("SUM(v)", _sum), ("MAX(v)", _max), ("COUNT(v)", _count)]
        )
        text = f"SELECT k, {call} AS v FROM ({below.text}) AS {self._name()} GROUP BY k"
        model = Grouped(below.model, self.ttl, lambda row: row[0], result)
        return Drawn(text, model, grows=False)

    def _count(self, below: Drawn) -> Drawn:
        """Another key."""
        text = f"SELECT v AS k, COUNT(*) AS v FROM ({below.text}) AS {self._name()} GROUP BY v"
        model = Grouped(below.model, self.ttl, lambda row: row[1], lambda rows: (len(rows),))
        return Drawn(text, model, grows=False)

    def _best(self, below: Drawn) -> Drawn:
        most = self.random.choice([1, 2])
        text = self._ranked(below, "v DESC NULLS LAST", f"<= {most}")
        return Drawn(text, Best(below.model, self.ttl, most, grows=below.grows), grows=False)

    def _first(self, below: Drawn) -> Drawn:
        return Drawn(self._ranked(below, "pt", "= 1"), FirstRows(below.model, self.ttl))

    def _last(self, below: Drawn) -> Drawn:
        text = self._ranked(below, "pt DESC", "= 1")
        return Drawn(text, LastRows(below.model, self.ttl), grows=False)

    def _ranked(self, below: Drawn, order: str, which: str) -> str:
        number = f"ROW_NUMBER() OVER (PARTITION BY k ORDER BY {order}) AS r"
        return (
            f"SELECT k, v FROM (SELECT *, {number} FROM ({below.text}) AS {self._name()}) "
            f"AS {self._name()} WHERE r {which}"
        )

    def _join(self, left: Drawn, right: Drawn) -> Drawn:
        keeps = self.random.random() < 0.4
        one, other = self._name(), self._name()
        kind = "LEFT JOIN" if keeps else "JOIN"
        added = f"{one}.v + {other}.v"
        if keeps:
            added = f"{one}.v + CASE WHEN {other}.k IS NULL THEN -1 ELSE {other}.v END"
        text = (
            f"SELECT {one}.k AS k, {added} AS v FROM ({left.text}) AS {one} {kind} "
            f"({right.text}) AS {other} ON {one}.k = {other}.k"
        )
        model = Joined(left.model, right.model, (self.ttl, self.ttl), keeps=keeps)
        return Drawn(text, model, grows=left.grows and right.grows and not keeps)


def _sum(rows: list[Row]) -> tuple[Any]:
    found = [v for _, v in rows if v is not None]
    return (sum(found) if found else None,)


def _max(rows: list[Row]) -> tuple[Any]:
    return (max((v for _, v in rows if v is not None), default=None),)


def _count(rows: list[Row]) -> tuple[Any]:
    return (sum(1 for _, v in rows if v is not None),)
