"""One number per key, for running aggregates: a dict while it is small, and then, if keys and values allow it, a table (``number_table``).

A dict of many keys waits for the memory four times a record: for its index, its entry, the key in it and the value. The table has a constant cost
per batch instead. A job with a running sum, per record: with the dict 167, 182, 479, 767 and 913 ns at 10^3 to 10^7 keys; with the table 340, 358 and
460 ns from 10^5 on. They meet near 32,000 keys.

Nobody is to notice which it is. So the table takes keys and values that are exactly int, within 64 bits, or values that are exactly float; with the
first other one everything is a dict again, and stays one until it is emptied.
"""

from __future__ import annotations

import sys
from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping, Sequence, ValuesView
from itertools import chain, islice
from operator import countOf
from typing import TYPE_CHECKING, Any, ClassVar

from flinkpy.state.lending import ABSENT, Lent

if TYPE_CHECKING:  # it imports numpy
    from flinkpy.state.number_table import NumbersByGroup, NumberTable

RUNNING_VALUES = ("_running value by field 0", "_running value by field 1")  # the states that are RunningValues, of pairs by the place of the key

_CHUNK = 1 << 16  # pairs that are stored at a time


class RunningValues(MutableMapping[Any, Any]):
    """A dict to everyone; to who works by the batch, ``plain`` or ``lend`` and ``take_back``.

    >>> values = RunningValues()
    >>> values.update({1: 10, 2: 20})
    >>> values.plain() is values.plain(), dict(values)
    (True, {1: 10, 2: 20})
    """

    threshold: ClassVar[int] = 1 << 15  # keys, up to which it is a dict

    def __init__(self) -> None:
        self._dict: dict[Any, Any] = {}
        self._table: NumberTable | None = None
        self._limit: float = self.threshold

    # -- by the batch --------------------------------------------------------------------------------------------------------

    def plain(self) -> dict[Any, Any] | None:
        """The dict itself, to read and write until the next call; None where it is a table."""
        if self._table is None and len(self._dict) > self._limit:
            self._become_table()
        return self._dict if self._table is None else None

    def lend(self, keys: Sequence[Any]) -> Lent | None:
        """The states of these keys, to be taken back after the batch, whatever became of it. None if from now on it is a dict, because of a key."""
        table = self._table
        if table is None:
            return None
        if countOf(map(type, keys), int) == len(keys):
            try:
                return table.lend(keys)
            except OverflowError:
                pass
        self._become_dict()
        return None

    def take_back(self, lent: Lent) -> None:
        """Stores what was lent. States may still be ABSENT, or of any type."""
        table, states = self._table, lent.states
        assert table is not None
        if countOf(map(type, states), table.kind) == len(states):
            try:
                table.take_back(lent)
                return
            except OverflowError:
                pass
        self._store(lent.entries())

    def by_group(self, max_parallelism: int) -> NumbersByGroup | None:
        """The pairs of the table by key group; None where it is a dict."""
        return None if self._table is None else self._table.by_group(max_parallelism)

    # -- which of both -------------------------------------------------------------------------------------------------------

    def _become_table(self) -> None:
        from flinkpy.state.number_table import NumberTable

        entries = self._dict
        kind = type(next(iter(entries.values())))
        if kind in (int, float) and _are(int, entries) and _are(kind, entries.values()):
            table = NumberTable(kind)
            try:
                table.store(entries)
            except OverflowError:
                pass
            else:
                self._table, self._dict = table, {}
                return
        self._limit = sys.maxsize

    def _become_dict(self) -> None:
        if self._table is not None:
            self._dict = dict(self._table.items())
            self._table, self._limit = None, sys.maxsize

    def _store(self, entries: dict[Any, Any]) -> None:
        if self._table is not None and _are(int, entries) and _are(self._table.kind, entries.values()):
            try:
                self._table.store(entries)
                return
            except OverflowError:
                pass
        self._become_dict()
        self._dict.update(entries)
        self.plain()

    # -- as a mapping --------------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if self._table is None:
            return self._dict[key]
        found = self._one(key)
        if found is ABSENT:
            raise KeyError(key)
        return found

    def _one(self, key: Any) -> Any:
        lent = self.lend([key])
        return self._dict.get(key, ABSENT) if lent is None else lent.states[0]

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._table is None:
            self._dict[key] = value
        else:
            self._store({key: value})

    def __delitem__(self, key: Any) -> None:
        self._become_dict()
        del self._dict[key]

    def __contains__(self, key: object) -> bool:
        return key in self._dict if self._table is None else self._one(key) is not ABSENT

    def __len__(self) -> int:
        return len(self._dict if self._table is None else self._table)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._dict) if self._table is None else (key for key, _ in self._table.items())

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """All of them; nothing may be stored meanwhile."""
        return iter(self._dict.items()) if self._table is None else self._table.items()

    def items(self) -> ItemsView[Any, Any]:
        return self._dict.items() if self._table is None else _Items(self)

    def values(self) -> ValuesView[Any]:
        return self._dict.values() if self._table is None else _Values(self)

    def update(self, entries: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = (), /, **named: Any) -> None:  # type: ignore[override]
        pairs = chain(entries.items() if isinstance(entries, Mapping) else entries, named.items())
        while chunk := dict(islice(pairs, _CHUNK)):
            self._store(chunk)

    def clear(self) -> None:
        self._dict.clear()
        self._table, self._limit = None, self.threshold

    def __repr__(self) -> str:
        return f"<RunningValues of {len(self)} keys, as a {'dict' if self._table is None else 'table'}>"


class _Items(ItemsView[Any, Any]):
    _mapping: RunningValues

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self._mapping.pairs()


class _Values(ValuesView[Any]):
    _mapping: RunningValues

    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in self._mapping.pairs())


def _are(kind: type, objects: Iterable[Any]) -> bool:
    """Whether all are exactly of that type."""
    return set(map(type, objects)) <= {kind}
