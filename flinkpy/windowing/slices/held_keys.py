"""The keys that windows over columns hold, by their numbers. Numbers of keys that no slice holds
any more are given to others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.compiler import column_index
from flinkpy.operators.columnar.column_operators import one_batch
from flinkpy.operators.columnar.key_index import KeyIndex

_FEW = 4096  # fewer keys are not worth a renumbering


class WindowKeys:
    """Numbers keys, and gives back the key columns of a number. Without columns there is one key,
    and its number is None."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        self._chunks: list[Any] = []
        self._start_over()
        self._alive = 0

    def __len__(self) -> int:
        return len(self._index)

    def _start_over(self) -> None:
        self._index = KeyIndex(self._columns)

    def numbers(self, data: Any) -> Any:
        """The number of each record's key."""
        if not self._columns:
            return None
        known = len(self._index)
        ids = self._index.ids_of(data)
        if len(self._index) > known:
            new = np.nonzero(ids >= known)[0]
            firsts = new[np.unique(ids[new], return_index=True)[1]]
            self._keep(self._of(data).take(pa.array(firsts)))
        return ids

    def columns(self, ids: Any) -> list[Any]:
        """The key columns of these keys."""
        if ids is None:
            return []
        if len(self._chunks) > 1:
            self._chunks = [one_batch(pa.Table.from_batches(self._chunks))]
        return list(self._chunks[0].take(pa.array(ids)).columns)

    def batch(self, ids: Any) -> Any:
        """The same as a record batch; None where there is one key."""
        return (
            None
            if ids is None
            else pa.RecordBatch.from_arrays(self.columns(ids), names=list(self._columns))
        )

    def freeze(self) -> WindowKeys:
        """What gives the key columns of the numbers of now."""
        frozen = WindowKeys(self._columns)
        frozen._chunks = self._chunks.copy()
        return frozen

    def renumbering(self, alive: Iterable[Any]) -> Any:
        """From old numbers to new ones, where that is worth it: most keys are gone; else None.
        ``alive``: arrays of numbers."""
        known = len(self._index) if self._columns else 0
        if known < 2 * self._alive + _FEW:
            return None
        is_alive = np.zeros(known, dtype=np.bool_)
        for ids in alive:
            is_alive[ids] = True
        kept = np.nonzero(is_alive)[0]
        self._alive = len(kept)
        if known < 2 * self._alive + _FEW:
            return None
        batch = pa.RecordBatch.from_arrays(self.columns(kept), schema=self._chunks[0].schema)
        self._chunks = [batch]
        self._start_over()
        numbers = np.full(known, -1, dtype=np.int64)
        if len(kept):
            numbers[kept] = self._index.ids_of(batch)
        return numbers

    def _of(self, data: Any) -> Any:
        return data.select([column_index(name, data.schema) for name in self._columns])

    def _keep(self, batch: Any) -> None:
        self._chunks.append(batch)
        while len(self._chunks) > 1 and self._chunks[-2].num_rows <= 2 * self._chunks[-1].num_rows:
            self._chunks[-2:] = [one_batch(pa.Table.from_batches(self._chunks[-2:]))]
