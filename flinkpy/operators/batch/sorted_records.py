"""Records in the order of a key, in bounded memory: runs that are sorted lie in a file, and are
merged in the end, at most 64 at once."""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from flinkpy.core.elements import RowBatch
from flinkpy.core.files.spill_file import SpillFile
from flinkpy.core.memory import SizeEstimator
from flinkpy.operators.spilling.record_pickler import RecordPickler

RUNS_AT_ONCE = 64
_CHUNK = 1024  # records
_BYTES_PER_ITEM = 160  # of a record's place in the order
_by_rank = itemgetter(0)

Item = tuple[Any, Any]  # what it sorts by, the record


def rank_of(key: Any) -> tuple[Any, ...]:
    """What sorts as the keys do: None before all others, NaN behind them. Tuples and rows sort by
    their fields, the first counts most.

    >>> sorted([2.0, None, float("nan"), -1], key=rank_of)
    [None, -1, 2.0, nan]
    """
    if key is None:
        return (0,)
    if isinstance(key, (tuple, list)):
        return 1, tuple(map(rank_of, key))
    return (1, key) if key == key else (2,)


class SortedRecords:
    """``add`` all records, then read them in the order of ``key``; equal ones stay in their order.
    ``memory`` is an amount of bytes, which is compared with estimates.

    >>> found = SortedRecords(lambda word: len(word), descending=True, memory=1 << 20)
    >>> found.add(["a", "ccc", "b"])
    >>> list(found.records())
    ['ccc', 'a', 'b']
    """

    def __init__(
        self,
        key: Callable[[Any], Any],
        *,
        descending: bool,
        memory: int,
        folders: Sequence[str] = (),
    ) -> None:
        self._key = key
        self._descending = descending
        self._memory = memory
        self._folders = tuple(folders)
        self._items: list[Item] = []
        self._held = 0.0
        self._sizes = SizeEstimator()
        self._pickler = RecordPickler()
        self._levels: list[_Level] = []  # of each the runs are older than those of the one before
        self.spilled = 0
        """How many bytes were written."""

    def add(self, values: list[Any]) -> None:
        """Adds records. Raises ProgramError for records that cannot be pickled,
        ResourceUnavailableError if the disk fails."""
        if not values:
            return
        key = self._key
        self._items += [(rank_of(key(value)), value) for value in values]
        self._held += self._sizes.bytes_of(RowBatch(values)) + _BYTES_PER_ITEM * len(values)
        if self._held > self._memory:
            self._write()

    def records(self) -> Iterator[Any]:
        """The records in order."""
        if not self._levels:
            yield from (value for _, value in self._sorted())
            return
        self._write()
        level = 0
        while sum(len(each.runs) for each in self._levels) > RUNS_AT_ONCE:
            self._merge_level(level)
            level += 1
        runs = [run for level in reversed(self._levels) for run in level.all()]
        yield from (value for _, value in self._merged(runs))

    def close(self) -> None:
        """Frees the space. May be called more than once."""
        self._items = []
        for level in self._levels:
            level.file.close()

    def _sorted(self) -> list[Item]:
        items, self._items, self._held = self._items, [], 0.0
        items.sort(key=_by_rank, reverse=self._descending)
        return items

    def _merged(self, runs: Iterable[Iterator[Item]]) -> Iterator[Item]:
        return heapq.merge(*runs, key=_by_rank, reverse=self._descending)

    def _write(self) -> None:
        items = self._sorted()
        if not items:
            return
        # so many that a chunk of each run is in memory when they are merged
        chunk = max(1, min(_CHUNK, len(items) // RUNS_AT_ONCE))
        self._add_run(0, iter(items), chunk)
        del items  # not held beside what a merge takes
        level = 0
        while len(self._levels[level].runs) == RUNS_AT_ONCE:
            self._merge_level(level, chunk)
            level += 1

    def _add_run(self, level: int, items: Iterator[Item], chunk: int) -> None:
        if level == len(self._levels):
            self._levels.append(_Level(SpillFile(self._folders)))
        target = self._levels[level]
        places = []
        while part := list(islice(items, chunk)):
            data = self._pickler.dumps(part)
            self.spilled += len(data)
            places.append((target.file.append([data]), len(data)))
        target.runs.append(places)

    def _merge_level(self, level: int, chunk: int = 1) -> None:
        """Makes one run of the next level of all these."""
        merged = self._levels[level]
        if merged.runs:
            self._levels[level] = _Level(SpillFile(self._folders))
            self._add_run(level + 1, self._merged(merged.all()), chunk)
        merged.file.close()


class _Level:
    """Runs that lie in one file, in the order of their records: where each chunk lies."""

    def __init__(self, file: SpillFile) -> None:
        self.file = file
        self.runs: list[list[tuple[int, int]]] = []

    def all(self) -> list[Iterator[Item]]:
        """The items of each run."""
        return [chain.from_iterable(self._chunks(places)) for places in self.runs]

    def _chunks(self, places: list[tuple[int, int]]) -> Iterator[list[Item]]:
        return (pickle.loads(self.file.read(*place)) for place in places)
