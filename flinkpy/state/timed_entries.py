"""Entries by key and moment that an operator has no room for in memory: slices of windows.

An operator keeps what it works on in dicts, as ever. When these take more than their share of
memory, it writes some of them to disk, and reads the keys of a batch back before it works on them:
many at once, so that its loops stay what they are. A backend that has only memory gives no such
entries, and the operator then holds everything itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar

from flinkpy.core.memory import size_of
from flinkpy.state.layers.overlay import at_most, looking_at, parts_of_entries

_MEASURED = 8  # entries of a dict whose size is looked at
_FOR_EACH = 2  # entries that are written for each record that comes
_ENTRY = 104  # bytes that a dict takes for an entry beside its key and value


class TimedEntries(ABC):
    """One value for each key and moment, on disk, in the order of key group and moment. They are
    part of snapshots. What is read is the reader's own."""

    @abstractmethod
    def memory(self) -> int:
        """How many bytes the operator may keep in memory of what could lie here, by estimate."""

    @abstractmethod
    def moments(self) -> set[int]:
        """The moments that hold something."""

    @abstractmethod
    def get(self, moment: int, keys: list[Any]) -> dict[Any, Any]:
        """The values of those of these keys that are there. Keys are in canonical form."""

    @abstractmethod
    def put(self, moment: int, entries: Iterable[tuple[Any, Any]]) -> None:
        """Stores the value of each key."""

    @abstractmethod
    def drop(self, moment: int) -> None:
        """All entries of the moment are gone."""

    @abstractmethod
    def together(self, moments: list[int], most: int) -> Iterator[list[dict[Any, Any]]]:
        """All entries of these moments: about ``most`` keys at a time, and for them a dict of each
        moment."""

    # -- entries with a number ---------------------------------------------------------------------

    @abstractmethod
    def append(self, moment: int, number: int, pieces: Iterable[tuple[Any, Any]]) -> None:
        """Stores a value of each key beside those it has at the moment. Numbers ascend."""

    @abstractmethod
    def pieces(self, moment: int, key: Any) -> list[tuple[int, Any]]:
        """The numbers and values of a key at a moment, in the order of their numbers."""

    # -- entries with a name -----------------------------------------------------------------------

    @abstractmethod
    def put_values(
        self, moment: int, keys: list[Any], names: list[bytes], values: list[bytes]
    ) -> None:
        """Stores a value under each key and name."""

    @abstractmethod
    def values_of(self, moment: int, keys: list[Any], names: list[bytes]) -> dict[bytes, Any]:
        """The values that are there, by name. No two of the keys have one name."""

    @abstractmethod
    def values_behind(
        self, moment: int, key: Any, name: bytes | None, most: int
    ) -> list[tuple[bytes, Any]]:
        """Names and values of a key, behind a name (None: from the first one), in their order."""

    # -- entries with a name and no value ----------------------------------------------------------

    @abstractmethod
    def first_moment(self) -> int | None:
        """The earliest moment that holds something."""

    @abstractmethod
    def put_named(self, entries: list[tuple[int, Any, Any]]) -> None:
        """Stores moments, keys and names."""

    @abstractmethod
    def remove_named(self, entries: list[tuple[int, Any, Any]]) -> None:
        """Removes them, as far as they are there."""

    @abstractmethod
    def take_first(
        self, most: int, until: int | None = None
    ) -> tuple[list[tuple[int, Any, Any]], int | None, bool]:
        """Removes and gives the earliest named entries: those of whole moments, or some of one; and
        none behind ``until``. From each key group comes its share of so many. Then a moment before
        which nothing is left, and whether some of that one were among them. What is put from then
        on is not before it, or behind it if it is cut."""

    @abstractmethod
    def rewind(self) -> None:
        """From now on entries may be put before those that were taken."""


class SlicesBeyondMemory:
    """What lies on disk of an operator's slices. Of each slice it has a dict in memory from key to
    value, which may lack keys that lie here. A key that is in both is valid in memory.

    A dict that is to be written *leaves*: the operator goes on with an empty one, and nobody
    changes the old one any more. Some of its entries are written with each batch, as all of them
    at once would be a pause."""

    at_once: ClassVar[int] = 1 << 12  # keys that are put together at a time
    few: ClassVar[int] = 1 << 8  # entries, fewer are not worth a look

    def __init__(self, entries: TimedEntries) -> None:
        self._entries = entries
        self.starts = entries.moments()
        self.leaving: dict[int, dict[Any, Any]] = {}
        self._unwritten: dict[
            int, Iterator[tuple[list[Any], list[Any]]]
        ] = {}  # of those that leave
        self._touched: dict[int, None] = {}  # slices with records, the latest last
        self._due = 0  # entries to write with the next batch
        self._room = 0  # so many entries may come until it is time to look again
        self._bytes = 0.0  # of an entry

    def touch(self, start: int, count: int) -> None:
        """So many records come into the slice."""
        self._touched.pop(start, None)
        self._touched[start] = None
        self._room -= count
        self._due += _FOR_EACH * count

    @property
    def is_due(self) -> bool:
        """Whether so many have come that it is time to count the entries in memory."""
        return self._room < 0 and not self.leaving

    def to_be_written(self, slices: Mapping[int, dict[Any, Any]]) -> list[int]:
        """The slices to write so that half of the memory is free; none while all of them fit. Those
        that no record has touched for longest come first."""
        held = {start: at_most(states) for start, states in slices.items()}
        total, limit = sum(held.values()), self._limit(slices.values())
        self._room = max(limit - total, self.few)
        chosen: list[int] = []
        if total <= limit:
            return chosen
        for start in sorted(held.keys() - self._touched.keys()) + list(self._touched):
            if total <= limit // 2:
                break
            if held.get(start):
                chosen.append(start)
                total -= held[start]
        self._room = max(limit - total, self.few)
        return chosen

    def _limit(self, slices: Iterable[dict[Any, Any]]) -> int:
        """How many entries may be in memory."""
        for states in slices:
            # of an overlay, which is a dict too, those it holds itself
            sample = list(islice(dict.items(states), _MEASURED))
            if sample:
                size = _ENTRY + sum(size_of(key) + size_of(value) for key, value in sample) / len(
                    sample
                )
                # raised at once, lowered slowly
                self._bytes = size if size > self._bytes else (7 * self._bytes + size) / 8
        return int(self._entries.memory() / self._bytes) if self._bytes else self.few

    def leave(self, start: int, states: dict[Any, Any]) -> None:
        """The entries of a slice are to be written."""
        self.leaving[start] = states
        self._unwritten[start] = parts_of_entries(states, self.at_once)
        self.starts.add(start)
        self._due = 0

    def write_some(self) -> None:
        """Writes entries that leave, some for each record that has come."""
        for start in list(self.leaving):
            while self._due > 0 and start in self.leaving:
                self._due -= self._write_part(start)

    def finish(self, starts: Iterable[int]) -> None:
        """Writes all that leaves of these slices."""
        for start in starts:
            while start in self.leaving:
                self._write_part(start)

    def _write_part(self, start: int) -> int:
        keys, values = next(self._unwritten[start], ((), ()))
        if not keys:
            del self.leaving[start], self._unwritten[start]
        self._entries.put(start, zip(keys, values))
        return len(keys)

    def read(self, start: int, keys: list[Any]) -> dict[Any, Any]:
        """The entries of these keys in the slice, as far as they are here. Those that leave are
        somebody else's too."""
        if start not in self.starts or not keys:
            return {}
        leaving = self.leaving.get(start)
        if leaving is None:
            return self._entries.get(start, keys)
        look_up = looking_at(leaving)
        found = {key: look_up(key) for key in keys if key in leaving}
        return found | self._entries.get(start, [key for key in keys if key not in found])

    def all_but(self, starts: list[int], keys: Collection[Any]) -> Iterator[list[dict[Any, Any]]]:
        """The entries of these slices without those of the keys: some keys at a time, and for them
        a dict of each slice."""
        here = [start for start in starts if start in self.starts]
        for parts in self._entries.together(here, self.at_once):
            yield [{key: value for key, value in part.items() if key not in keys} for part in parts]

    def forget(self, start: int) -> None:
        """The slice is gone."""
        self._touched.pop(start, None)
        self.leaving.pop(start, None)
        self._unwritten.pop(start, None)
        if start in self.starts:
            self.starts.discard(start)
            self._entries.drop(start)
