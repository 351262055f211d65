"""The first record of every key of a KeyIndex: what shows the keys again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.operators.columnar.key_index import KeyedBatch

if TYPE_CHECKING:
    import numpy.typing as npt


class FirstRecords:
    """The first record of every key, in chunks; growing chunks are merged, so that there are few
    and each is copied seldom."""

    def __init__(self) -> None:
        self._chunks: list[Any] = []

    def add(self, data: pa.RecordBatch, keyed: KeyedBatch) -> None:
        """Keeps the first records of the batch's new keys."""
        if not keyed.is_new.any():
            return
        self.add_new(data, keyed.firsts[keyed.is_new])

    def add_new(self, data: pa.RecordBatch, new: Any) -> None:
        """The same, given the positions of these records, in the order of their numbers."""
        self._chunks.append(pa.Table.from_batches([data.take(pa.array(new))]))
        while len(self._chunks) > 1 and self._chunks[-2].num_rows <= 2 * self._chunks[-1].num_rows:
            self._chunks[-2:] = [pa.concat_tables(self._chunks[-2:]).combine_chunks()]

    def take(self, ids: npt.NDArray[np.int64], names: Sequence[str]) -> list[Any]:
        """These columns of the first records of the keys ``ids``."""
        found = (
            pa.concat_tables([chunk.select(names) for chunk in self._chunks])
            .take(pa.array(ids))
            .combine_chunks()
        )
        return [
            column.chunk(0) if column.num_chunks else pa.array([], column.type)
            for column in found.columns
        ]

    def all(self) -> Any:
        """The first records of all keys, by key number."""
        if len(self._chunks) > 1:
            self._chunks = [pa.concat_tables(self._chunks).combine_chunks()]
        return self._chunks[0].to_batches()[0]

    def freeze(self) -> FirstRecords:
        """Those of now: chunks are never changed."""
        frozen = FirstRecords()
        frozen._chunks = list(self._chunks)
        return frozen
