"""The entries of a table of numbers as they were at a freeze, without a copy of them at that
moment."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from flinkpy.core.clock import Turns
from flinkpy.core.keys import int64_hashes

_CHUNK = 1 << 15  # places that are copied at a time
_PART = 1 << 12  # entries that are made objects at a time


class FrozenArray:
    """An array as it was at a freeze, while its owner goes on to write to it. Another thread copies
    it. Before the owner writes it keeps here what it overwrites, so what the copy got wrong is put
    right afterwards.

    >>> array = np.array([1, 2, 3])
    >>> frozen = FrozenArray(array)
    >>> frozen.keep(np.array([1])); array[1] = 5
    True
    >>> frozen.read(Turns())
    array([1, 2, 3])
    """

    def __init__(self, array: Any, empty: Callable[[Any, Any], Any] = np.empty) -> None:
        """``empty`` gives the array to copy it to."""
        self._array = array
        self._empty = empty
        self._kept: list[tuple[Any, Any]] = []
        self._is_kept = np.zeros(len(array), dtype=np.bool_)
        self._is_read = False

    def keep(self, at: Any) -> bool:
        """Keeps what is at these places, once each; False if nobody needs it any more."""
        if self._is_read:
            return False
        at = at[~self._is_kept[at]]
        if len(at):
            self._is_kept[at] = True
            self._kept.append((at, self._array[at]))
        return True

    def read(self, turns: Turns) -> Any:
        """The array as it was."""
        array, copied = self._array, self._empty(self._array.shape, self._array.dtype)
        for start in range(0, len(array), _CHUNK):
            copied[start : start + _CHUNK] = array[start : start + _CHUNK]
            turns.give_way()
        self._is_read = True
        for at, kept in list(self._kept):
            copied[at] = kept
            turns.give_way()
        self._kept = []
        return copied


class Freezing:
    """The frozen arrays that still have to be told of writes."""

    def __init__(self) -> None:
        self._frozen: list[weakref.ref[FrozenArray]] = []

    def __bool__(self) -> bool:
        return bool(self._frozen)

    def freeze(self, array: object, empty: Callable[[Any, Any], Any] = np.empty) -> FrozenArray:
        """The array as it is now. ``empty`` gives the array to copy it to."""
        frozen = FrozenArray(array, empty)
        self._frozen.append(weakref.ref(frozen))
        return frozen

    def keep(self, at: object) -> None:
        """What is at these places is about to be overwritten."""
        self._frozen = [
            each for each in self._frozen if (frozen := each()) is not None and frozen.keep(at)
        ]

    def leave(self) -> None:
        """The array is not written to any more."""
        self._frozen = []


class FrozenNumberTable:
    """A table's entries as they were at a freeze."""

    def __init__(self, cells: FrozenArray, dtype: Any, mark: int) -> None:
        self._cells = cells
        self._dtype = dtype
        self._mark = mark

    def by_group(self, max_parallelism: int, key_at: int, turns: Turns) -> NumbersByGroup:
        """The entries by key group, for a snapshot."""
        cells = self._cells.read(turns).reshape(-1)
        taken = (cells[::2] != self._mark).nonzero()[0] << 1
        turns.give_way()
        groups = np.empty(len(taken), dtype=np.uint16)  # few bits, which are sorted quickly
        for start in range(0, len(taken), _CHUNK):
            part = slice(start, start + _CHUNK)
            groups[part] = int64_hashes(cells.take(taken[part])) % np.uint64(max_parallelism)
            turns.give_way()
        in_order = taken[groups.argsort(kind="stable")]
        return NumbersByGroup(
            cells,
            cells.view(self._dtype),
            in_order,
            np.bincount(groups, minlength=max_parallelism),
            key_at,
        )


class NumbersByGroup:
    """The entries of a table by key group: keys with their pairs, which have the key at ``key_at``.
    Only the group being read is made of objects."""

    def __init__(self, cells: Any, numbers: Any, order: Any, counts: Any, key_at: int) -> None:
        self._cells = cells
        self._numbers = numbers
        self._order = order
        self._key_at = key_at
        self._ends, self._counts = counts.cumsum().tolist(), counts.tolist()

    @property
    def groups(self) -> list[int]:
        """Those that have a pair."""
        return [group for group, count in enumerate(self._counts) if count]

    def entries(self, group: int, turns: Turns) -> list[tuple[int, tuple[Any, Any]]]:
        """The entries of a group."""
        found: list[tuple[int, tuple[Any, Any]]] = []
        for start in range(self._ends[group] - self._counts[group], self._ends[group], _PART):
            at = self._order[start : min(start + _PART, self._ends[group])]
            keys, numbers = self._cells.take(at).tolist(), self._numbers.take(at + 1).tolist()
            found += zip(keys, zip(numbers, keys) if self._key_at else zip(keys, numbers))
            turns.give_way()
        return found
