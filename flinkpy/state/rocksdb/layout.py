"""Where a slot of state is in the database: state (2 bytes), key group (2 bytes), key, and for
lists and maps the element's place in them.

::

    value, reducing, aggregating, engine:  state | group | key      a slot for each key
    map:   state | group | length | key | user key                  a slot for each entry
    list:  state | group | length | key | number                    a slot for each element

So the state of a key group is one range, and so is the list or map of a key. Appending to a list is
one write and no read: the numbers come from a counter of the whole state, which only has to grow.
"""

from __future__ import annotations

from typing import Any

from flinkpy.core.keys import key_group
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
_SEQUENCE = 8


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


class MapLayout(KeyLayout):
    """One slot per entry of the key's map; the slot is (key, user key)."""

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


class ListLayout(MapLayout):
    """One slot per element of the key's list; the slot is (key, number)."""

    read_one_by_one = False

    def may_differ_elsewhere(self, place: bytes) -> bool:
        return False

    def encode_sub(self, sub: int) -> bytes:
        return sub.to_bytes(_SEQUENCE, "big")

    def decode_sub(self, data: bytes) -> int:
        return int.from_bytes(data, "big")
