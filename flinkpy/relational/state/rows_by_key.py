"""The last row of each key. Keys that an operator has no room for lie on disk (``RowsOnDisk``), if
the backend has one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.operators.columnar.key_index import PLACES, Grown, KeyedBatch, KeyIndex
from flinkpy.operators.columnar.rows_on_disk import RowsOnDisk
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.key_columns import key_batch, key_names
from flinkpy.relational.state.expiry_of_numbers import Expiry
from flinkpy.relational.state.numbered_rows import NumberedRows
from flinkpy.relational.state.saved_rows import SavedRows
from flinkpy.state.backend import KeyedStateBackend

_SWEPT = 4  # keys are looked at for each row that comes
_FEWEST = 1 << 10  # and on disk so many at least with each batch


def keys_of(data: pa.RecordBatch, keys: Sequence[int]) -> pa.RecordBatch:
    """The key columns of a batch; without keys all rows have one."""
    if keys:
        return key_batch([data.column(at) for at in keys])
    return key_batch([pa.array(np.ones(data.num_rows, np.bool_))])


class RowsByKey:
    """Rows of this schema by the number of their key. With ``ttl_ms`` (0: none) a key that was not
    written to for so long has no row any more. Numbers are good until ``relieve`` is called."""

    def __init__(
        self, schema: pa.Schema, keys: Sequence[int], ttl_ms: int, context: OperatorContext
    ) -> None:
        self.keys = tuple(keys)
        self._schema, self._ttl_ms = schema, ttl_ms
        self._context = context
        self._saved = SavedRows(schema, keys, context.task.max_parallelism)
        self._disk: RowsOnDisk | None = None
        self._places = PLACES
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._index = KeyIndex(key_names(len(self.keys) or 1), self._places)
        self._rows = NumberedRows(self._schema)
        self._has = Grown(np.bool_, False)
        self._expiry = Expiry(self._ttl_ms) if self._ttl_ms else None

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, data: pa.RecordBatch) -> KeyedBatch:
        """The keys of these rows; each must be given a row then, or be forgotten."""
        self._sweep(data.num_rows)
        keys = self._keys_of(data)
        self._bring_back(keys)
        return self._index.of(keys)

    def find(self, keys: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """The number of each of these keys, which are named as ``key_batch`` does; -1 where it has
        none."""
        self._bring_back(keys)
        found: npt.NDArray[np.int64] = self._index.find(keys)
        return found

    def touch(self, keys: pa.RecordBatch) -> None:
        """The rows of these keys are needed: they are kept as if they were written to now."""
        if self._expiry is not None:
            numbers = np.unique(self.find(keys))
            numbers = numbers[numbers >= 0]
            self._expiry.touch(numbers[self.have(numbers)], self._context.clock.time_ms())
            self._sweep(len(numbers))
            self.relieve(keys.num_rows)

    def have(self, numbers: npt.NDArray[np.int64]) -> Any:
        """Which of these keys have a row."""
        found = self._has.reach(self._index.size)[numbers]
        if self._expiry is not None and found.any():
            found = found & self._expiry.is_alive(numbers, self._context.clock.time_ms())
        return found

    def take(self, numbers: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """The rows of keys that have one."""
        return self._rows.take(numbers)

    def column(self, numbers: npt.NDArray[np.int64], at: int) -> pa.Array:
        """One column of these rows."""
        return self._rows.column(numbers, at)

    def put(self, numbers: npt.NDArray[np.int64], rows: pa.RecordBatch) -> None:
        """Sets the rows of these keys."""
        self._rows.put(numbers, rows)
        self._has.reach(self._index.size)[numbers] = True
        if self._expiry is not None:
            self._expiry.touch(numbers, self._context.clock.time_ms())

    def forget(self, numbers: npt.NDArray[np.int64]) -> None:
        """These keys are gone, with their rows if they have some."""
        if not len(numbers):
            return
        had = numbers[self._has.reach(self._index.size)[numbers]]
        if self._disk is not None and self._disk.holds and len(had):
            self._disk.remove(self._keys_of(self._rows.take(had)))
        self._rows.remove(had)
        self._has.values[had] = False
        if self._expiry is not None:
            self._expiry.forget(numbers)
        self._index.forget(numbers)

    def _sweep(self, rows: int) -> None:
        if self._expiry is not None:
            now_ms = self._context.clock.time_ms()
            self.forget(self._expiry.expired(now_ms, _SWEPT * rows))
            if self._disk is not None:
                self._disk.sweep(max(_FEWEST, rows), lambda saved: self._are_over(saved, now_ms))

    def _are_over(self, saved: pa.RecordBatch, now_ms: int) -> Any:
        return self._saved.apart(saved, now_ms)[1] <= now_ms - self._ttl_ms

    # -- keys on disk ------------------------------------------------------------------------------

    def _keys_of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return keys_of(rows, self.keys)

    def _bring_back(self, keys: pa.RecordBatch) -> None:
        """Has in memory what is on disk of these keys."""
        if self._disk is not None:
            for saved in self._disk.lacked(self._index, keys):
                self._take_in(*self._saved.apart(saved, self._context.clock.time_ms()))

    def relieve(self, records: int) -> None:
        """So many records were taken. Keys beyond their share of memory leave it, and with them all
        numbers."""
        disk = self._disk
        if disk is None or not disk.is_due(records):
            return
        size = held_bytes(self._index, self._rows, self._has, self._expiry)
        if disk.is_too_much(len(self._index), size):
            index, numbers, rows = self._index, *self._all_rows()
            left = self._saved.beside(*rows())
            self._begin_anew()
            disk.leave(index, numbers, left)

    # -- snapshots ---------------------------------------------------------------------------------

    def open(self, backend: KeyedStateBackend, name: str) -> None:
        """Takes back what was saved under this name. From now on what is here is saved there."""
        disk = RowsOnDisk(backend, name, self._context.task.max_parallelism, self._keys_of)
        self._places = disk.places
        self._begin_anew()
        now_ms = self._context.clock.time_ms()
        tables = backend.register_region(name, self._freeze).values()
        self._take_in(*self._saved.restored(tables, now_ms))
        for saved in disk.restored():
            rows, written = self._saved.apart(saved, now_ms)
            is_new = self._index.find(self._keys_of(rows)) < 0
            self._take_in(rows.filter(pa.array(is_new)), written[is_new])
        self._disk = disk if disk.has_disk and self.keys else None

    def _freeze(self) -> Callable[[Turns], dict[int, bytes]]:
        """What gives the rows of now by key group."""
        _, rows = self._all_rows()
        return self._saved.frozen(rows)

    def _all_rows(self) -> tuple[npt.NDArray[np.int64], Callable[[], tuple[pa.RecordBatch, Any]]]:
        """The numbers of all keys; and what gives the rows of now, and when each was written to."""
        rows, expiry = self._rows.freeze(), self._expiry
        numbers = rows.numbers()
        written = None if expiry is None else expiry.written(numbers).copy()
        return numbers, lambda: (rows.take(numbers), written)

    def _take_in(self, rows: pa.RecordBatch, written: npt.NDArray[np.int64]) -> None:
        """Rows of keys that are not here, and when each was written to."""
        if rows.num_rows:
            numbers = self._index.of(self._keys_of(rows)).ids
            self.put(numbers, rows)
            if self._expiry is not None:
                self._expiry.set_written(numbers, written)
