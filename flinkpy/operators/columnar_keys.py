"""Keys of column batches: each key gets a dense number, by which the state of columnar aggregates is an array.

Per batch only its distinct keys are looked up in Python; the rest is dictionary encoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.table.compiler import column_index
from flinkpy.table.conversion import python_values

_TABLE_LIMIT = 1 << 22
_NAN = object()  # all not-a-numbers are one key, though they differ from each other


@dataclass(frozen=True)
class KeyedBatch:
    """``codes``: for each record, which of the batch's distinct keys it has; ``ids``: the number of each distinct key;
    ``firsts``: the position of each distinct key's first record; ``is_new``: which of them were never seen before."""

    codes: Any
    ids: Any
    firsts: Any
    is_new: Any


class KeyIndex:
    """Numbers keys as they appear, from 0. Small whole numbers (ids, mostly) are looked up in an array, all others in a dict."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        self._ids: dict[Any, int] = {}
        self._table: Grown | None = Grown(np.int64, -1) if len(self._columns) == 1 else None  # the number of key k at index k
        self._known = 0

    def __len__(self) -> int:
        return self._known

    def of(self, data: Any) -> KeyedBatch:
        """The keys of a record batch."""
        if self._table is not None:
            column = data.column(column_index(self._columns[0], data.schema))
            if pa.types.is_integer(column.type) and column.null_count == 0:
                keys = column.to_numpy()
                if len(keys) and keys.min() >= 0 and (top := int(keys.max())) < _TABLE_LIMIT:
                    return self._of_small(keys, self._table.reach(top + 1))
            self._leave_table(self._table.values)
        keyed = self._of_any(data)
        self._known = len(self._ids)
        return keyed

    def ids_of(self, data: Any) -> Any:
        """The number of each record's key: all that is needed where records are grouped later."""
        if self._table is not None:
            column = data.column(column_index(self._columns[0], data.schema))
            if pa.types.is_integer(column.type) and column.null_count == 0 and len(column):
                keys = column.to_numpy()
                if keys.min() >= 0 and (top := int(keys.max())) < _TABLE_LIMIT:
                    return self._ids_of_small(keys, self._table.reach(top + 1))
        keyed = self.of(data)
        return keyed.ids[keyed.codes]

    def _ids_of_small(self, keys: Any, table: Any) -> Any:
        ids, known = table[keys], self._known
        unknown = keys[ids < 0]
        if len(unknown):
            firsts = np.sort(np.unique(unknown, return_index=True)[1])
            table[unknown[firsts]] = np.arange(known, known + len(firsts))
            self._known += len(firsts)
            ids = table[keys]
        return ids

    def _of_small(self, keys: Any, table: Any) -> KeyedBatch:
        known = self._known
        ids = self._ids_of_small(keys, table)
        positions = np.arange(len(ids))
        first_of = np.empty(self._known, dtype=np.int64)  # only what this batch touches is written, and read
        first_of[ids[::-1]] = positions[::-1]  # the last assignment counts: the first record
        first_of = first_of[ids]
        is_first = first_of == positions
        distinct = ids[is_first]
        return KeyedBatch((np.cumsum(is_first) - 1)[first_of], distinct, positions[is_first], distinct >= known)

    def _leave_table(self, table: Any) -> None:
        keys = np.nonzero(table >= 0)[0]
        self._ids = dict(zip(keys.tolist(), table[keys].tolist()))
        self._table = None

    def _of_any(self, data: Any) -> KeyedBatch:
        encoded = [_encoded(data.column(column_index(name, data.schema))) for name in self._columns]
        codes, keys = encoded[0] if len(encoded) == 1 else _combined(encoded)
        known = len(self._ids)
        numbers: list[Any] = list(map(self._ids.get, keys))
        if None in numbers:
            number = self._ids.setdefault
            numbers = [number(key, len(self._ids)) for key in keys]
        ids = np.array(numbers, dtype=np.int64)
        firsts = np.empty(len(keys), dtype=np.int64)
        firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # the last assignment counts: the first record
        return KeyedBatch(codes, ids, firsts, ids >= known)

    def __repr__(self) -> str:
        return f"<KeyIndex of {', '.join(self._columns)}: {self._known} keys>"


def _encoded(column: Any) -> tuple[Any, list[Any]]:
    """Codes, and the value of each code. Zeros of both signs are one key, as they are equal; and so are all not-a-numbers, which have a sign too."""
    is_float = pa.types.is_floating(column.type)
    if is_float:
        column = column.cast(pa.float64())
        column = pc.if_else(pc.is_nan(column), float("nan"), pc.add(column, 0.0))
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_struct(column.type):  # Arrow tells no two structs apart
        return _encoded_one_by_one(python_values(column))
    encoded = column.dictionary_encode(null_encoding="encode")
    values = python_values(encoded.dictionary)
    if is_float:
        values = [_NAN if value != value else value for value in values]
    return encoded.indices.to_numpy(), values


def _encoded_one_by_one(values: list[Any]) -> tuple[Any, list[Any]]:
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64), list(numbers)


def _combined(encoded: list[tuple[Any, list[Any]]]) -> tuple[Any, list[Any]]:
    joint = encoded[0][0].astype(np.int64)
    for codes, values in encoded[1:]:
        joint = joint * len(values) + codes
    compact = pa.array(joint).dictionary_encode()
    distinct = compact.dictionary.to_numpy()
    parts = []
    for _, values in reversed(encoded):
        distinct, at = np.divmod(distinct, len(values))
        parts.append([values[index] for index in at.tolist()])
    return compact.indices.to_numpy(), list(zip(*reversed(parts)))


class Grown:
    """A numpy array that grows with the number of keys, by doubling."""

    def __init__(self, dtype: Any, fill: Any) -> None:
        self._fill = fill
        self.values = np.full(64, fill, dtype=dtype)

    def reach(self, size: int) -> Any:
        """The array, with room for ``size`` keys."""
        if size > len(self.values):
            grown = np.full(max(size, 2 * len(self.values)), self._fill, dtype=self.values.dtype)
            grown[: len(self.values)] = self.values
            self.values = grown
        return self.values
