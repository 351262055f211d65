"""State by key that an operator over columns has no room for in memory.

An operator numbers its keys, and has arrays over these numbers. When they take more than their
share of memory, the keys *leave*, all at once: the operator begins anew with none, and what it had
becomes rows of columns, a row for each key. Some of them are written with each batch. Before a
batch is processed, the rows of those of its keys that memory lacks are read, all at once, and put
into the arrays. So what works on a batch stays what it is, and what memory has of a key is valid.

On disk a row lies under its key group and the words of its key (``key_words``). A backend that has
only memory gives the rows that another one has saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.core.memory import size_of
from flinkpy.operators.columnar.key_index import PLACES, Grown, KeyIndex, encoded, words_of_rows
from flinkpy.operators.columnar.row_bytes import Forms
from flinkpy.operators.columnar.tables_by_group import (
    by_group,
    from_bytes,
    group_numbers,
    key_of_group,
)
from flinkpy.state.backend import KeyedStateBackend
from flinkpy.state.snapshots.arrow_streams import to_bytes
from flinkpy.state.timed_entries import TimedEntries

_MOMENT = 0  # of all rows
_FOR_EACH = 2  # rows that are written for each record that comes
_MEASURED = 8  # objects of an array whose size is looked at


@dataclass
class _Leaving:
    """Rows that are to be written, and what finds them: ``place_of`` has by the number of a key
    where its row is; -1: it has none. ``is_gone`` says which rows memory has, or are no longer
    there."""

    index: KeyIndex
    place_of: Any
    keys: pa.RecordBatch
    rows: pa.RecordBatch
    is_gone: Any
    written: int = 0

    def rest(self, is_gone: Any) -> Any:
        """The positions of the rows that are to be written yet."""
        return self.written + np.flatnonzero(~is_gone[self.written :])


class RowsOnDisk:
    """``name`` is that of the state; ``keys_of`` gives the key columns of its rows, as the
    operator's index names them."""

    few: ClassVar[int] = 1 << 10  # rows that are written at least with a batch
    at_once: ClassVar[int] = 1 << 12  # rows that are written at a time
    unseen: ClassVar[int] = 1 << 16  # records that come at most between two looks at memory

    def __init__(
        self,
        backend: KeyedStateBackend,
        name: str,
        max_parallelism: int,
        keys_of: Callable[[pa.RecordBatch], pa.RecordBatch],
    ) -> None:
        self._most, self._keys_of = max_parallelism, keys_of
        self._groups = backend.statistics.groups
        self._forms = Forms()
        self._leaving: _Leaving | None = None
        self._room = 0  # so many records may come until memory is looked at
        # where sweeping goes on: a count of key groups, and the last name of one
        self._swept = 0
        self._last: bytes | None = None
        told = backend.register_region(f"{name} forms", self._saved_forms)
        self._forms.restore(each for forms in told.values() for each in forms)
        unwritten = backend.register_region(f"{name} leaving", self._frozen)
        on_disk = f"{name} on disk"
        self._entries: TimedEntries | None = backend.timed_entries(on_disk)
        self._has_some = self._entries is not None and bool(self._entries.moments())
        taken = {} if self._entries is not None else backend.take_timed(on_disk)
        self._restored: list[Any] = [
            *map(from_bytes, unwritten.values()),
            *self._forms.decoded(row for rows in taken.values() for row in rows.values()),
        ]

    def restored(self) -> list[pa.RecordBatch]:
        """Rows that were on disk, or on their way there, and belong into memory. What memory has of
        their keys is valid, also from earlier ones of them."""
        restored, self._restored = self._restored, []
        return restored

    @property
    def has_disk(self) -> bool:
        """Whether there is one."""
        return self._entries is not None

    @property
    def holds(self) -> bool:
        """Whether a key may have a row here."""
        return self._has_some or self._leaving is not None

    @property
    def schemas(self) -> list[pa.Schema]:
        """Of rows that are on disk."""
        return self._forms.schemas

    def memory(self) -> int:
        """How many bytes the operator may keep, by estimate."""
        assert self._entries is not None
        return self._entries.memory()

    @property
    def places(self) -> int:
        """How many places an index of keys may have for small integers."""
        return PLACES if self._entries is None else min(PLACES, self.memory() // 16)

    # -- rows that leave ---------------------------------------------------------------------------

    def is_due(self, records: int) -> bool:
        """So many records have come. Whether it is time to look at what memory holds. Some of the
        rows that leave are written."""
        self._room -= records
        if self._leaving is not None:
            self._write(max(self.few, _FOR_EACH * records))
        return self._room < 0

    def is_too_much(self, keys: int, size: int) -> bool:
        """Whether so many keys, of so many bytes, are to leave."""
        spare = self.memory() - size
        if keys and spare < 0:
            self._room = 0
            return True
        self._room = min(self.unseen, spare * keys // size) if size else 0
        return False

    def leave(self, index: KeyIndex, numbers: Any, rows: pa.RecordBatch) -> None:
        """The rows of the keys with these numbers are to be written. Nobody else has the index any
        more."""
        while self._leaving is not None:
            self._write(self.at_once)
        place_of = np.full(index.size, -1)
        place_of[numbers] = np.arange(len(numbers))
        is_gone = np.zeros(len(numbers), np.bool_)
        self._leaving = _Leaving(index, place_of, self._keys_of(rows), rows, is_gone)

    def _write(self, count: int) -> None:
        leaving = self._leaving
        assert leaving is not None
        end = leaving.written + count
        at = leaving.rest(leaving.is_gone[:end])
        if len(at):
            rows = leaving.rows.take(pa.array(at))
            self._put(rows, *self._places(leaving.keys.take(pa.array(at))))
            self._has_some = True
        leaving.written = end
        if end >= leaving.rows.num_rows:
            self._leaving = None

    def _put(self, rows: pa.RecordBatch, keys: list[int], names: list[bytes]) -> None:
        assert self._entries is not None
        self._entries.put_values(_MOMENT, keys, names, self._forms.of(rows.schema).encoded(rows))

    def _places(self, keys: pa.RecordBatch) -> tuple[list[int], list[bytes]]:
        """A key of the group of each key, and its name."""
        groups = group_numbers(keys, keys.schema.names, self._most).tolist()
        return [key_of_group(group, self._most) for group in groups], _names(keys)

    # -- rows that are needed ----------------------------------------------------------------------

    def lacked(self, index: KeyIndex, keys: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows of those of these keys that memory lacks, as this index of its keys says. They
        belong to memory now."""
        if not self.holds:
            return
        unknown = np.flatnonzero(index.find(keys) < 0)
        if len(unknown):
            wanted = keys.take(pa.array(unknown))
            yield from self.taken(wanted.take(pa.array(encoded(wanted.columns).firsts)))

    def taken(self, keys: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows of those of these keys that have some here. They belong to memory now. Each key
        is there once, and memory has none of them."""
        if self._leaving is not None:
            ids = self._leaving.index.find(keys)
            places = np.where(ids < 0, -1, self._leaving.place_of[ids])
            is_there = self._is_leaving(places)
            if is_there.any():
                places = places[is_there]
                places = places[~self._leaving.is_gone[places]]
                self._leaving.is_gone[places] = True
                yield self._leaving.rows.take(pa.array(places))
                keys = keys.take(pa.array(np.flatnonzero(~is_there)))
        if self._has_some and keys.num_rows:
            yield from self._read(*self._places(keys))

    def _is_leaving(self, places: Any) -> Any:
        """Of places in what leaves (-1: none), those to take from there: also rows that were
        written, which need not be read then."""
        return places >= 0

    def _read(self, keys: list[int], names: list[bytes]) -> Iterator[pa.RecordBatch]:
        assert self._entries is not None
        return self._forms.decoded(self._entries.values_of(_MOMENT, keys, names).values())

    def remove(self, keys: pa.RecordBatch) -> None:
        """These keys, which memory had, are gone."""
        if self._has_some and keys.num_rows:
            assert self._entries is not None
            places = zip(*self._places(keys))
            self._entries.remove_named([(_MOMENT, key, name) for key, name in places])

    def sweep(self, rows: int, is_over: Callable[[pa.RecordBatch], Any]) -> None:
        """Looks at so many rows on disk, going on where it was, and removes those that are over.
        They may be of keys that memory has, whose rows are written again when they leave."""
        if not self._has_some:
            return
        assert self._entries is not None
        key = key_of_group(self._groups[self._swept % len(self._groups)], self._most)
        found = self._entries.values_behind(_MOMENT, key, self._last, rows)
        self._last = found[-1][0] if len(found) == rows else None
        self._swept += self._last is None
        for data in self._forms.decoded(row for _, row in found):
            self.remove(self._keys_of(data.filter(pa.array(is_over(data)))))

    def all_rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of all keys, also of those that memory has as they were."""
        while self._leaving is not None:
            self._write(self.at_once)
        if self._has_some:
            assert self._entries is not None
            for group in self._groups:
                pieces = self._entries.pieces(_MOMENT, key_of_group(group, self._most))
                yield from self._forms.decoded(row for _, row in pieces)

    # -- snapshots ---------------------------------------------------------------------------------

    def _saved_forms(self) -> Mapping[int, list[bytes]]:
        if not self._has_some:
            return {}
        forms = self._forms.saved()
        return {key_of_group(group, self._most): forms for group in self._groups}

    def _frozen(self) -> Callable[[Turns], dict[int, bytes]] | dict[int, bytes]:
        """Rows that are not written yet."""
        leaving = self._leaving
        if leaving is None:
            return {}
        rows, keys, rest = leaving.rows, leaving.keys, leaving.rest(leaving.is_gone)

        def saved(turns: Turns) -> dict[int, bytes]:
            at, found = pa.array(rest), dict[int, bytes]()
            left = keys.take(at)
            groups = group_numbers(left, left.schema.names, self._most)
            for group, part in by_group(rows.take(at), groups) if len(rest) else ():
                found[key_of_group(group, self._most)] = to_bytes(part)
                turns.give_way()
            return found

        return saved


def bytes_of_objects(arrays: Iterator[Grown], keys: int) -> int:
    """What the objects take that these arrays refer to, by estimate."""
    size = 0.0
    for each in arrays:
        sample = each.values[: min(keys, _MEASURED)]
        if each.values.dtype == object and len(sample):
            size += keys * sum(map(size_of, sample.tolist())) / len(sample)
    return int(size)


def _names(keys: pa.RecordBatch) -> list[bytes]:
    words = words_of_rows(keys.columns)
    if words.step is not None:
        cells: list[bytes] = words.flat.view(f"V{8 * words.step}").tolist()
        return cells
    data = words.flat.tobytes()
    starts, sizes = 8 * words.starts, 8 * words.sizes
    return [data[begin:end] for begin, end in zip(starts.tolist(), (starts + sizes).tolist())]
