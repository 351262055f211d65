"""Rows by number, as columns: each number has one row, which a later one replaces."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.picked_rows import gathered
from flinkpy.relational.relational_operator import empty_batch, with_schema

_LOST = 1 << 14  # rows without a number, before they are dropped


class NumberedRows:
    """The rows lie in chunks that never change, merged by size; an array says where the row of each
    number is. Rows that were replaced or removed are dropped when they are half of all.

    >>> rows = NumberedRows(pa.schema([("a", pa.string())]))
    >>> rows.put(np.array([3, 0]), pa.record_batch({"a": ["x", "y"]}))
    >>> rows.put(np.array([3]), pa.record_batch({"a": ["z"]}))
    >>> rows.take(np.array([0, 3])).column(0).to_pylist()
    ['y', 'z']
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._chunks: list[pa.RecordBatch] = []
        self._rows = 0  # in all chunks
        self._known = 0  # numbers that have a row
        self._row_of = Grown(np.int64, -1)

    def __len__(self) -> int:
        return self._known

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        found: int = sum(each.nbytes for each in self._chunks) + self._row_of.values.nbytes
        return found

    def put(self, numbers: npt.NDArray[np.int64], rows: pa.RecordBatch) -> None:
        """Sets the rows of these numbers, of which each is there once."""
        if not len(numbers):
            return
        row_of = self._row_of.reach(int(numbers.max()) + 1)
        self._known += int(np.count_nonzero(row_of[numbers] < 0))
        row_of[numbers] = self._rows + np.arange(len(numbers))
        self._rows += len(numbers)
        self._chunks.append(with_schema(rows, self.schema))
        chunks = self._chunks
        while len(chunks) > 1 and chunks[-2].num_rows <= 2 * chunks[-1].num_rows:
            chunks[-2:] = [pa.concat_batches(chunks[-2:])]
        self._drop_lost()

    def remove(self, numbers: npt.NDArray[np.int64]) -> None:
        """These numbers, which have rows, have none any more."""
        self._row_of.values[numbers] = -1
        self._known -= len(numbers)
        self._drop_lost()

    def take(self, numbers: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """The rows of these numbers; all must have one."""
        return rows_at(self._chunks, self._row_of.values[numbers], self.schema)

    def column(self, numbers: npt.NDArray[np.int64], at: int) -> pa.Array:
        """One column of these rows."""
        one = [each.select([at]) for each in self._chunks]
        places = self._row_of.values[numbers]
        return rows_at(one, places, pa.schema([self.schema.field(at)])).column(0)

    def freeze(self) -> FrozenRows:
        """The rows as they are now."""
        return FrozenRows(list(self._chunks), self._row_of.values.copy(), self.schema)

    def _drop_lost(self) -> None:
        if self._rows <= 2 * self._known + _LOST:
            return
        row_of = self._row_of.values
        numbers = np.flatnonzero(row_of >= 0)
        self._chunks = [self.take(numbers)]
        row_of[numbers] = np.arange(len(numbers))
        self._rows = len(numbers)


class FrozenRows:
    """Rows as they were at a freeze."""

    def __init__(
        self, chunks: list[pa.RecordBatch], row_of: npt.NDArray[np.int64], schema: pa.Schema
    ) -> None:
        self._chunks = chunks
        self._row_of = row_of
        self._schema = schema

    def numbers(self) -> Any:
        """Those that have a row."""
        return np.flatnonzero(self._row_of >= 0)

    def take(self, numbers: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """The rows of these numbers."""
        return rows_at(self._chunks, self._row_of[numbers], self._schema)


def rows_at(
    chunks: list[pa.RecordBatch], places: npt.NDArray[np.int64], schema: pa.Schema
) -> pa.RecordBatch:
    """The rows at these places of all chunks, as if they were one."""
    if not len(places) or not chunks:
        return empty_batch(schema)
    ends = np.cumsum([each.num_rows for each in chunks])
    return gathered(chunks, np.append(0, ends[:-1]), places, schema)
