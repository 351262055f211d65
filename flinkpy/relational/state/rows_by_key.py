"""The last row of each key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.operators.columnar.key_index import Grown, KeyedBatch, KeyIndex
from flinkpy.operators.context import OperatorContext
from flinkpy.relational.key_columns import key_batch, key_names
from flinkpy.relational.state.expiry_of_numbers import Expiry
from flinkpy.relational.state.numbered_rows import NumberedRows
from flinkpy.relational.state.saved_rows import SavedRows

_SWEPT = 4  # keys are looked at for each row that comes


def keys_of(data: pa.RecordBatch, keys: Sequence[int]) -> pa.RecordBatch:
    """The key columns of a batch; without keys all rows have one."""
    if keys:
        return key_batch([data.column(at) for at in keys])
    return key_batch([pa.array(np.ones(data.num_rows, np.bool_))])


class RowsByKey:
    """Rows of this schema by the number of their key. With ``ttl_ms`` (0: none) a key that was not
    written to for so long has no row any more."""

    def __init__(
        self, schema: pa.Schema, keys: Sequence[int], ttl_ms: int, context: OperatorContext
    ) -> None:
        self.keys = tuple(keys)
        self._context = context
        self._index = KeyIndex(key_names(len(self.keys) or 1))
        self._rows = NumberedRows(schema)
        self._has = Grown(np.bool_, False)
        self._expiry = Expiry(ttl_ms) if ttl_ms else None
        self._saved = SavedRows(schema, keys, context.task.max_parallelism)

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, data: pa.RecordBatch) -> KeyedBatch:
        """The keys of these rows; each must be given a row then, or be forgotten."""
        self._sweep(data.num_rows)
        return self._index.of(keys_of(data, self.keys))

    def find(self, keys: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """The number of each of these keys, which are named as ``key_batch`` does; -1 where it has
        none."""
        found: npt.NDArray[np.int64] = self._index.find(keys)
        return found

    def touch(self, numbers: npt.NDArray[np.int64]) -> None:
        """The rows of these keys are needed: they are kept as if they were written to now."""
        if self._expiry is not None:
            self._expiry.touch(numbers[self.have(numbers)], self._context.clock.time_ms())
            self._sweep(len(numbers))

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
        self._rows.remove(had)
        self._has.values[had] = False
        if self._expiry is not None:
            self._expiry.forget(numbers)
        self._index.forget(numbers)

    def _sweep(self, rows: int) -> None:
        if self._expiry is not None:
            self.forget(self._expiry.expired(self._context.clock.time_ms(), _SWEPT * rows))

    # -- snapshots ---------------------------------------------------------------------------------

    def freeze(self) -> Callable[[Turns], dict[int, bytes]]:
        """What gives the rows of now by key group."""
        rows, expiry = self._rows.freeze(), self._expiry
        numbers = rows.numbers()
        written = None if expiry is None else expiry.written(numbers).copy()
        return self._saved.frozen(lambda: (rows.take(numbers), written))

    def restore(self, saved: Iterable[bytes]) -> None:
        """Takes back what ``freeze`` has given."""
        data, written = self._saved.restored(saved, self._context.clock.time_ms())
        if data.num_rows:
            numbers = self._index.of(keys_of(data, self.keys)).ids
            self.put(numbers, data)
            if self._expiry is not None:
                self._expiry.set_written(numbers, written)
