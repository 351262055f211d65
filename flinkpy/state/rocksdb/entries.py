"""One state of all keys as a mapping from key to stored value, in the same form as on the heap: a
value, a list or a dict.

Snapshots are made of these mappings, so those of both backends are the same. Every value that is
returned is a private copy: to change it, store it again."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from typing import Any

from flinkpy.state.rocksdb.database import RocksDBStore
from flinkpy.state.rocksdb.layout import KeyLayout, ListLayout, MapLayout
from flinkpy.state.rocksdb.slot_cache import Slots

_MISSING = object()


class Entries(MutableMapping[Any, Any]):
    """What the mappings of values, maps and lists share."""

    slots: Slots
    next_number = 0  # of the next slot, where slots are numbered

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """The (key, stored) pairs of all keys at the time of the call."""
        return self.pairs_at(self.slots.places(self.slots.layout.prefix))

    def pairs_at(self, places: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[Any, Any]]:
        """The (key, stored) pairs of what ``Slots.places`` gave."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def fill(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Stores entries of keys that have none yet."""
        for key, stored in pairs:
            self.add_new(key, stored)

    def add_new(self, key: Any, stored: Any) -> None:
        raise NotImplementedError

    def clear(self) -> None:
        slots = self.slots
        for slot in slots.slots(slots.layout.prefix):
            slots.delete(slot)

    def items(self) -> ItemsView[Any, Any]:
        return _Items(self)

    def values(self) -> ValuesView[Any]:
        return _Values(self)


class _Items(ItemsView[Any, Any]):
    _mapping: Entries

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self._mapping.pairs()


class _Values(ValuesView[Any]):
    _mapping: Entries

    def __iter__(self) -> Iterator[Any]:
        return (stored for _, stored in self._mapping.pairs())


class ValueEntries(Entries):
    """One value per key."""

    def __init__(
        self, store: RocksDBStore, number: int, max_parallelism: int, name: str, expires: bool
    ) -> None:
        self.slots = slots = Slots(store, KeyLayout(number, max_parallelism), name, expires)
        self._get = slots.get
        self.put = slots.put

    def get(self, key: object, default: object = None) -> Any:
        return self._get(key, default)

    def __getitem__(self, key: object) -> Any:
        found = self._get(key, _MISSING)
        if found is _MISSING:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return self._get(key, _MISSING) is not _MISSING

    def __setitem__(self, key: object, stored: object) -> None:
        self.put(key, stored)

    def add_new(self, key: object, stored: object) -> None:
        self.put(key, stored)

    def __delitem__(self, key: object) -> None:
        if self._get(key, _MISSING) is _MISSING:
            raise KeyError(key)
        self.slots.delete(key)

    def discard(self, key: object) -> None:
        """Removes the key's value without checking whether there is one."""
        self.slots.delete(key)

    def __iter__(self) -> Iterator[Any]:
        return self.slots.slots(self.slots.layout.prefix)

    def pairs_at(self, places: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[Any, Any]]:
        return self.slots.decoded(places)


class ElementEntries(Entries):
    """What lists and maps share: several slots per key, side by side."""

    layout: MapLayout

    def gathered(self, elements: Iterable[tuple[Any, Any]]) -> Any:
        """A list or dict of (sub, value)."""
        raise NotImplementedError

    def elements(self, key: object) -> Iterator[tuple[Any, Any]]:
        """The (sub, value) pairs of one key, at the time of the call."""
        return ((slot[1], value) for slot, value in self.slots.scan(self.layout.prefix_of(key)))

    def get(self, key: object, default: object = None) -> Any:
        return self.gathered(self.elements(key)) or default

    def __getitem__(self, key: object) -> Any:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __delitem__(self, key: object) -> None:
        if not self.discard(key):
            raise KeyError(key)

    def discard(self, key: object) -> int:
        """Removes all slots of the key, and returns how many there were."""
        delete, removed = self.slots.delete, 0
        for slot in self.slots.slots(self.layout.prefix_of(key)):
            delete(slot)
            removed += 1
        return removed

    def __iter__(self) -> Iterator[Any]:
        return _without_repeats(slot[0] for slot in self.slots.slots(self.layout.prefix))

    def pairs_at(self, places: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[Any, Any]]:
        key: Any = _MISSING
        elements: list[tuple[Any, Any]] = []
        for (of_key, sub), value in self.slots.decoded(places):
            if key is _MISSING:
                key = of_key
            elif (
                of_key is not key and of_key != key
            ):  # NaN is the one NAN, which does not equal itself
                yield key, self.gathered(elements)
                key, elements = of_key, []
            elements.append((sub, value))
        if elements:
            yield key, self.gathered(elements)


class MapEntries(ElementEntries):
    """One dict per key, with one slot per entry."""

    def __init__(
        self, store: RocksDBStore, number: int, max_parallelism: int, name: str, expires: bool
    ) -> None:
        self.layout = MapLayout(number, max_parallelism)
        self.slots = Slots(store, self.layout, name, expires)

    def gathered(self, elements: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
        return dict(elements)

    def __setitem__(self, key: object, stored: Mapping[Any, Any]) -> None:
        self.discard(key)
        self.add_new(key, stored)

    def add_new(self, key: object, stored: Mapping[Any, Any]) -> None:
        for sub, value in stored.items():
            self.slots.put((key, sub), value)


class ListEntries(ElementEntries):
    """One list per key, with one slot per element."""

    def __init__(
        self, store: RocksDBStore, number: int, max_parallelism: int, name: str, expires: bool
    ) -> None:
        self.layout = ListLayout(number, max_parallelism)
        self.slots = Slots(store, self.layout, name, expires)
        self.next_number = 0

    def gathered(self, elements: Iterable[tuple[Any, Any]]) -> list[Any]:
        return [value for _, value in elements]

    def __setitem__(self, key: object, stored: Iterable[Any]) -> None:
        self.discard(key)
        self.extend(key, stored)

    def extend(self, key: object, stored: Iterable[Any]) -> None:
        """Appends to the key's list without reading it."""
        for value in stored:
            self.slots.put((key, self.next_number), value)
            self.next_number += 1

    def add_new(self, key: object, stored: Iterable[Any]) -> None:
        self.extend(key, stored)


class EntriesOfKey(MutableMapping[Any, Any]):
    """The map of one key, entry by entry."""

    def __init__(self, entries: MapEntries, key: object) -> None:
        self._entries = entries
        self._slots = entries.slots
        self._key = key

    def get(self, sub: object, default: object = None) -> Any:
        return self._slots.get((self._key, sub), default)

    def __getitem__(self, sub: object) -> Any:
        found = self.get(sub, _MISSING)
        if found is _MISSING:
            raise KeyError(sub)
        return found

    def __setitem__(self, sub: object, value: object) -> None:
        self._slots.put((self._key, sub), value)

    def __delitem__(self, sub: object) -> None:
        self[sub]
        self._slots.delete((self._key, sub))

    def __iter__(self) -> Iterator[Any]:
        return (sub for sub, _ in self._entries.elements(self._key))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _without_repeats(keys: Iterable[Any]) -> Iterator[Any]:
    last: Any = _MISSING
    for key in keys:
        if last is _MISSING or (key is not last and key != last):
            yield key
        last = key
