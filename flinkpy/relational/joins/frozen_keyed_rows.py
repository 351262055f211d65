"""The rows of one side of an interval join as they were at a barrier."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.operators.columnar.tables_by_group import key_of_group
from flinkpy.relational.joins.keyed_rows import Chunk, KeyedRows
from flinkpy.relational.state.frozen_chunks import digest_of
from flinkpy.relational.state.rows_by_group import groups_of_rows
from flinkpy.state.snapshots.chunked_regions import FrozenChunk, FrozenChunks

MET = "$met"
_MET = pa.field(MET, pa.bool_())


class FrozenKeyedRows(FrozenChunks):
    """Without the rows up to the time ``over``. ``key_columns`` decide about the key group of a
    row."""

    def __init__(
        self, rows: KeyedRows, over: int, key_columns: Sequence[int], max_parallelism: int
    ) -> None:
        self._chunks = [(each, each.met.copy()) for each in rows.chunks if each.last > over]
        self._over = over
        self.folders = rows.folders
        self._key_columns = key_columns
        self._max_parallelism = max_parallelism
        self.keys = [key_of_group(group, max_parallelism) for group in range(max_parallelism)]

    def chunks(self, turns: Turns) -> Sequence[FrozenChunk]:
        found = []
        for chunk, met in self._chunks:
            if not chunk.digest:
                chunk.digest = digest_of(*self._data(chunk))
                turns.give_way()
            alive = chunk.times > self._over
            found.append(
                FrozenChunk(
                    chunk.digest,
                    partial(self._data, chunk),
                    None if alive.all() else alive,
                    partial(_beside, met, alive),
                )
            )
        return found

    def _data(self, chunk: Chunk) -> tuple[Any, pa.RecordBatch]:
        groups = groups_of_rows(chunk.data, self._key_columns, self._max_parallelism)
        return groups.astype(np.int32), chunk.data


def _beside(met: Any, alive: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(met[alive])], schema=pa.schema([_MET]))
