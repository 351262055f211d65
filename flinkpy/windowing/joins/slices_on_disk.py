"""Records of a window join that have no room in memory: those of slices that windows need last lie
in a log on disk (``state.slice_log``). A piece has records of both sides.

A slice that *leaves* is not added to any more: the operator goes on with an empty one, and some of
its records are written with each batch, as all of them at once would be a pause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, ClassVar, Protocol, TypeAlias

from flinkpy.core.keys import canonical_keys, key_group, key_groups
from flinkpy.core.memory import size_of
from flinkpy.state.slice_log import SliceLog, to_leave
from flinkpy.windowing.joins.join_loops import Part

Sides: TypeAlias = "tuple[Part, Part]"

_MEASURED = 8  # records whose size is looked at
_RECORD = 16  # bytes that two lists take for a record
_FOR_EACH = 2  # records that are written for each one that comes


class HoldsSides(Protocol):
    """A slice in memory."""

    @property
    def parts(self) -> Sides: ...


class Leaving:
    """The records of a slice of which those before ``begins`` are written."""

    def __init__(self, parts: Sides) -> None:
        self.parts, self.begins = parts, [0, 0]

    def next(self, most: int) -> Sides:
        """So many records of each side."""
        taken = []
        for side, (keys, values) in enumerate(self.parts):
            begin = self.begins[side]
            end = self.begins[side] = min(begin + most, len(keys))
            taken.append((keys[begin:end], values[begin:end]))
        return taken[0], taken[1]

    @property
    def left(self) -> Sides:
        first, second = (
            (keys[begin:], values[begin:]) for (keys, values), begin in zip(self.parts, self.begins)
        )
        return first, second

    @property
    def is_written(self) -> bool:
        return all(begin == len(keys) for (keys, _), begin in zip(self.parts, self.begins))


class SlicesOnDisk:
    """What memory has no room for, and what is on its way there."""

    at_once: ClassVar[int] = 1 << 13  # records of a side that are written together
    few: ClassVar[int] = 1 << 10  # records, fewer are not worth a look

    def __init__(self, log: SliceLog, max_parallelism: int) -> None:
        self.log, self._max_parallelism = log, max_parallelism
        self.leaving: dict[int, Leaving] = {}
        self._due = 0  # records to write with the next batches
        self._room = 0  # so many records may come until it is time to look again

    def are_here(self, starts: Iterable[int]) -> bool:
        """Whether something of these slices is not in memory, or will not be."""
        return not self.log.starts.isdisjoint(starts)

    def after_batch(self, count: int, slices: dict[int, Any], empty: type) -> None:
        """So many records came into these slices. Slices that leave are replaced by empty ones."""
        self._room -= count
        if self._room < 0 and not self.leaving:
            held = {start: _size(each.parts) for start, each in slices.items()}
            limit = self._limit(slices.values())
            for start in to_leave(held, limit):
                self.leaving[start], slices[start] = Leaving(slices[start].parts), empty()
                self.log.starts.add(start)
                self._due = 0
            self._room = max(limit - sum(_size(each.parts) for each in slices.values()), self.few)
        self._due += _FOR_EACH * count
        while self.leaving and self._due >= self.at_once:
            self._due -= self._write_part(next(iter(self.leaving)))

    def _limit(self, slices: Iterable[HoldsSides]) -> int:
        """How many records may be in memory."""
        parts = chain.from_iterable(each.parts for each in slices)
        sample = list(islice(chain.from_iterable(zip(*part) for part in parts), _MEASURED))
        if not sample:
            return self.few
        size = sum(size_of(key) + size_of(value) for key, value in sample) / len(sample)
        return int(self.log.memory() / (_RECORD + size))

    def _write_part(self, start: int) -> int:
        leaving = self.leaving[start]
        part = leaving.next(self.at_once)
        if leaving.is_written:
            del self.leaving[start]
        self.log.write(start, self.by_group(part))
        return _size(part)

    def finish(self, starts: Iterable[int]) -> None:
        """Writes all that leaves of these slices."""
        for start in starts:
            while start in self.leaving:
                self._write_part(start)

    def by_group(self, parts: Sides) -> dict[int, Sides]:
        """The records by the groups of their keys."""
        return by_hash(parts, self._max_parallelism)

    def of_groups(
        self, starts: list[int], slices: Mapping[int, HoldsSides]
    ) -> Iterator[tuple[int, list[tuple[bool, Sides]]]]:
        """All records of these slices, in their order, key group by key group; of each part,
        whether it was written."""
        here = []
        for start in starts:
            parts = [slices[start].parts]
            if start in self.leaving:
                parts.insert(0, self.leaving[start].left)
            here.append([self.by_group(each) for each in parts])
        for group in self.log.groups:
            found: list[tuple[bool, Sides]] = []
            for start, held in zip(starts, here):
                found += [(True, piece) for piece in self._written(start, group)]
                found += [(False, part[group]) for part in held if group in part]
            if found:
                yield group, found

    def _written(self, start: int, group: int) -> Iterator[Sides]:
        for first, second in self.log.pieces(start, group):
            yield (canonical_keys(first[0]), first[1]), (canonical_keys(second[0]), second[1])

    def of_key(self, start: int, key: object) -> Sides:
        """The records of a key in a slice, as far as they were written."""
        self.finish([start])
        found: Sides = ([], []), ([], [])
        for piece in self._written(start, key_group(key, self._max_parallelism)):
            for of_key, (keys, values) in zip(found, piece):
                for each, value in zip(keys, values):
                    if each is key or each == key:
                        of_key[0].append(each)
                        of_key[1].append(value)
        return found

    def forget(self, start: int) -> None:
        """The slice is gone."""
        self.leaving.pop(start, None)
        self.log.forget(start)


def by_hash(parts: Sides, count: int) -> dict[int, Sides]:
    """The records by the hash of their key, modulo ``count``."""
    found: dict[int, Sides] = {}
    for side, (keys, values) in enumerate(parts):
        for group, key, value in zip(key_groups(keys, count), keys, values):
            sides = found.get(group)
            if sides is None:
                sides = found[group] = ([], []), ([], [])
            sides[side][0].append(key)
            sides[side][1].append(value)
    return found


def _size(parts: Sides) -> int:
    return sum(len(keys) for keys, _ in parts)
