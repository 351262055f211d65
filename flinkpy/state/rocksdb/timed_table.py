"""Entries by key and moment in the database (``flinkpy.state.timed_entries``).

Whoever uses them keeps in memory what it works on, so nothing is cached here: keys are read many at
a time, and written many at a time. A moment is a range of each key group, so a slice that is over
is a deletion of ranges, and all keys of a slice are read in the order in which they lie."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, repeat
from operator import itemgetter
from typing import Any

from flinkpy.state.rocksdb.database import RocksDBStore
from flinkpy.state.rocksdb.entries import Entries
from flinkpy.state.rocksdb.key_bytes import encode_key
from flinkpy.state.rocksdb.layout import GROUP, HEAD, MOMENT, TimeLayout, moment_bytes, moment_of
from flinkpy.state.rocksdb.slot_cache import Slots
from flinkpy.state.timed_entries import TimedEntries

_AT_ONCE = 1 << 12  # entries that are written at a time
_BEHIND_HEAD = HEAD + MOMENT
_place_in_moment = itemgetter(0)


class TimedTable(Entries):
    """As a mapping, which is what a snapshot has: for each key a dict from (moment, name) to the
    value."""

    def __init__(
        self, store: RocksDBStore, number: int, max_parallelism: int, name: str, expires: bool
    ) -> None:
        self._store, self.layout = store, TimeLayout(number, max_parallelism)
        self.slots = Slots(store, self.layout, name, expires)

    def pairs_at(self, places: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[Any, Any]]:
        """Of one key group: its keys lie at many places."""
        by_key: dict[Any, dict[Any, Any]] = {}
        for (key, at), value in self.slots.decoded(places):
            by_key.setdefault(key, {})[at] = value
        return iter(by_key.items())

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        return self.pairs_at(self.slots.places(self.layout.prefix))

    def __iter__(self) -> Iterator[Any]:
        return iter(dict.fromkeys(key for key, _ in self.slots.slots(self.layout.prefix)))

    def __getitem__(self, key: object) -> Any:
        return dict(self.pairs())[key]

    def __setitem__(self, key: object, stored: Mapping[Any, Any]) -> None:
        self.add_new(key, stored)

    def __delitem__(self, key: object) -> None:
        for at in self[key]:
            self.slots.delete((key, at))

    def fill(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        found = ((key, at, value) for key, stored in pairs for at, value in stored.items())
        place = self.layout.place
        while part := list(islice(found, _AT_ONCE)):
            slots = [(key, at) for key, at, _ in part]
            self.slots.write_all(slots, list(map(place, slots)), [value for *_, value in part])

    def add_new(self, key: object, stored: Mapping[Any, Any]) -> None:
        self.fill([(key, stored)])

    # -- moments -----------------------------------------------------------------------------------

    def values_of(self, moment: int, keys: list[Any]) -> dict[Any, Any]:
        """The values of those of the keys that are there, by the form in which they were put."""
        return self.slots.read_all(keys, self.layout.places(moment, keys))

    def put(self, moment: int, entries: Iterable[tuple[Any, Any]]) -> None:
        at, left = (moment, None), iter(entries)
        while part := list(islice(left, _AT_ONCE)):
            keys = [key for key, _ in part]
            self.slots.write_all(
                [(key, at) for key in keys],
                self.layout.places(moment, keys),
                [value for _, value in part],
            )

    def drop(self, moment: int, groups: range) -> None:
        begin, end = moment_bytes(moment), moment_bytes(moment + 1)
        for head in self._heads(groups):
            self._store.delete_range(head + begin, head + end)

    def moments(self, groups: range) -> set[int]:
        """The moments that hold something: one look for each of them in each key group."""
        found: set[int] = set()
        for head in self._heads(groups):
            at = head
            while (place := next(self._store.scan(head, at), (None,))[0]) is not None:
                found.add(moment_of(place))
                at = head + moment_bytes(moment_of(place) + 1)
        return found

    def first_moment(self, groups: range) -> int | None:
        first = (self.first_of(head, head, 1) for head in self._heads(groups))
        return min((moment_of(some[0][0]) for some in first if some), default=None)

    def together(
        self, moments: list[int], groups: range, most: int
    ) -> Iterator[list[dict[Any, Any]]]:
        """Walks through the ranges of all moments side by side: in each, keys are in the same
        order."""
        for head in self._heads(groups):
            yield from self._together_in(head, moments, most)

    def _together_in(
        self, head: bytes, moments: list[int], most: int
    ) -> Iterator[list[dict[Any, Any]]]:
        at_moments = [self._range(head, which, moment) for which, moment in enumerate(moments)]
        read, parts, last, count = self.slots.read_one, _empty(moments), b"", 0
        for behind, which, data in heapq.merge(*at_moments, key=_place_in_moment):
            if behind != last:
                if count == most:
                    yield parts
                    parts, count = _empty(moments), 0
                last = behind
                count += 1
            key, value = read(head + moment_bytes(moments[which]) + behind, data)
            parts[which][key[0]] = value
        if count:
            yield parts

    # -- numbers -----------------------------------------------------------------------------------

    def append(self, moment: int, number: int, pieces: Iterable[tuple[Any, Any]]) -> None:
        given = list(pieces)
        at = (moment, number)
        self.slots.write_all(
            [(key, at) for key, _ in given],
            self.layout.named_places([(moment, key, number) for key, _ in given]),
            [value for _, value in given],
        )

    def pieces(self, moment: int, key: Any) -> list[tuple[int, Any]]:
        entries = self._store.scan(self.layout.prefix_at(moment, key))
        return [(at[1], value) for (_, at), value in self.slots.decoded(entries)]

    # -- names -------------------------------------------------------------------------------------

    def put_values(
        self, moment: int, keys: list[Any], names: list[bytes], values: list[bytes]
    ) -> None:
        slots = [(key, (moment, name)) for key, name in zip(keys, names)]
        self.slots.write_all(slots, self.layout.places_of_names(moment, keys, names), values)

    def values_by_name(self, moment: int, keys: list[Any], names: list[bytes]) -> dict[bytes, Any]:
        return self.slots.read_all(names, self.layout.places_of_names(moment, keys, names))

    def values_behind(
        self, moment: int, key: Any, name: bytes | None, most: int
    ) -> list[tuple[bytes, Any]]:
        prefix = self.layout.prefix_at(moment, key)
        start = prefix if name is None else prefix + encode_key(name) + b"\0"
        entries = islice(self._store.scan(prefix, start), most)
        return [(at[1], value) for (_, at), value in self.slots.decoded(entries)]

    def put_named(self, entries: list[tuple[int, Any, Any]]) -> None:
        slots = [(key, (moment, name)) for moment, key, name in entries]
        self.slots.write_all(slots, self.layout.named_places(entries), repeat(None))

    def remove_named(self, entries: list[tuple[int, Any, Any]]) -> None:
        self.slots.delete_all(self.layout.named_places(entries))

    def first_of(self, head: bytes, start: bytes, most: int) -> list[tuple[bytes, bytes]]:
        """The first entries of a key group, from a place on."""
        return list(islice(self._store.scan(head, start), most))

    def take_first(
        self, groups: range, most: int, starts: dict[bytes, bytes], until: int | None
    ) -> tuple[list[tuple[int, Any, Any]], int | None, bool]:
        """``starts``: where the entries of a key group begin; what is before was removed, and it
        would take long to walk over it."""
        each = max(1, most // len(groups)) + 1
        found = {
            head: self.first_of(head, starts.get(head, head), each) for head in self._heads(groups)
        }
        lasts = [moment_of(some[-1][0]) for some in found.values() if len(some) == each]
        bound = min(lasts, default=None)
        firsts = [moment_of(some[0][0]) for some in found.values() if some]
        if until is not None and (bound is None or bound > until):
            bound, is_cut = until + 1, False
        else:
            is_cut = bound is not None and min(firsts) == bound
        taken: list[tuple[int, Any, Any]] = []
        for head, some in found.items():
            if bound is not None:
                end_of_these = moment_bytes(bound + is_cut)
                some = [entry for entry in some if entry[0][HEAD:_BEHIND_HEAD] < end_of_these]
            if some:
                taken += [(at[0], key, at[1]) for (key, at), _ in self.slots.decoded(some)]
                end = some[-1][0] + b"\0"
                self._store.delete_range(starts.get(head, head), end)
                starts[head] = end
        return taken, bound, is_cut

    def _range(self, head: bytes, which: int, moment: int) -> Iterator[tuple[bytes, int, bytes]]:
        begin, end = head + moment_bytes(moment), head + moment_bytes(moment + 1)
        return (
            (place[_BEHIND_HEAD:], which, data)
            for place, data in self._store.scan_range(begin, end)
        )

    def _heads(self, groups: range) -> Iterator[bytes]:
        return (self.layout.prefix + group.to_bytes(GROUP, "big") for group in groups)


class TimedEntriesOnDisk(TimedEntries):
    """The table of some key groups, which ``find`` gives: None where there is none and it is not to
    be made. ``memory`` says what the operator may keep."""

    def __init__(
        self, find: Callable[[bool], TimedTable | None], groups: range, memory: Callable[[], int]
    ) -> None:
        self._find, self._groups, self._memory = find, groups, memory
        self._starts: dict[bytes, bytes] = {}  # where entries begin that are taken by time

    def memory(self) -> int:
        return self._memory()

    def moments(self) -> set[int]:
        table = self._find(False)
        return set() if table is None else table.moments(self._groups)

    def get(self, moment: int, keys: list[Any]) -> dict[Any, Any]:
        return {} if (table := self._find(False)) is None else table.values_of(moment, keys)

    def put(self, moment: int, entries: Iterable[tuple[Any, Any]]) -> None:
        table = self._find(True)
        assert table is not None
        table.put(moment, entries)

    def drop(self, moment: int) -> None:
        if (table := self._find(False)) is not None:
            table.drop(moment, self._groups)

    def together(self, moments: list[int], most: int) -> Iterator[list[dict[Any, Any]]]:
        table = self._find(False)
        return iter(()) if table is None else table.together(moments, self._groups, most)

    def append(self, moment: int, number: int, pieces: Iterable[tuple[Any, Any]]) -> None:
        table = self._find(True)
        assert table is not None
        table.append(moment, number, pieces)

    def pieces(self, moment: int, key: Any) -> list[tuple[int, Any]]:
        return [] if (table := self._find(False)) is None else table.pieces(moment, key)

    def put_values(
        self, moment: int, keys: list[Any], names: list[bytes], values: list[bytes]
    ) -> None:
        table = self._find(True)
        assert table is not None
        table.put_values(moment, keys, names, values)

    def values_of(self, moment: int, keys: list[Any], names: list[bytes]) -> dict[bytes, Any]:
        table = self._find(False)
        return {} if table is None else table.values_by_name(moment, keys, names)

    def values_behind(
        self, moment: int, key: Any, name: bytes | None, most: int
    ) -> list[tuple[bytes, Any]]:
        table = self._find(False)
        return [] if table is None else table.values_behind(moment, key, name, most)

    def first_moment(self) -> int | None:
        table = self._find(False)
        return None if table is None else table.first_moment(self._groups)

    def put_named(self, entries: list[tuple[int, Any, Any]]) -> None:
        table = self._find(True)
        assert table is not None
        table.put_named(entries)

    def remove_named(self, entries: list[tuple[int, Any, Any]]) -> None:
        if (table := self._find(False)) is not None:
            table.remove_named(entries)

    def take_first(
        self, most: int, until: int | None = None
    ) -> tuple[list[tuple[int, Any, Any]], int | None, bool]:
        if (table := self._find(False)) is None:
            return [], None, False
        return table.take_first(self._groups, most, self._starts, until)

    def rewind(self) -> None:
        self._starts.clear()


def _empty(moments: list[int]) -> list[dict[Any, Any]]:
    return [{} for _ in moments]
