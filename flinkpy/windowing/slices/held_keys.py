"""The keys that windows over columns hold, by their numbers. Numbers of keys that no slice holds
any more are given to others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.compiler import column_index
from flinkpy.operators.columnar.column_operators import one_batch
from flinkpy.operators.columnar.key_index import Grown, KeyIndex

if TYPE_CHECKING:
    import numpy.typing as npt

_FEW = 4096  # to look for so few keys that are gone is not worth it


class WindowKeys:
    """Numbers keys, and gives back the key columns of a number. Without columns there is one key,
    and its number is None."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        self._index = KeyIndex(self._columns)
        self._chunks: list[Any] = []
        self._rows = 0  # in the chunks
        self._row_of = Grown(np.int64, -1)  # by number: in the chunks
        self._alive = 0

    def __len__(self) -> int:
        return len(self._index)

    @property
    def size(self) -> int:
        """Every number is below."""
        return self._index.size

    def numbers(self, data: object) -> Any:
        """The number of each record's key."""
        if not self._columns:
            return None
        found = self._index.numbers(data)
        if len(found.fresh):
            new = found.ids[found.fresh]
            rows = np.arange(self._rows, self._rows + len(new))
            self._row_of.put(new, rows, self._index.size)
            self._keep(self._of(data).take(pa.array(found.fresh)))
        return found.ids

    def columns(self, ids: npt.NDArray[np.int64] | None) -> list[Any]:
        """The key columns of these keys."""
        if ids is None:
            return []
        if len(self._chunks) > 1:
            self._chunks = [one_batch(pa.Table.from_batches(self._chunks))]
        return list(self._chunks[0].take(pa.array(self._row_of.values[ids])).columns)

    def batch(self, ids: npt.NDArray[np.int64] | None) -> Any:
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
        # Rows of the numbers of now never change in this array: forgetting makes another one
        frozen._row_of.values = self._row_of.values
        return frozen

    def forget_all_but(self, alive: Iterable[Any]) -> None:
        """Forgets the other keys, where that is worth it: most keys are gone. ``alive``: arrays of
        numbers."""
        known = len(self._index) if self._columns else 0
        if known < 2 * self._alive + _FEW:
            return
        is_alive = np.zeros(self._index.size, dtype=np.bool_)
        for ids in alive:
            is_alive[ids] = True
        row_of = self._row_of.reach(self._index.size)[: self._index.size]
        gone = np.flatnonzero((row_of >= 0) & ~is_alive)
        kept = np.flatnonzero(is_alive)
        self._alive = len(kept)
        if known < 2 * self._alive + _FEW:
            return
        self._index.forget(gone)
        self._chunks = [
            pa.RecordBatch.from_arrays(self.columns(kept), schema=self._chunks[0].schema)
        ]
        self._rows, self._row_of = len(kept), Grown(np.int64, -1)
        self._row_of.reach(self._index.size)[kept] = np.arange(len(kept))

    def _of(self, data: pa.RecordBatch) -> Any:
        return data.select([column_index(name, data.schema) for name in self._columns])

    def _keep(self, batch: Any) -> None:
        self._rows += batch.num_rows
        self._chunks.append(batch)
        while len(self._chunks) > 1 and self._chunks[-2].num_rows <= 2 * self._chunks[-1].num_rows:
            self._chunks[-2:] = [one_batch(pa.Table.from_batches(self._chunks[-2:]))]
