"""The running results of an operator, one per key: a dict while there are few, and then, if all are
pairs of numbers, a table (``number_table``).

In a dict of many keys each record misses the cache five times: for the index, the entry, its key,
the pair and the value. The table has a constant cost per batch instead. The two cost the same near
32,000 keys.

Which of the two it is cannot be seen, because the table holds only what it can return unchanged:
under a key that is exactly an int, a tuple of this int and a number. Both are within 64 bits, and
the numbers are all exactly int or all exactly float. With the first other entry everything becomes
a dict again, and stays one until it is emptied. Why the table stays:
docs/decisions/running-results.md."""

from __future__ import annotations

import sys
from collections.abc import (
    Callable,
    Collection,
    ItemsView,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
    ValuesView,
)
from itertools import chain, islice
from operator import countOf
from typing import TYPE_CHECKING, Any, ClassVar

from flinkpy.core.clock import Turns
from flinkpy.core.mutability import private_copy
from flinkpy.state.heap.batch_view import BatchView
from flinkpy.state.layers.layers import Layers
from flinkpy.state.state_isolation import settled

if TYPE_CHECKING:  # it imports numpy
    from flinkpy.state.heap.frozen_numbers import NumbersByGroup
    from flinkpy.state.heap.number_table import NumberTable

RUNNING_RESULT = "_running result"  # the name of the state that is RunningValues

_CHUNK = 1 << 16  # entries that are stored at a time


class RunningValues(MutableMapping[Any, Any]):
    """A mapping. Operators work by the batch: with ``plain`` if it is a dict, else with
    ``view_batch`` and ``commit``.

    >>> values = RunningValues()
    >>> values.update({1: (1, 10), 2: (2, 20)})
    >>> values.plain() is values.plain(), dict(values)
    (True, {1: (1, 10), 2: (2, 20)})
    """

    threshold: ClassVar[int] = 1 << 15  # keys, up to which it is a dict

    def __init__(self, copied_at_once: int = 1 << 15) -> None:
        self._copied_at_once = copied_at_once
        self._set_dict({})
        self._table: NumberTable | None = None
        self._key_at: int | None = 0
        self._limit: float = self.threshold

    def _set_dict(self, entries: dict[Any, Any]) -> None:
        self._dict = entries
        self._layers = Layers(RUNNING_RESULT, entries, self._rebind, private_copy, 0)

    def _rebind(self, entries: dict[Any, Any]) -> None:
        self._dict = entries

    def allow_table(self, key_at: int | None) -> None:
        """Allows a table of pairs that have their key at position ``key_at``; with None it stays a
        dict."""
        if key_at != self._key_at:
            self.become_dict()
        self._key_at = key_at
        self._limit = sys.maxsize if key_at is None else self.threshold

    @property
    def number_bytes(self) -> int | None:
        """The memory of the table; None while it is a dict."""
        return None if self._table is None else self._table.nbytes

    @property
    def entries(self) -> dict[Any, Any]:
        """The dict, only to be looked at."""
        return self._dict

    # -- by the batch ------------------------------------------------------------------------------

    def plain(self) -> dict[Any, Any] | None:
        """The dict itself, to read and write until the next call; None if it is a table."""
        if self._table is None:
            if not self._layers.is_settled:
                self._layers.after_batch()
            elif len(self._dict) > self._limit:
                self._become_table()
        return self._dict if self._table is None else None

    def view_batch(self, keys: Sequence[Any]) -> BatchView | None:
        """The numbers of these keys; always followed by ``commit``, even if the batch fails. None
        if a key has just made it a dict."""
        table = self._table
        if table is not None and _are(int, keys):
            try:
                return table.view_batch(keys)
            except OverflowError:
                pass
        self.become_dict()
        return None

    def commit(self, view: BatchView) -> None:
        """Stores the view's states. They may be ABSENT, or of any type."""
        table, states = self._table, view.states
        assert table is not None
        if _are(table.kind, states):
            try:
                table.commit(view)
                return
            except OverflowError:
                pass
        entries = view.entries()
        self._store(dict(zip(entries, self._pairs(entries, entries.values()))))

    def freeze_table(self) -> Callable[[int, Turns], NumbersByGroup] | None:
        """The entries of the table as they are now, by key group for a max parallelism; None if it
        is a dict."""
        if self._table is None:
            return None
        frozen, key_at = self._table.freeze(), self._key_at or 0
        return lambda max_parallelism, turns: frozen.by_group(max_parallelism, key_at, turns)

    def freeze_entries(self) -> Mapping[Any, Any]:
        """The entries of the dict as they are now."""
        if self._layers.is_settled and len(self._dict) <= self._copied_at_once:
            return settled(RUNNING_RESULT, self._dict.copy())
        return self._layers.freeze()

    # -- dict or table -----------------------------------------------------------------------------

    def _become_table(self) -> None:
        from flinkpy.state.heap.number_table import NumberTable

        self._limit = sys.maxsize
        entries, key_at = self._dict, self._key_at or 0
        first = next(iter(entries.values()))
        kind = type(first[1 - key_at]) if type(first) is tuple and len(first) == 2 else None
        numbers = numbers_of(entries, key_at, kind) if kind is int or kind is float else None
        if kind is not None and numbers is not None:
            table = NumberTable(kind)
            try:
                table.store(numbers)
            except OverflowError:
                return
            self._table = table
            self._set_dict({})

    def become_dict(self) -> None:
        """Makes it a dict until it is emptied, or a table is allowed again."""
        if self._table is not None:
            self._set_dict(dict(self._items()))
            self._table, self._limit = None, sys.maxsize

    def _store(self, entries: dict[Any, Any]) -> None:
        if self._table is not None:
            numbers = numbers_of(entries, self._key_at or 0, self._table.kind)
            if numbers is not None:
                try:
                    self._table.store(numbers)
                    return
                except OverflowError:
                    pass
        self.become_dict()
        self._dict.update(entries)
        self.plain()

    def _pairs(self, keys: Iterable[int], numbers: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        return zip(numbers, keys) if self._key_at else zip(keys, numbers)

    # -- as a mapping ------------------------------------------------------------------------------

    def __getitem__(self, key: object) -> Any:
        self.become_dict()  # single keys are read only where it is no table
        return self._dict[key]

    def __setitem__(self, key: object, value: object) -> None:
        self.become_dict()
        self._dict[key] = value

    def __delitem__(self, key: object) -> None:
        self.become_dict()
        del self._dict[key]

    def __contains__(self, key: object) -> bool:
        self.become_dict()
        return key in self._dict

    def __len__(self) -> int:
        return len(self._dict if self._table is None else self._table)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._dict) if self._table is None else (key for key, _ in self._table.items())

    def _items(self) -> Iterator[tuple[Any, Any]]:
        """All entries; nothing may be stored while iterating."""
        if self._table is None:
            return iter(self._dict.items())
        if self._key_at:
            return ((pair[0], pair[::-1]) for pair in self._table.items())
        return ((pair[0], pair) for pair in self._table.items())

    def items(self) -> ItemsView[Any, Any]:
        return self._dict.items() if self._table is None else _Items(self)

    def values(self) -> ValuesView[Any]:
        return self._dict.values() if self._table is None else _Values(self)

    def update(  # type: ignore[override]
        self, entries: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = (), /, **named: Any
    ) -> None:
        pairs = chain(entries.items() if isinstance(entries, Mapping) else entries, named.items())
        while chunk := dict(islice(pairs, _CHUNK)):
            self._store(chunk)

    def clear(self) -> None:
        self._dict.clear()
        self._table = None
        self.allow_table(self._key_at)

    def __repr__(self) -> str:
        return (
            f"<RunningValues of {len(self)} keys, as a "
            f"{'dict' if self._table is None else 'table'}>"
        )


class _Items(ItemsView[Any, Any]):
    _mapping: RunningValues

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self._mapping._items()


class _Values(ValuesView[Any]):
    _mapping: RunningValues

    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in self._mapping._items())


def numbers_of(entries: dict[Any, Any], key_at: int, kind: type) -> dict[int, Any] | None:
    """The numbers by key, if every key is exactly an int and its value a pair of this int and a
    number exactly of that kind; else None.

    >>> (
    ...     numbers_of({1: (1, 10)}, 0, int),
    ...     numbers_of({1: (True, 10)}, 0, int),
    ...     numbers_of({1: (1, 2.5)}, 0, int),
    ... )
    ({1: 10}, None, None)
    """
    pairs = entries.values()
    if not _are(int, entries) or not _are(tuple, pairs) or not {2}.issuperset(map(len, pairs)):
        return None
    keys, numbers = [pair[key_at] for pair in pairs], [pair[1 - key_at] for pair in pairs]
    return (
        dict(zip(keys, numbers))
        if _are(int, keys) and keys == list(entries) and _are(kind, numbers)
        else None
    )


def _are(kind: type, objects: Collection[Any]) -> bool:
    """Whether all are exactly of that type."""
    return countOf(map(type, objects), kind) == len(objects)
