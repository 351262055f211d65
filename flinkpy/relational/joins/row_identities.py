"""What tells the rows of one side of a join apart: which row goes, and which one takes the place of
another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from flinkpy.operators.columnar.array_memory import Empty
from flinkpy.operators.columnar.key_index import Grown, KeyIndex, encoded, words_of_rows
from flinkpy.operators.columnar.key_words import Words
from flinkpy.relational.key_columns import key_batch, key_names
from flinkpy.relational.picked_rows import taken
from flinkpy.relational.state.multi_map import Numbers, SingleRows
from flinkpy.relational.state.row_store import RowStore
from flinkpy.relational.state.row_table import RowTable


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


class ContentIdentities:
    """All values tell the rows apart. Of each row no more than a hash is kept: values are compared
    with those in the store. So the identities are numbers within a batch, until that is
    settled."""

    def __init__(self, store: RowStore, empty: Empty) -> None:
        """``empty`` gives arrays."""
        self._store = store
        self._table = RowTable(empty)
        self._hashes = self._rows = np.empty(0, np.int64)  # by identity

    def of(self, data: pa.RecordBatch, keys: Numbers) -> Any:
        found = np.full(len(keys), -1, np.int64)
        kept = np.flatnonzero(keys >= 0)
        if len(kept):
            words = words_of_rows(taken(data, kept).columns)
            hashes = words.hashes()
            codes, firsts = _distinct(words, hashes)
            self._hashes, known = hashes[firsts], words.taken(firsts)
            self._rows = self._table.find(
                self._hashes, lambda at, rows: known.taken(at).equal(self._words_of(rows))
            )
            found[kept] = codes
        return found

    def _words_of(self, rows: Numbers) -> Words:
        return words_of_rows(self._store.take(rows).columns)

    def rows(self, identities: Numbers) -> Any:
        found = np.full(len(identities), -1, np.int64)
        is_kept = identities >= 0
        found[is_kept] = self._rows[identities[is_kept]]
        return found

    def put(self, identities: Numbers, rows: Numbers) -> None:
        self._rows[identities] = rows
        self._table.put(self._hashes[identities], rows)

    def remove(self, identities: Numbers) -> None:
        self._table.remove(self._hashes[identities], self._rows[identities])
        self._rows[identities] = -1

    def settle(self, identities: Numbers) -> None:
        self._hashes = self._rows = np.empty(0, np.int64)


def _distinct(words: Words, hashes: Numbers) -> tuple[Any, Any]:
    """For each row the number of its values among those that differ, and where each of these is
    first."""
    found = encoded([pa.array(hashes)])
    if not words.equal(words.taken(found.firsts[found.codes])).all():  # different rows, one hash
        texts = [words.taken(np.array([at])).packed().tobytes() for at in range(len(hashes))]
        found = encoded([pa.array(texts, pa.large_binary())])
    return found.codes.astype(np.int64), found.firsts


class ColumnIdentities:
    """These columns tell the rows apart."""

    def __init__(self, columns: Sequence[int], empty: Empty) -> None:
        """``empty`` gives arrays."""
        self._columns = columns
        self._index = KeyIndex(key_names(len(columns)), empty=empty)
        self._row_of = Grown(np.int32, -1, empty)

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
        return np.where(identities < 0, np.int64(-1), self._row_of.values[identities])

    def put(self, identities: Numbers, rows: Numbers) -> None:
        self._row_of.values[identities] = rows

    def remove(self, identities: Numbers) -> None:
        self._row_of.values[identities] = -1

    def settle(self, identities: Numbers) -> None:
        unused = identities[(identities >= 0) & (self.rows(identities) < 0)]
        if len(unused):
            self._index.forget(np.unique(unused))
