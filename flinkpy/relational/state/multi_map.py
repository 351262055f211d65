"""From the numbers of keys to the numbers of their rows.

The rows of a key lie side by side in one arena. A key whose room is full moves to a larger one;
what it leaves is given to other keys, and the arena is laid anew when too much of it is left. All
is done for whole arrays of keys at once. Numbers are kept in 32 bits: a subtask has fewer rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from flinkpy.operators.columnar.array_memory import Empty
from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.pair_pieces import pair_pieces
from flinkpy.relational.relational_operator import ROWS_AT_ONCE

Numbers = npt.NDArray[np.int64]

_GONE = -1
_FEWEST = 64
_MOVED_AT_ONCE = 1 << 16  # keys, when the arena is laid anew
# how many rows a room is for: 1, 2, 3, 4, 6, 8, 12 and so on
_SIZES = np.sort(np.concatenate((2 ** np.arange(31), 3 * 2 ** np.arange(29))))


class RowsOfKeys(Protocol):
    """Finds the rows of keys. A row has one key. Keys that have no row, and -1, are asked for
    too."""

    def counts(self, keys: Numbers) -> Any:
        """How many rows these keys have."""
        ...

    def pieces(self, keys: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
        """Positions of these keys, ascending, and rows that they have; in pieces of bounded
        size."""
        ...

    def add(self, keys: Numbers, rows: Numbers) -> None:
        """Adds rows that are not there."""
        ...

    def remove(self, keys: Numbers, rows: Numbers) -> None:
        """Removes rows, which must be there, and be named once."""
        ...


class MultiMap:
    """Any number of rows for each key.

    >>> rows = MultiMap()
    >>> rows.add(np.array([5, 3, 5]), np.array([0, 1, 2]))
    >>> [each.tolist() for each in rows.pairs(np.array([3, 4, 5]))]
    [[0, 2, 2], [1, 0, 2]]
    >>> rows.remove(np.array([5]), np.array([0]))
    >>> [each.tolist() for each in rows.pairs(np.array([5]))]
    [[0], [2]]
    """

    def __init__(self, empty: Empty = np.empty) -> None:
        """``empty`` gives arrays."""
        self._empty = empty
        # by key: where its rows begin in the arena, how many there are, and for how many there is
        # room, as a number of _SIZES; -1 for none
        self._begins = Grown(np.int32, 0, empty)
        self._counts = Grown(np.int32, 0, empty)
        self._rooms = Grown(np.int8, -1, empty)
        self._places = Grown(np.int32, _GONE, empty)  # by row: where it is in the arena
        self._arena = Grown(np.int32, _GONE, empty)
        self._used = 0
        self._free: dict[int, list[npt.NDArray[np.int32]]] = {}  # by number of the size: begins
        self._left = 0  # places of the arena in free rooms
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def counts(self, keys: Numbers) -> Any:
        """How many rows these keys have."""
        known = self._counts.values
        if not len(keys):
            return np.empty(0, np.int32)
        if int(keys.min()) >= 0 and int(keys.max()) < len(known):
            return known.take(keys)
        is_known = (keys >= 0) & (keys < len(known))
        return np.where(is_known, known.take(np.where(is_known, keys, 0)), 0)

    def pairs(self, keys: Numbers) -> tuple[Numbers, Numbers]:
        """Positions of these keys, ascending, and the rows that they have."""
        found = list(self.pieces(keys))
        if len(found) == 1:
            return found[0]
        nothing = np.empty(0, np.int64)
        positions, rows = zip(*found) if found else ((nothing,), (nothing,))
        return np.concatenate(positions), np.concatenate(rows)

    def pieces(self, keys: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
        """The same in pieces of bounded size."""
        counts = self.counts(keys)
        if not len(keys):
            return
        if int(counts.max()) <= 1:
            at = np.flatnonzero(counts)
            for begin in range(0, len(at), ROWS_AT_ONCE):
                some = at[begin : begin + ROWS_AT_ONCE]
                yield some, self._at(self._begins.values.take(keys[some]))
            return
        for at, nth in pair_pieces(counts):
            yield at, self._at(self._begins.values.take(keys[at]) + nth)

    def add(self, keys: Numbers, rows: Numbers) -> None:
        """Adds rows that are not there."""
        if not len(keys):
            return
        size = int(keys.max()) + 1
        for array in (self._begins, self._counts, self._rooms):
            array.reach(size)
        order, distinct, firsts, added = by_key(keys)
        before = self._counts.values.take(distinct)
        after = before + added
        rooms = self._rooms.values.take(distinct)
        is_full = after > np.where(rooms < 0, 0, _SIZES.take(np.maximum(rooms, 0)))
        if is_full.any():
            self._move(distinct[is_full], after[is_full])
        nth = np.arange(len(keys)) - np.repeat(firsts - before, added)
        places = np.repeat(self._begins.values.take(distinct), added) + nth
        self._counts.values[distinct] = after
        self._put(places, rows[order])
        self._rows += len(keys)

    def remove(self, keys: Numbers, rows: Numbers) -> None:
        """Removes rows, which must be there, and be named once. The last rows of the key go where
        they were."""
        if not len(keys):
            return
        order, distinct, firsts, removed = by_key(keys)
        holes = self._places.values.take(rows[order])
        self._arena.values[holes] = _GONE
        self._places.values[rows] = _GONE
        after = self._counts.values.take(distinct) - removed
        ends = self._begins.values.take(distinct) + after
        nth = np.arange(len(keys)) - np.repeat(firsts, removed)
        ends_of_rows = np.repeat(ends, removed)
        last = self._at(ends_of_rows + nth)
        # of each key there are as many rows to keep behind the end as holes before it
        self._put(holes[holes < ends_of_rows], last[last != _GONE])
        self._counts.values[distinct] = after
        self._rows -= len(keys)
        is_empty = after == 0
        if is_empty.any():
            self._leave(distinct[is_empty])
            self._rooms.values[distinct[is_empty]] = -1

    # -- the arena ---------------------------------------------------------------------------------

    def _at(self, places: Numbers) -> Numbers:
        """The rows at these places."""
        return self._arena.values.take(places).astype(np.int64)

    def _put(self, places: Numbers, rows: Numbers) -> None:
        if len(rows):
            self._arena.values[places] = rows
            self._places.reach(int(rows.max()) + 1)[rows] = places

    def _move(self, keys: Numbers, counts: npt.NDArray[Any]) -> None:
        """Gives these keys room for so many rows, and takes those along that they have."""
        rooms = np.searchsorted(_SIZES, counts).astype(np.int8)
        needed = self._used + int(_SIZES[rooms].sum())
        if needed > len(self._arena.values) and 4 * self._left > self._used:
            self._lay_anew()
        begins = np.empty(len(keys), np.int64)
        for room in np.unique(rooms).tolist():
            chosen = np.flatnonzero(rooms == room)
            begins[chosen] = self._allocated(room, len(chosen))
        self._leave(keys)
        self._take_along(keys, begins, self._arena)
        self._rooms.values[keys] = rooms

    def _take_along(self, keys: Numbers, begins: Numbers, arena: Grown) -> None:
        """The rows of these keys, which lie in an arena, begin here from now on."""
        at, nth = _expanded(self._counts.values.take(keys))
        rows = arena.values.take(self._begins.values.take(keys)[at] + nth)
        self._put(begins[at] + nth, rows)
        self._begins.values[keys] = begins

    def _leave(self, keys: Numbers) -> None:
        """The rooms of these keys are free for others."""
        rooms = self._rooms.values.take(keys)
        for room in np.unique(rooms[rooms >= 0]).tolist():
            begins = self._begins.values.take(keys[rooms == room])
            self._free.setdefault(room, []).append(begins)
            self._left += len(begins) * int(_SIZES[room])

    def _allocated(self, room: int, count: int) -> Numbers:
        """Begins of so many rooms of this size."""
        size = int(_SIZES[room])
        found: list[npt.NDArray[Any]] = []
        free = self._free.get(room, [])
        while free and count:
            last = free.pop()
            if len(last) > count:
                free.append(last[count:])
                last = last[:count]
            found.append(last)
            count -= len(last)
            self._left -= len(last) * size
        end = self._used + count * size
        self._arena.reach(end)
        found.append(np.arange(self._used, end, size))
        self._used = end
        return np.concatenate(found)

    def _lay_anew(self) -> None:
        """Moves all rows into an arena without free rooms."""
        old, self._arena = self._arena, Grown(np.int32, _GONE, self._empty)
        self._free, self._left, self._used = {}, 0, 0
        pieces = [
            (begin, self._rooms.values[begin : begin + _MOVED_AT_ONCE])
            for begin in range(0, len(self._rooms.values), _MOVED_AT_ONCE)
        ]
        self._arena.reach(sum(int(_SIZES[rooms[rooms >= 0]].sum()) for _, rooms in pieces))
        for begin, rooms in pieces:
            keys = np.flatnonzero(rooms >= 0)
            ends = self._used + np.cumsum(_SIZES[rooms[keys]])
            self._take_along(begin + keys, ends - _SIZES[rooms[keys]], old)
            self._used = int(ends[-1]) if len(ends) else self._used


class SingleRows:
    """At most one row for each key; one that comes takes the place of the one before."""

    def __init__(self, empty: Empty = np.empty) -> None:
        """``empty`` gives arrays."""
        self._row_of = Grown(np.int32, _GONE, empty)
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def rows(self, keys: Numbers) -> Any:
        """The row of each of these keys, -1 if it has none."""
        known = self._row_of.values
        if not len(keys) or (int(keys.min()) >= 0 and int(keys.max()) < len(known)):
            return known.take(keys).astype(np.int64)
        is_known = (keys >= 0) & (keys < len(known))
        rows = known.take(np.where(is_known, keys, 0))
        return np.where(is_known, rows, np.int64(_GONE))

    def counts(self, keys: Numbers) -> Any:
        """How many rows these keys have."""
        return (self.rows(keys) != _GONE).astype(np.int32)

    def pieces(self, keys: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
        """Positions of these keys, ascending, and the rows that they have."""
        rows = self.rows(keys)
        at = np.flatnonzero(rows != _GONE)
        for begin in range(0, len(at), ROWS_AT_ONCE):
            some = at[begin : begin + ROWS_AT_ONCE]
            yield some, rows[some]

    def add(self, keys: Numbers, rows: Numbers) -> None:
        """Sets the rows of keys, each named once."""
        if len(keys):
            row_of = self._row_of.reach(int(keys.max()) + 1)
            self._rows += int((row_of[keys] == _GONE).sum())
            row_of[keys] = rows

    def remove(self, keys: Numbers, rows: Numbers) -> None:
        """The keys have no row any more."""
        self._row_of.values[keys] = _GONE
        self._rows -= len(keys)


def by_key(keys: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """The positions of keys in the order of keys; the distinct keys, where each begins in that
    order, and how often it is there."""
    count = len(keys)
    bits = count.bit_length()
    codes = (keys << bits) | np.arange(count)  # each is there once: the fast sort is stable too
    codes.sort()
    ordered = codes >> bits
    is_first = np.empty(count, np.bool_)
    is_first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    firsts = np.flatnonzero(is_first)
    return codes & ((1 << bits) - 1), ordered[firsts], firsts, np.diff(firsts, append=count)


def _expanded(counts: npt.NDArray[Any]) -> tuple[Numbers, Numbers]:
    """Each position as often as this, and the number of the time, from 0."""
    at = np.repeat(np.arange(len(counts)), counts)
    return at, np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
