"""The side of a hash join that is kept: its rows, found by the numbers of their keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.operators.columnar.key_index import KeyIndex
from flinkpy.relational.key_columns import key_batch, key_names
from flinkpy.relational.pair_pieces import pair_pieces
from flinkpy.relational.relational_operator import ROWS_AT_ONCE, one_record_batch, plain

_SPREAD = 8  # whole numbers are places in an array of at most so many times the rows
_ALWAYS = 1 << 20  # or of so many places
_HASHED_AT_ONCE = 1 << 16  # rows; what that takes is several times their keys


class JoinKeys:
    """The key columns of one side. A null meets nothing, unless the key is ``null_safe``."""

    def __init__(self, columns: Sequence[int], null_safe: Sequence[bool]) -> None:
        self._columns = tuple(columns)
        self._null_safe = tuple(null_safe) or (False,) * len(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def of(self, data: pa.RecordBatch) -> tuple[pa.RecordBatch, Any]:
        """The keys, and where they can meet others (None: everywhere)."""
        keys = key_batch([data.column(at) for at in self._columns])
        mask: Any = None
        for column, is_safe in zip(keys.columns, self._null_safe):
            if column.null_count and not is_safe:
                mask = column.is_valid() if mask is None else pc.and_(mask, column.is_valid())
        return keys, mask


class BuiltSide:
    """The rows of the built side. First ``add`` all, then ``seal``, then look for partners."""

    def __init__(self, keys: JoinKeys, schema: pa.Schema) -> None:
        self._keys = keys
        self._schema = schema
        self._parts: list[pa.RecordBatch] = []
        self._numbers: _Numbers | None = None
        self._counts: Any = None  # rows of each key; the last is that of unknown keys
        self._starts: Any = None
        self._order: Any = None  # the rows by key
        self.is_unique = False
        self.has_null_key = False
        self.rows: Any = None
        """All rows, as one batch, once it is sealed."""

    def add(self, data: pa.RecordBatch) -> None:
        """Takes rows."""
        self._parts.append(data)

    @property
    def is_sealed(self) -> bool:
        return self.rows is not None

    def seal(self) -> None:
        """All rows are there."""
        self.rows, self._parts = one_record_batch(self._parts, self._schema), []
        count = self.rows.num_rows
        if len(self._keys):
            keys, mask = self._keys.of(self.rows)
            self.has_null_key = mask is not None
            there = np.arange(count) if mask is None else np.flatnonzero(mask.to_numpy(False))
            keys = keys if mask is None else keys.filter(mask)
            self._numbers = numbers_for(keys)
            numbers = self._numbers.of_built(keys)
        else:
            there, numbers = np.arange(count), np.zeros(count, np.int64)
        counts = np.bincount(numbers, minlength=1)
        self._counts = np.append(counts, 0)
        self._starts = np.cumsum(self._counts) - self._counts
        self.is_unique = bool(self._counts.max() <= 1)
        if self.is_unique:
            self._order = np.empty(len(there), np.int64)
            self._order[self._starts[numbers]] = there
        else:
            self._order = there[np.argsort(numbers, kind="stable")]

    def numbers_of(self, data: pa.RecordBatch, keys: JoinKeys) -> Any:
        """For each row of the other side the number of its key, -1 if no row here has it."""
        rows = data.num_rows
        if self._numbers is None:
            return np.zeros(rows, np.int64)
        probed, mask = keys.of(data)
        if mask is None:
            return self._numbers.find(probed)
        found = np.full(rows, -1, np.int64)
        found[mask.to_numpy(zero_copy_only=False)] = self._numbers.find(probed.filter(mask))
        return found

    def partners(self, numbers: npt.NDArray[Any]) -> Any:
        """How many rows here have these keys."""
        return self._counts[numbers]

    def pairs(self, numbers: npt.NDArray[Any]) -> Iterator[tuple[Any, Any]]:
        """Positions of the other side's rows, and rows here that have their key; in pieces of
        bounded size, in the order of the other side."""
        if self.is_unique:
            at = np.flatnonzero(self._counts[numbers])
            rows = self._order[self._starts[numbers[at]]]
            for begin in range(0, len(at), ROWS_AT_ONCE):
                yield at[begin : begin + ROWS_AT_ONCE], rows[begin : begin + ROWS_AT_ONCE]
            return
        for at, within in pair_pieces(self._counts[numbers]):
            yield at, self._order[self._starts[numbers[at]] + within]


class _Numbers:
    """The numbers of keys by an index of any keys."""

    def __init__(self, width: int) -> None:
        self._index = KeyIndex(key_names(width))

    def of_built(self, keys: pa.RecordBatch) -> Any:
        found = np.empty(keys.num_rows, np.int64)
        for begin in range(0, keys.num_rows, _HASHED_AT_ONCE):
            some = keys.slice(begin, _HASHED_AT_ONCE)
            found[begin : begin + _HASHED_AT_ONCE] = self._index.numbers(some).ids
        return found

    def find(self, keys: pa.RecordBatch) -> Any:
        return self._index.find(keys) if keys.num_rows else np.empty(0, np.int64)


class _Places(_Numbers):
    """Whole numbers within a small reach are places themselves."""

    def __init__(self, least: int, greatest: int) -> None:
        self._least, self._greatest = least, greatest

    def of_built(self, keys: pa.RecordBatch) -> Any:
        return _whole(keys) - self._least

    def find(self, keys: pa.RecordBatch) -> Any:
        values, column = _whole(keys), keys.column(0)
        is_place = (values >= self._least) & (values <= self._greatest)
        if column.null_count:
            is_place &= column.is_valid().to_numpy(zero_copy_only=False)
        return np.where(is_place, values - self._least, -1)


def numbers_for(keys: pa.RecordBatch) -> _Numbers:
    """The cheapest numbers for the keys of the built side."""
    column = keys.column(0)
    is_whole = pa.types.is_integer(column.type) or pa.types.is_date32(column.type)
    if keys.num_columns > 1 or not is_whole or column.null_count or not len(column):
        return _Numbers(keys.num_columns)
    values = _whole(keys)
    least, greatest = int(values.min()), int(values.max())
    if greatest - least < max(_SPREAD * len(values), _ALWAYS):
        return _Places(least, greatest)
    return _Numbers(1)


def _whole(keys: pa.RecordBatch) -> Any:
    column = plain(keys.column(0))
    if pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    if column.null_count:
        column = column.fill_null(0)
    return column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
