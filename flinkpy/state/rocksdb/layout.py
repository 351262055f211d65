"""Where a slot of state is in the database: state (2 bytes), key group (2 bytes), key, and for
lists and maps the element's place in them.

::

    value, reducing, aggregating, engine:  state | group | key      a slot for each key
    map:   state | group | length | key | user key                  a slot for each entry
    list:  state | group | length | key | number                    a slot for each element
timed: state | group | moment | length | key | name             a slot for each moment and name

So the state of a key group is one range, and so is the list or map of a key. Appending to a list is
one write and no read: the numbers come from a counter of the whole state, which only has to grow.
"""

from __future__ import annotations

from typing import Any

from flinkpy.core.keys import key_group, key_groups
from flinkpy.state.rocksdb.key_bytes import (
    decode_key,
    encode_key,
    is_plain,
    may_differ_elsewhere,
    sized,
    unsized,
)

STATE, GROUP = 2, 2  # bytes of each
HEAD = STATE + GROUP
MOMENT = 8
_SEQUENCE = 8
_SIGN = 1 << 63


class KeyLayout:
    """One slot per key; the slot is the key."""

    read_one_by_one = True  # whether it is worth keeping slots that were written

    def __init__(self, number: int, max_parallelism: int) -> None:
        self.prefix, self._max_parallelism = number.to_bytes(2, "big"), max_parallelism

    def head(self, key: object) -> bytes:
        return self.prefix + key_group(key, self._max_parallelism).to_bytes(2, "big")

    def place(self, slot: Any) -> bytes:
        return self.head(slot) + encode_key(slot)

    def is_plain(self, slot: Any) -> bool:
        """Whether ``slot`` can be decoded from its place alone."""
        return is_plain(slot)

    def may_differ_elsewhere(self, place: bytes) -> bool:
        """Whether the slot may have another place in another process. Keys of records never have:
        they could not be partitioned."""
        return False

    def slot(self, place: bytes) -> Any:
        return decode_key(place[HEAD:])

    def key_of(self, slot: Any) -> Any:
        """The key that the slot belongs to."""
        return slot


class MapLayout(KeyLayout):
    """One slot per entry of the key's map; the slot is (key, user key)."""

    def key_of(self, slot: Any) -> Any:
        return slot[0]

    def prefix_of(self, key: object) -> bytes:
        """What all slots of the key begin with."""
        return self.head(key) + sized(encode_key(key))

    def place(self, slot: tuple[Any, Any]) -> bytes:
        return self.prefix_of(slot[0]) + self.encode_sub(slot[1])

    def is_plain(self, slot: tuple[Any, Any]) -> bool:
        return is_plain(slot[0]) and is_plain(slot[1])

    def may_differ_elsewhere(self, place: bytes) -> bool:
        return may_differ_elsewhere(place[unsized(place, HEAD)[1] :])

    def slot(self, place: bytes) -> tuple[Any, Any]:
        key, end = unsized(place, HEAD)
        return decode_key(key), self.decode_sub(place[end:])

    def encode_sub(self, sub: Any) -> bytes:
        return encode_key(sub)

    def decode_sub(self, data: bytes) -> Any:
        return decode_key(data)


class TimeLayout(MapLayout):
    """One slot per key, moment and name; the slot is (key, (moment, name)). What belongs to one
    moment is one range of each key group."""

    read_one_by_one = False

    def place(self, slot: tuple[Any, Any]) -> bytes:
        key, (moment, name) = slot
        at = moment_bytes(moment)
        return self.head(key) + at + sized(encode_key(key)) + encode_key(name)

    def prefix_at(self, moment: int, key: object) -> bytes:
        """What the places of a key at a moment begin with. Those of its numbers, which are not
        negative, are in their order."""
        return self.head(key) + moment_bytes(moment) + sized(encode_key(key))

    def places(self, moment: int, keys: list[Any]) -> list[bytes]:
        """The places of these keys at a moment, without a name."""
        at, prefix = moment_bytes(moment), self.prefix
        groups = key_groups(keys, self._max_parallelism)
        heads = {group: prefix + group.to_bytes(GROUP, "big") + at for group in set(groups)}
        end = encode_key(None)
        return [heads[group] + sized(encode_key(key)) + end for group, key in zip(groups, keys)]

    def named_places(self, entries: list[tuple[int, Any, Any]]) -> list[bytes]:
        """The places of moments, keys and names."""
        groups = key_groups([key for _, key, _ in entries], self._max_parallelism)
        heads = {group: self.prefix + group.to_bytes(GROUP, "big") for group in set(groups)}
        return [
            heads[group] + moment_bytes(moment) + sized(encode_key(key)) + encode_key(name)
            for group, (moment, key, name) in zip(groups, entries)
        ]

    def places_of_names(self, moment: int, keys: list[Any], names: list[bytes]) -> list[bytes]:
        """The places of names at a moment, under a few keys."""
        prefixes = {key: self.prefix_at(moment, key) for key in set(keys)}
        return [prefixes[key] + encode_key(name) for key, name in zip(keys, names)]

    def may_differ_elsewhere(self, place: bytes) -> bool:
        return False

    def slot(self, place: bytes) -> tuple[Any, Any]:
        key, end = unsized(place, HEAD + MOMENT)
        return decode_key(key), (moment_of(place), decode_key(place[end:]))


class ListLayout(MapLayout):
    """One slot per element of the key's list; the slot is (key, number)."""

    read_one_by_one = False

    def may_differ_elsewhere(self, place: bytes) -> bool:
        return False

    def encode_sub(self, sub: int) -> bytes:
        return sub.to_bytes(_SEQUENCE, "big")

    def decode_sub(self, data: bytes) -> int:
        return int.from_bytes(data, "big")


def moment_bytes(moment: int) -> bytes:
    """A moment in bytes that are in the order of time.

    >>> moment_bytes(-1) < moment_bytes(0) < moment_bytes(1 << 40)
    True
    """
    return (moment + _SIGN).to_bytes(MOMENT, "big")


def moment_of(place: bytes) -> int:
    """The moment of a timed slot's place."""
    return int.from_bytes(place[HEAD : HEAD + MOMENT], "big") - _SIGN
