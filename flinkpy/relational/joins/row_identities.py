"""What tells the rows of one side of a join apart: which row goes, and which one takes the place of
another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from flinkpy.operators.columnar.key_index import Grown, KeyIndex
from flinkpy.relational.key_columns import key_batch, key_names
from flinkpy.relational.state.multi_map import Numbers, SingleRows


class RowIdentities(Protocol):
    """Numbers of identities, -1 for rows whose join key meets nothing."""

    def of(self, data: pa.RecordBatch, keys: Numbers) -> Numbers:
        """The identities of rows with these join keys; new ones get a number."""
        ...

    def rows(self, identities: Numbers) -> Any:
        """The row that each has, -1 if it has none. The caller may write to the array."""
        ...

    def put(self, identities: Numbers, rows: Numbers) -> None:
        """They have these rows now."""
        ...

    def remove(self, identities: Numbers) -> None:
        """They have no rows any more."""
        ...

    def settle(self, identities: Numbers) -> None:
        """Forgets those that have no row; called when all is done for a batch."""
        ...


class JoinKeyIdentities:
    """The join key has one row at most. ``rows_of_keys`` are those of the side, which sets them."""

    def __init__(self, rows_of_keys: SingleRows) -> None:
        self.rows = rows_of_keys.rows

    def of(self, data: pa.RecordBatch, keys: Numbers) -> Numbers:
        return keys

    def put(self, identities: Numbers, rows: Numbers) -> None:
        """The side has done it."""

    def remove(self, identities: Numbers) -> None:
        """The side has done it."""

    def settle(self, identities: Numbers) -> None:
        """Join keys are forgotten when neither side has rows of them."""


class ColumnIdentities:
    """These columns tell the rows apart."""

    def __init__(self, columns: Sequence[int]) -> None:
        self._columns = columns
        self._index = KeyIndex(key_names(len(columns)))
        self._row_of = Grown(np.int64, -1)

    def of(self, data: pa.RecordBatch, keys: Numbers) -> Any:
        if not len(keys):
            return keys
        is_kept = keys >= 0
        if is_kept.all():
            return self._numbers(data)
        found = np.full(len(keys), -1, np.int64)
        if is_kept.any():
            found[is_kept] = self._numbers(data.filter(pa.array(is_kept)))
        return found

    def _numbers(self, data: pa.RecordBatch) -> Any:
        names = key_batch([data.column(at) for at in self._columns])
        numbers = self._index.numbers(names).ids
        self._row_of.reach(self._index.size)
        return numbers

    def rows(self, identities: Numbers) -> Any:
        return np.where(identities < 0, -1, self._row_of.values[identities])

    def put(self, identities: Numbers, rows: Numbers) -> None:
        self._row_of.values[identities] = rows

    def remove(self, identities: Numbers) -> None:
        self._row_of.values[identities] = -1

    def settle(self, identities: Numbers) -> None:
        unused = identities[(identities >= 0) & (self.rows(identities) < 0)]
        if len(unused):
            self._index.forget(np.unique(unused))
