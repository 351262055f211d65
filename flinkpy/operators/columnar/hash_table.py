"""A hash table from 64-bit hashes to numbers, of which whole arrays are looked up at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from flinkpy.operators.columnar.array_memory import Empty

if TYPE_CHECKING:
    import numpy.typing as npt

# Of these positions in the array of hashes: whether the key with this number is really the one
IsEqual = Callable[[Any, Any], Any]

_FEWEST = 64
_PIECE = 1 << 13
_EMPTY, _GONE = -1, -2  # in place of a number
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


class HashTable:
    """Open addressing with linear probing; at most half of the slots are taken. A slot is a hash
    and a number, beside each other in memory. Different keys may have one hash: then ``find`` asks
    which of them is meant.

    >>> table = HashTable()
    >>> table.put(np.array([70, 80]), np.array([0, 1]))
    >>> table.find(np.array([80, 90, 70])).tolist()
    [1, -1, 0]
    >>> table.remove(np.array([1]))
    >>> table.find(np.array([80, 90, 70])).tolist()
    [-1, -1, 0]
    """

    def __init__(self, empty: Empty = np.empty) -> None:
        """``empty`` gives arrays."""
        self._empty = empty
        self._allocate(_FEWEST)
        self._slot_of = empty(_FEWEST, np.int32)  # the slot of each number

    def _allocate(self, slots: int) -> None:
        self._table = self._empty((slots, 2), np.int64)
        self._hashes, self._numbers = self._table[:, 0], self._table[:, 1]
        self._numbers[:] = _EMPTY
        self._last = slots - 1
        self._shift = np.uint64(64 - slots.bit_length() + 1)
        self._taken = self._known = 0  # slots; those of them that are not gone

    def __len__(self) -> int:
        return self._known

    def find(self, hashes: npt.NDArray[np.int64], is_equal: IsEqual | None = None) -> Any:
        """The number of each hash's key; -1 where there is none."""
        slots = self._first_slots(hashes)
        numbers, goes_on = self._in_slots(slots, hashes, None, is_equal)
        at = np.flatnonzero(goes_on)
        slots = slots[at]
        while len(at):
            slots = (slots + 1) & self._last
            numbers[at], goes_on = self._in_slots(slots, hashes[at], at, is_equal)
            left = np.flatnonzero(goes_on)
            at, slots = at[left], slots[left]
        return numbers

    def _in_slots(
        self, slots: Any, hashes: npt.NDArray[np.int64], at: Any, is_equal: IsEqual | None
    ) -> tuple[Any, Any]:
        """The numbers that these slots have for the hashes, and which hashes the next slots may
        have."""
        rows = self._table.take(slots, axis=0)
        found = rows[:, 1]
        same = rows[:, 0] == hashes
        if self._taken > self._known:
            same &= found != _GONE
        if is_equal is not None:
            asked = np.flatnonzero(same & (found >= 0))
            same[asked] = is_equal(asked if at is None else at[asked], found[asked])
        goes_on = found != _EMPTY
        goes_on &= ~same
        return np.where(same, found, _EMPTY), goes_on

    def put(self, hashes: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> None:
        """Adds keys that are not there."""
        if not len(numbers):
            return
        most = int(numbers.max())
        if most >= len(self._slot_of):
            grown = self._empty(max(most + 1, 2 * len(self._slot_of)), np.int32)
            grown[: len(self._slot_of)] = self._slot_of
            self._slot_of = grown
        if 2 * (self._taken + len(numbers)) > len(self._table):
            self._rebuild(self._known + len(numbers))
        self._fill(hashes, numbers)

    def growth(self, keys: int) -> int:
        """How many bytes it takes for a moment to make room for so many more keys; 0 if there is
        room."""
        if 2 * (self._taken + keys) <= len(self._table):
            return 0
        return 16 * _slots(self._known + keys)

    def _fill(self, hashes: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> None:
        waiting, slots = np.arange(len(numbers)), self._first_slots(hashes)
        while len(waiting):
            free = np.flatnonzero(self._numbers[slots] == _EMPTY)
            wanted, contending = slots[free], numbers[waiting[free]]
            self._numbers[wanted] = contending  # of several that want a slot, the last gets it
            won = self._numbers[wanted] == contending
            self._hashes[wanted[won]] = hashes[waiting[free[won]]]
            self._slot_of[contending[won]] = wanted[won]
            is_left = np.ones(len(waiting), np.bool_)
            is_left[free[won]] = False
            waiting, slots = waiting[is_left], (slots[is_left] + 1) & self._last
        self._taken += len(numbers)
        self._known += len(numbers)

    def remove(self, numbers: npt.NDArray[np.int64]) -> None:
        """Removes the keys with these numbers."""
        self._numbers[self._slot_of[numbers]] = _GONE
        self._known -= len(numbers)

    def _rebuild(self, keys: int) -> None:
        """With room for so many keys, without the slots of those that are gone."""
        old = self._table
        self._allocate(_slots(keys))
        for at in range(0, len(old), 2 * _PIECE):  # arrays that fit into the processor's cache
            piece = old[at : at + 2 * _PIECE]
            there = np.flatnonzero(piece[:, 1] >= 0)
            self._fill(piece[there, 0], piece[there, 1])

    def _first_slots(self, hashes: npt.NDArray[np.int64]) -> Any:
        words = hashes.view(np.uint64)
        return (((words ^ (words >> _HALF)) * _SPREAD) >> self._shift).view(np.int64)


def _slots(keys: int) -> int:
    """How many slots a table for so many keys gets."""
    return max(_FEWEST, 1 << (2 * keys + keys // 2).bit_length())
