"""The slots of one state, with a small write-back cache in front of the database.

A read or write of the database costs some microseconds in Python, a hit in a dict a tenth of one.
So slots that were read or written lately are cached, and writes go to the database many at a time:
when the cache is full, and before a scan. Values that can be changed in place are cached as bytes,
so every read returns a private one. The cache holds at most ``CACHED_SLOTS`` slots and
``CACHED_BYTES``.

It has two generations. Slots that are used go to the young one; when that holds half of what the
cache may hold, it replaces the old one. So slots that are used often stay, without any order of use
being kept."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any

from flinkpy.core.keys import canonical_key
from flinkpy.core.mutability import is_safe
from flinkpy.core.program.by_value import StreamPickler
from flinkpy.state.rocksdb.database import RocksDBStore
from flinkpy.state.rocksdb.key_bytes import sized, unsized
from flinkpy.state.rocksdb.layout import KeyLayout
from flinkpy.state.rocksdb.value_bytes import decode_value, encode_value, pickled
from flinkpy.state.ttl.stamps import Stamped

CACHED_SLOTS = 1 << 15
CACHED_BYTES = 16 << 20
_LIGHT_TEXT = 256
_LIGHT = {int, float, bool, type(None)}
_ALONE = frozenset({int, str, bytes, type(None)})  # no other key that is decoded equals one of them
_place_of = itemgetter(0)
_STAMP = struct.Struct("<q")
_UNKNOWN, ABSENT = object(), object()


class Packed:
    """A cached value as bytes."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


def _is_light(value: Any) -> bool:
    """Whether the value may be cached as it is: it cannot be changed, and is not large."""
    kind = type(value)
    if kind in _LIGHT:
        return True
    if kind is str or kind is bytes:
        return len(value) <= _LIGHT_TEXT
    return kind is tuple and is_safe(value)


def _is_light_inside(stamped: Stamped) -> bool:
    return _is_light(stamped[0])


class Slots:
    """Slot to value (or ``Stamped`` where ``expires``)."""

    def __init__(self, store: RocksDBStore, layout: KeyLayout, name: str, expires: bool) -> None:
        self._store, self.layout = store, layout
        self._by_value = store.by_value
        self._encode = partial(
            _encode_stamped if expires else encode_value,
            by_value=self._by_value,
            what=f"the state of {name!r}",
        )
        self._decode: Callable[[bytes], Any] = _decode_stamped if expires else decode_value
        self._is_light: Callable[[Any], bool] = _is_light_inside if expires else _is_light
        self._cache: dict[Any, Any] = {}  # the young generation
        self._places: dict[Any, bytes] = {}  # of the slots that were looked up in the database
        # all of it is in the database; a slot that is also in the young one is valid there
        self._old: dict[Any, Any] = {}
        self._old_places: dict[Any, bytes] = {}
        self._dirty: set[Any] = set()
        self._new: set[Any] = set()  # the dirty slots that did not exist when they were put
        # whether a slot is, or was, not plain: 1.0 and True are the same slot as 1
        self.forms_differ = False
        # whether a slot is, or was, in a place that may be another one in another process
        self.is_only_here = False
        self._bytes = 0  # of the young one

    def get(self, slot: object, default: object = None) -> Any:
        """A private value; ``default`` if there is none."""
        found = self._cache.get(slot, _UNKNOWN)
        if found is _UNKNOWN:
            found = self._load(slot)
        if type(found) is Packed:
            return self._decode(found.data)
        return default if found is ABSENT else found

    def put(self, slot: object, value: object) -> None:
        """Stores the value; changing it later does not change the state."""
        cache = self._cache
        if cache.get(slot) is ABSENT:  # in the form it was asked for, which need not be this one
            del cache[slot]
            self._dirty.discard(slot)
            self._new.add(slot)
        if self._is_light(value):
            cache[slot] = value
        else:
            packed = cache[slot] = Packed(self._encode(value))
            self._bytes += len(packed.data)
        self._dirty.add(slot)
        if len(cache) > CACHED_SLOTS >> 1 or self._bytes > CACHED_BYTES >> 1:
            self._age()

    def delete(self, slot: object) -> None:
        self._cache[slot] = ABSENT
        self._dirty.add(slot)
        if len(self._cache) > CACHED_SLOTS >> 1:
            self._age()

    def scan(self, prefix: bytes) -> Iterator[tuple[Any, Any]]:
        """The (slot, value) pairs of all slots whose place begins with ``prefix``, at the time of
        the call."""
        return self.decoded(self.places(prefix))

    def places(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The (place, data) pairs in the database at the time of the call; they may be read in
        another thread, and after the database was closed."""
        self.flush()
        return self._store.scan(prefix)

    def slots(self, prefix: bytes) -> Iterator[Any]:
        """The same without the values."""
        return (self.read_slot(place, data) for place, data in self.places(prefix))

    def scan_from(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """All entries of this state from a place on, as the database has them now: for
        ``read_slot`` and ``touched_ns``."""
        self.flush()
        return self._store.scan(self.layout.prefix, start)

    def read_all(self, keys: list[Any], places: list[bytes]) -> dict[Any, Any]:
        """The values at many places, past the cache, by the keys of their slots: those of them that
        are there, in the form in which they were put."""
        decode, found = self._decode, dict[Any, Any]()
        for key, place, data in zip(keys, places, self._store.get_all(places)):
            if data is not None:
                if data[0] or type(key) not in _ALONE:
                    key = self.layout.key_of(self.read_slot(place, data))
                found[key] = decode(_payload(data))
        return found

    def read_one(self, place: bytes, data: bytes) -> tuple[Any, Any]:
        """The slot and the value of a database entry."""
        return self.read_slot(place, data), self._decode(_payload(data))

    def write_all(self, slots: Iterable[Any], places: list[bytes], values: Iterable[Any]) -> None:
        """Stores the values of many slots, past the cache."""
        entry = self._entry
        changes = [
            (place, entry(slot, place, value)) for slot, place, value in zip(slots, places, values)
        ]
        changes.sort(key=_place_of)
        self._store.write(changes)

    def delete_all(self, places: list[bytes]) -> None:
        """Removes what is at these places, past the cache."""
        self._store.write([(place, None) for place in sorted(places)])

    def flush(self) -> None:
        """Writes the changed slots to the database."""
        if self._dirty:
            cache = self._cache
            known = self._places.get
            known_before = self._old_places.get
            place = self.layout.place
            places = [known(slot) or known_before(slot) or place(slot) for slot in self._dirty]
            changes = [
                (at, self._entry(slot, at, cache[slot])) for slot, at in zip(self._dirty, places)
            ]
            changes.sort(key=_place_of)  # writing in the order of places is faster
            self._store.write(changes)
            self._dirty.clear()
            self._new.clear()
            if not self.layout.read_one_by_one:
                self._forget()

    def _age(self) -> None:
        self.flush()
        self._old, self._old_places = self._cache, self._places
        self._cache = {}
        self._places = {}
        self._bytes = 0

    def _forget(self) -> None:
        self._cache = {}
        self._places = {}
        self._bytes = 0
        self._old, self._old_places = {}, {}

    def _load(self, slot: object) -> Any:
        found = self._old.get(slot, _UNKNOWN)
        if found is not _UNKNOWN:
            place = self._old_places.get(slot)
            if place is not None:
                self._places[slot] = place
        else:
            found = self._read(slot)
        if type(found) is Packed:
            self._bytes += len(found.data)
        self._cache[slot] = found
        if len(self._cache) > CACHED_SLOTS >> 1 or self._bytes > CACHED_BYTES >> 1:
            self._age()
        return found

    def _read(self, slot: object) -> Any:
        place = self._places[slot] = self.layout.place(slot)
        data = self._store.get(place)
        if data is None:
            return ABSENT
        payload = _payload(data)
        found = self._decode(payload)
        return found if self._is_light(found) else Packed(payload)

    def decoded(self, entries: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[Any, Any]]:
        """The (slot, value) pairs of what ``places`` gave."""
        for place, data in entries:
            yield self.read_slot(place, data), self._decode(_payload(data))

    def _entry(self, slot: object, place: bytes, stored: object) -> bytes | None:
        """The bytes for the database: a byte that says whether the slot itself follows, the slot if
        so, and the value. A slot that exists keeps its form (1, 1.0 or True), as the key of a dict
        does."""
        if stored is ABSENT:
            return None
        payload = stored.data if type(stored) is Packed else self._encode(stored)
        plain = self.layout.is_plain(slot)
        self.forms_differ |= not plain
        if not plain and not self.is_only_here:
            self.is_only_here = self.layout.may_differ_elsewhere(place)
        if self.forms_differ and self.layout.read_one_by_one and slot not in self._new:
            before: bytes | None = self._store.get(place)
            if before is not None:
                return before[: len(before) - len(_payload(before))] + payload
        if plain:
            return b"\0" + payload
        return b"\1" + sized(pickled(slot, "a key of state", self._by_value)) + payload

    def read_slot(self, place: bytes, data: bytes) -> Any:
        """The slot of a database entry."""
        return (
            canonical_key(pickle.loads(unsized(data, 1)[0])) if data[0] else self.layout.slot(place)
        )


def _payload(data: bytes) -> bytes:
    return data[unsized(data, 1)[1] :] if data[0] else data[1:]


def touched_ns(data: bytes) -> int:
    """When an entry of a state that expires was last touched."""
    touched: int = _STAMP.unpack_from(data, unsized(data, 1)[1] if data[0] else 1)[0]
    return touched


def _encode_stamped(stamped: Stamped, by_value: StreamPickler, what: str) -> bytes:
    return _STAMP.pack(stamped[1]) + encode_value(stamped[0], by_value, what)


def _decode_stamped(data: bytes) -> Stamped:
    return decode_value(data[_STAMP.size :]), _STAMP.unpack_from(data)[0]
