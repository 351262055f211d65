"""Groups records by key in bounded memory, for the keyed operators of a batch job.

In memory, records are gathered per key, without an order among keys. When the memory is used up,
its content is written as a run: keys in the order of their hash (which is the same in every
process), each with its records in order of time. At the end the runs are merged: keys of equal hash
meet, are told apart by equality, and their records are merged by time. So each run needs memory for
only one chunk of one key, however many records a key has. Records with equal times, or without
times, keep the order in which they came."""

from __future__ import annotations

import heapq
import pickle
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import Any, NamedTuple

from flinkpy.core.elements import MIN_TIMESTAMP, RowBatch
from flinkpy.core.files.spill_file import SpillFile
from flinkpy.core.keys import canonical_key, stable_hash
from flinkpy.core.memory import SizeEstimator
from flinkpy.operators.spilling.record_pickler import RecordPickler

NO_TIME = MIN_TIMESTAMP - 1  # stands for the timestamp of a record that has none
CHUNK = 4096  # records
_BYTES_PER_KEY = 200  # estimated size of a key's entry in the table, without its records
_BYTES_PER_ITEM = 16  # of a record's place in its list
_BYTES_PER_FULL_ITEM = 120  # the same with tuple and timestamp
_GROUP = struct.Struct("<QIQ")  # hash, length of the pickled key, length of the chunks
_CHUNK = struct.Struct("<I?")  # length, whether items are full
_WINDOW = 256 << 10
_WRITE_BYTES = 1 << 20
_by_time = itemgetter(0, 1)

# the record itself, or (timestamp or NO_TIME, tag, record); once one item has the second form, all
# have it
Item = Any
Chunks = Iterator[list[Item]]


class KeyGroups:
    """Groups records by key: ``add`` all records, iterate over ``groups`` once, and ``close`` in
    any case.

    ``memory`` is an amount of bytes, which is compared with estimates; ``folders`` is where to
    spill. With ``tagged`` every record has the tag it was added with, and records of equal time are
    ordered by tag. Without ``by_time`` records stay in order of arrival.

    >>> groups = KeyGroups(1 << 20)
    >>> groups.add("aba", [1, 2, 3])
    >>> [(key, list(chunks)) for key, chunks in groups.groups()]
    [('a', [[1, 3]]), ('b', [[2]])]
    """

    def __init__(
        self,
        memory: int,
        folders: Sequence[str] = (),
        *,
        tagged: bool = False,
        by_time: bool = True,
    ) -> None:
        self._memory = memory
        self._folders = tuple(folders)
        self._sorts = by_time
        self.full = tagged
        self._groups: dict[Any, list[Item]] = {}
        self._sizes = SizeEstimator()
        self._held = 0.0
        self._file: SpillFile | None = None
        self._pickler = RecordPickler()
        self.runs: list[tuple[int, int]] = []  # where each run begins and ends in the file

    def add(
        self, keys: Iterable[Any], values: list[Any], stamps: list[int] | None = None, tag: int = 0
    ) -> None:
        """Adds records with their canonical keys. Raises ProgramError for records that cannot be
        pickled, ResourceUnavailableError if the disk fails."""
        if not values:
            return
        if stamps is not None and not self.full:
            self.full = True
            self._groups = {key: _completed(items) for key, items in self._groups.items()}
        items: Iterable[Item] = (
            zip(repeat(NO_TIME) if stamps is None else stamps, repeat(tag), values)
            if self.full
            else values
        )
        groups = self._groups
        before = len(groups)
        for key, item in zip(keys, items):
            found = groups.get(key)
            if found is None:
                groups[key] = [item]
            else:
                found.append(item)
        per_item = _BYTES_PER_FULL_ITEM if self.full else _BYTES_PER_ITEM
        self._held += (
            self._sizes.bytes_of(RowBatch(values))
            + per_item * len(values)
            + _BYTES_PER_KEY * (len(groups) - before)
        )
        if self._held > self._memory:
            self.spill()

    def groups(self) -> Iterator[tuple[Any, Chunks]]:
        """Yields each key with its records, in chunks. Read the chunks of a key before you ask for
        the next key."""
        if self.runs:
            self.spill()
            return self._merged()
        groups, self._groups = self._groups, {}  # nothing is left to spill
        return self._in_memory(groups)

    @property
    def spilled(self) -> int:
        """How many bytes were written."""
        return self.runs[-1][1] if self.runs else 0

    def close(self) -> None:
        self._groups = {}
        if self._file is not None:
            self._file.close()

    # -- in memory ---------------------------------------------------------------------------------

    def _in_memory(self, groups: dict[Any, list[Item]]) -> Iterator[tuple[Any, Chunks]]:
        for key in list(groups):
            items = self._sorted(groups.pop(key))
            yield key, (iter((items,)) if len(items) <= CHUNK else _chunks(iter(items)))

    def _sorted(self, items: list[Item]) -> list[Item]:
        if self.full and self._sorts and len(items) > 1:
            items.sort(key=_by_time)
        return items

    # -- runs --------------------------------------------------------------------------------------

    def spill(self) -> None:
        """Writes what is in memory as another run; nothing once ``groups`` was called."""
        groups, self._groups, self._held = self._groups, {}, 0.0
        if not groups:
            return
        if self._file is None:
            self._file = SpillFile(self._folders)
        file = self._file
        start = file.size
        waiting: list[bytes] = []
        waiting_bytes = 0
        for number, key in sorted(((stable_hash(key), key) for key in groups), key=itemgetter(0)):
            dumps = self._pickler.dumps
            chunks = [dumps(part) for part in _chunks(iter(self._sorted(groups.pop(key))))]
            key_bytes = dumps(key)
            group = [
                _GROUP.pack(
                    number, len(key_bytes), sum(map(len, chunks)) + _CHUNK.size * len(chunks)
                ),
                key_bytes,
            ]
            for data in chunks:
                group += (_CHUNK.pack(len(data), self.full), data)
            waiting += group
            waiting_bytes += sum(map(len, group))
            if waiting_bytes >= _WRITE_BYTES:
                file.append(waiting)
                waiting, waiting_bytes = [], 0
        file.append(waiting)
        self.runs.append((start, file.size))

    def _merged(self) -> Iterator[tuple[Any, Chunks]]:
        assert self._file is not None
        readers = [_RunReader(self._file, start, end) for start, end in self.runs]
        heap = [(reader.next_hash, number) for number, reader in enumerate(readers)]
        heapq.heapify(heap)
        while heap:
            wanted = heap[0][0]
            of_key: dict[Any, list[_Group]] = {}
            while heap and heap[0][0] == wanted:
                number = heapq.heappop(heap)[1]
                reader = readers[number]
                while not reader.ended and reader.next_hash == wanted:
                    group = reader.take()
                    of_key.setdefault(group.key, []).append(group)
                if not reader.ended:
                    heapq.heappush(heap, (reader.next_hash, number))
            for key, parts in of_key.items():
                yield key, self._joined(parts)

    def _joined(self, parts: list[_Group]) -> Chunks:
        opened = [part.reader.chunks(part, self.full) for part in parts]
        if len(opened) == 1:
            return opened[0]
        if not self.full or not self._sorts:
            return chain.from_iterable(opened)
        return _chunks(
            heapq.merge(*(chain.from_iterable(chunks) for chunks in opened), key=_by_time)
        )


class _Group(NamedTuple):
    """One key of one run, with the place of its chunks."""

    key: Any
    reader: _RunReader
    start: int
    end: int


class _RunReader:
    """Reads one run. The chunks of a group can still be read when the reader is further on."""

    def __init__(self, file: SpillFile, start: int, end: int) -> None:
        self._file = file
        self._at = start
        self._end = end
        self._window, self._window_start = b"", 0
        self.next_hash = 0
        self._look()

    @property
    def ended(self) -> bool:
        return self._at >= self._end

    def _look(self) -> None:
        if not self.ended:
            self.next_hash, self._key_length, self._length = _GROUP.unpack(
                self._read(self._at, _GROUP.size)
            )

    def take(self) -> _Group:
        """The next key of the run."""
        start = self._at + _GROUP.size + self._key_length
        key = canonical_key(pickle.loads(self._read(self._at + _GROUP.size, self._key_length)))
        group = _Group(key, self, start, start + self._length)
        self._at = group.end
        self._look()
        return group

    def chunks(self, group: _Group, full: bool) -> Chunks:
        at = group.start
        while at < group.end:
            length, was_full = _CHUNK.unpack(self._read(at, _CHUNK.size))
            items = pickle.loads(self._read(at + _CHUNK.size, length))
            at += _CHUNK.size + length
            yield _completed(items) if full and not was_full else items

    def _read(self, offset: int, length: int) -> bytes:
        begin = offset - self._window_start
        if begin < 0 or begin + length > len(self._window):
            self._window = self._file.read(offset, max(length, _WINDOW))
            self._window_start = offset
            begin = 0
        return self._window[begin : begin + length]


def _chunks(items: Iterator[Item]) -> Chunks:
    while chunk := list(islice(items, CHUNK)):
        yield chunk


def _completed(items: list[Any]) -> list[Item]:
    return [(NO_TIME, 0, value) for value in items]
