"""Which rows have the same upsert key: numbers of the keys of rows that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.operators.columnar.array_memory import Empty
from flinkpy.operators.columnar.key_index import Grown, KeyIndex, encoded
from flinkpy.relational.key_columns import key_names
from flinkpy.relational.state.row_store import RowStore
from flinkpy.relational.state.rows_by_key import keys_of

_LOST = 1 << 12  # keys without a row, before they are dropped
Numbers = npt.NDArray[np.int64]


class UpsertNumbers:
    """By these columns. Keys whose rows have gone are dropped when they are half of all."""

    def __init__(self, columns: Sequence[int], store: RowStore, empty: Empty) -> None:
        """``empty`` gives arrays."""
        self._columns = tuple(columns)
        self._store = store
        self._empty = empty
        self._index = self._new_index()
        self._number_of = Grown(np.int64, -1, empty)  # by row

    def _new_index(self) -> KeyIndex:
        return KeyIndex(key_names(len(self._columns)), empty=self._empty)

    def find(self, data: pa.RecordBatch) -> Any:
        """The number of each row's key; -1 where it has none, and so no row is kept."""
        if not len(self._index):
            return np.full(data.num_rows, -1)
        return self._index.find(keys_of(data, self._columns))

    def beside(self, rows: Numbers, data: pa.RecordBatch) -> Any:
        """A number for the key of each row of the store, and of each new one behind them."""
        found = self.find(data)
        unknown = np.flatnonzero(found < 0)
        if len(unknown):
            keys = keys_of(data, self._columns).take(pa.array(unknown))
            found[unknown] = self._index.size + encoded(keys.columns).codes
        return np.concatenate([self._number_of.values.take(rows), found])

    def put(self, rows: Numbers, data: pa.RecordBatch) -> None:
        """The new rows are these ones of the store."""
        if len(rows):
            numbers = self._index.numbers(keys_of(data, self._columns)).ids
            self._number_of.reach(self._store.size)[rows] = numbers
        if len(self._index) > 2 * len(self._store) + _LOST:
            self._index = self._new_index()
            kept = self._store.all()
            self.put(kept, self._store.take(kept))
