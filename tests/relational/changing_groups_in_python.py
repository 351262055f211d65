"""GROUP BY whose results change, in plain Python: all rows of each group are kept, and a batch
gives what has changed of each of its keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Row: TypeAlias = "tuple[Any, ...]"
INSERT, BEFORE, AFTER, DELETE = 0, 1, 2, 3
COMES = (INSERT, AFTER)


class GroupsInPython:
    """``key`` gives the key of a row, ``calls`` compute each result from the rows of a group.
    ``ttl_ms``: how long a group lives after its last row; 0: for ever."""

    def __init__(
        self,
        key: Callable[[Row], Row],
        calls: Sequence[Callable[[Sequence[Row]], Any]],
        ttl_ms: int = 0,
    ) -> None:
        self._key = key
        self._calls = calls
        self._ttl_ms = ttl_ms
        self._rows: dict[Row, list[Row]] = {}
        self._written: dict[Row, int] = {}

    def push(self, changes: Sequence[tuple[int, Row]], now_ms: int = 0) -> list[tuple[int, Row]]:
        """What a batch of rows with their kinds gives."""
        keys = list(dict.fromkeys(canonical(self._key(row)) for _, row in changes))
        self._expire(keys, now_ms)
        before = {key: self._results(key) for key in keys}
        for kind, row in changes:
            rows = self._rows.setdefault(canonical(self._key(row)), [])
            if kind in COMES:
                rows.append(row)
            elif rows:
                at = [canonical(each) for each in rows].index(canonical(row))
                del rows[at]
        given: list[tuple[int, Row]] = []
        for key in keys:
            self._written[key] = now_ms
            if not self._rows[key]:
                del self._rows[key]
            first, last = before[key], self._results(key)
            if first is None and last is not None:
                given.append((INSERT, key + last))
            elif first is not None and last is None:
                given.append((DELETE, key + first))
            elif first is not None and last is not None and (self._ttl_ms or first != last):
                given += [(BEFORE, key + first), (AFTER, key + last)]
        return given

    def known(self, changes: Sequence[tuple[int, Row]], now_ms: int) -> list[tuple[int, Row]]:
        """The changes without those that take back a row that has expired: what comes of these is
        not said, in Flink neither."""
        there: dict[Row, list[Row]] = {}
        found = []
        for kind, row in changes:
            key = canonical(self._key(row))
            if key not in there:
                self._expire([key], now_ms)
                there[key] = [canonical(each) for each in self._rows.get(key, ())]
            if kind in COMES:
                there[key].append(canonical(row))
            elif canonical(row) in there[key]:
                there[key].remove(canonical(row))
            else:
                continue
            found.append((kind, row))
        return found

    def _expire(self, keys: Sequence[Row], now_ms: int) -> None:
        for key in keys:
            if self._ttl_ms and self._written.get(key, now_ms) <= now_ms - self._ttl_ms:
                self._rows.pop(key, None)

    def _results(self, key: Row) -> Row | None:
        rows = self._rows.get(key)
        return canonical(tuple(call(rows) for call in self._calls)) if rows else None


def canonical(value: Any) -> Any:
    """The value in a form in which equal results are equal: NaN, zeros, nested values."""
    if isinstance(value, (tuple, list)):
        return tuple(map(canonical, value))
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def present(rows: Sequence[Row], at: int) -> list[Any]:
    """The values of a column that are not null."""
    return [row[at] for row in rows if row[at] is not None]


def order_of(value: Any) -> Any:
    """NaN is greater than all other numbers."""
    return (isinstance(value, float) and math.isnan(value), 0.0 if value != value else value)
