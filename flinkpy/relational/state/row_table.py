"""From hashes to the numbers of rows, in eight bytes a slot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flinkpy.operators.columnar.array_memory import Empty

# Of these positions in the array of hashes: whether the row with this number is really the one
IsEqual: TypeAlias = Callable[[Any, Any], Any]

_FEWEST = 64
_FULL = 0.6  # the share of slots that are taken, at most
_GROWTH = 1.5
_PIECE = 1 << 16  # words that are moved together
_ROW = np.int64((1 << 32) - 1)  # the bits of a slot that are the row
_EMPTY, _GONE = np.int64(-1), np.int64(-2)  # in place of a slot's word
_BITS = np.int64(32)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


class RowTable:
    """Open addressing with linear probing. A slot is a word: 32 bits of a hash and the number of a
    row, which is below 2 to the power of 31. The bits of the hash say where probing begins, in
    their order, so a larger table is made by sorting the words. Rows may share these bits: ``find``
    asks which of them is meant.

    >>> table = RowTable()
    >>> table.put(np.array([70, 80]), np.array([0, 1]))
    >>> table.find(np.array([80, 90, 70]), lambda at, rows: np.ones(len(at), bool)).tolist()
    [1, -1, 0]
    >>> table.remove(np.array([80]), np.array([1]))
    >>> len(table)
    1
    """

    def __init__(self, empty: Empty = np.empty) -> None:
        """``empty`` gives arrays."""
        self._empty = empty
        self._slots = _FEWEST
        self._table = np.full(2 * _FEWEST, _EMPTY)  # behind the slots is room for what runs over
        self._taken = self._known = 0  # slots; those of them that are not gone

    def __len__(self) -> int:
        return self._known

    def find(self, hashes: npt.NDArray[np.int64], is_equal: IsEqual) -> Any:
        """The row of each hash; -1 where there is none."""
        found = self._found(hashes, None)
        known = np.flatnonzero(found >= 0)
        wrong = known[~is_equal(known, found[known])] if len(known) else known
        if len(wrong):  # rows share the bits of their hashes: rare, so it may cost more
            found[wrong] = self._found(hashes[wrong], lambda at, rows: is_equal(wrong[at], rows))
        return found

    def _found(self, hashes: npt.NDArray[np.int64], is_equal: IsEqual | None) -> Any:
        wanted = _words(hashes)
        found = np.full(len(hashes), -1)
        at, slots = np.arange(len(hashes)), self._first_slots(wanted)
        while len(at):
            words = self._table.take(slots)
            goes_on = words != _EMPTY
            same = np.flatnonzero(((words ^ wanted) >> _BITS == 0) & (words & _ROW < 1 << 31))
            if len(same):
                rows = words[same] & _ROW
                if is_equal is not None:
                    is_it = is_equal(at[same], rows)
                    same, rows = same[is_it], rows[is_it]
                found[at[same]] = rows
                goes_on[same] = False
            left = np.flatnonzero(goes_on)
            at, slots, wanted = at[left], slots[left] + 1, wanted[left]
        return found

    def put(self, hashes: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> None:
        """Adds rows that are not there."""
        if not len(rows):
            return
        words = _words(hashes) | rows
        if self._taken + len(rows) > _FULL * self._slots or not self._fill(words):
            self._rebuild(words)
        self._known += len(rows)

    def remove(self, hashes: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> None:
        """Removes rows, which must be there with these hashes."""
        words = _words(hashes) | rows
        slots = self._first_slots(words)
        while len(words):
            is_it = self._table.take(slots) == words
            self._table[slots[is_it]] = _GONE
            words, slots = words[~is_it], slots[~is_it] + 1
        self._known -= len(rows)

    def _fill(self, words: npt.NDArray[np.int64]) -> bool:
        """Adds words; says whether there was room for all, else some are there."""
        slots = self._first_slots(words)
        self._taken += len(words)
        while len(words):
            free = np.flatnonzero(self._table.take(slots) == _EMPTY)
            self._table[slots[free]] = words[free]  # of several that want a slot, the last gets it
            left = np.flatnonzero(self._table.take(slots) != words)
            words, slots = words[left], slots[left] + 1
            if len(slots) and int(slots.max()) >= len(self._table) - 1:  # one stays empty
                return False
        return True

    def _rebuild(self, new: npt.NDArray[np.int64]) -> None:
        """With these words too, of which some may be there."""
        words = self._with_new(new)
        self._slots = max(_FEWEST, int(len(words) * _GROWTH / _FULL))
        end = 0
        for _, places in self._laid(words):
            end = int(places[-1]) + 1
        self._table = self._empty(max(end, self._slots) + _FEWEST, np.int64)
        self._table[:] = _EMPTY
        for piece, places in self._laid(words):
            self._table[places] = piece
        self._taken = len(words)

    def _with_new(self, new: npt.NDArray[np.int64]) -> Any:
        """The words of the table and these, in order, each once."""
        words = self._empty(len(self._table) + len(new), np.int64)
        words[: len(new)] = new
        count = len(new)
        for piece in _pieces(self._table):
            there = piece[piece & _ROW < 1 << 31]
            words[count : count + len(there)] = there
            count += len(there)
        words[:count].view(np.uint64).sort()
        kept = 0
        for piece in _pieces(words[:count]):
            is_other = np.append(not kept or piece[0] != words[kept - 1], piece[1:] != piece[:-1])
            others = piece[is_other]
            words[kept : kept + len(others)] = others
            kept += len(others)
        return words[:kept]

    def _laid(self, words: npt.NDArray[np.int64]) -> Iterator[tuple[Any, Any]]:
        """Pieces of ascending words, and the place of each word: its first slot, or the next one
        behind the word before."""
        end = 0
        for piece in _pieces(words):
            at = np.arange(len(piece))
            places = np.maximum.accumulate(np.maximum(self._first_slots(piece) - at, end)) + at
            end = int(places[-1]) + 1
            yield piece, places

    def _first_slots(self, words: npt.NDArray[np.int64]) -> Any:
        """Where probing begins for each: ascending with the bits of the hash."""
        bits = words.view(np.uint64) >> _HALF
        return ((bits * np.uint64(self._slots)) >> _HALF).view(np.int64)


def _pieces(array: npt.NDArray[np.int64]) -> Iterator[Any]:
    for begin in range(0, len(array), _PIECE):
        yield array[begin : begin + _PIECE]


def _words(hashes: npt.NDArray[np.int64]) -> Any:
    """Words of these hashes, without rows."""
    mixed = hashes.view(np.uint64)
    mixed = (mixed ^ (mixed >> _HALF)) * _SPREAD
    return (mixed >> _HALF << _HALF).view(np.int64)
