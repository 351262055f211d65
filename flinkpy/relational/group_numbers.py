"""The groups of an aggregate in BATCH: each has a number, in the order in which they first came,
so that what is accumulated for them can be arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.operators.columnar.key_index import PLACES, KeyIndex, encoded
from flinkpy.operators.columnar.records_of_keys import FirstRecords
from flinkpy.relational.key_columns import key_batch, key_names

_FEW = 8  # rows a key: so many at least make it worth to find a batch's distinct keys first


class GroupNumbers:
    """Numbers the groups by these columns. Null is a key as any other; all NaNs are one key, and
    the zeros of both signs are one. Without columns there is one group, whether rows come or not.

    >>> groups = GroupNumbers([0])
    >>> groups.of(pa.record_batch({"a": ["x", None, "x"]})).tolist()
    [0, 1, 0]
    >>> groups.key_columns()[0].to_pylist()
    ['x', None]
    """

    def __init__(self, keys: Sequence[int], places: int = PLACES) -> None:
        """Integers below ``places`` may be places of an array."""
        self._keys = tuple(keys)
        self._index = KeyIndex(key_names(len(self._keys)), places)
        self._firsts = FirstRecords()
        self._are_few = True  # whether the last batch had few distinct keys

    def __len__(self) -> int:
        return len(self._index) if self._keys else 1

    def growth(self, keys: int) -> int:
        """How many bytes it takes for a moment to make room for so many more groups, at most."""
        return self._index.growth(keys)

    def of(self, data: pa.RecordBatch) -> Any:
        """The number of each row's group."""
        if not self._keys:
            return np.zeros(data.num_rows, np.int64)
        keys = key_batch([data.column(at) for at in self._keys])
        if not self._are_few:
            return self._numbered(keys)
        distinct = encoded(keys.columns)
        self._are_few = distinct.count * _FEW <= max(data.num_rows, 256)
        return self._numbered(keys.take(pa.array(distinct.firsts))).take(distinct.codes)

    def find(self, data: pa.RecordBatch) -> Any:
        """The number of each row's group; -1 where there is none yet."""
        if not self._keys:
            return np.zeros(data.num_rows, np.int64)
        keys = key_batch([data.column(at) for at in self._keys])
        if not self._are_few:
            return self._index.find(keys)
        distinct = encoded(keys.columns)
        return self._index.find(keys.take(pa.array(distinct.firsts))).take(distinct.codes)

    def _numbered(self, keys: pa.RecordBatch) -> Any:
        numbered = self._index.numbers(keys)
        if len(numbered.fresh):
            self._firsts.add_new(keys, numbered.fresh)
        return numbered.ids

    def key_columns(self) -> list[pa.Array]:
        """The keys of all groups, by their numbers. There must be one."""
        return list(self._firsts.all().columns) if self._keys else []

    def forget_index(self) -> None:
        """No rows come any more: what finds their groups is dropped."""
        self._index = KeyIndex(())
