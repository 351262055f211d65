"""Deduplicate of STREAMING that keeps the first row of each key: what went out stays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.in_time.rows_in_time import RowsInTime
from flinkpy.relational.relational_operator import plain
from flinkpy.relational.state.rows_by_key import RowsByKey

SEEN = "row"


class FirstRowsOperator(RowsInTime):
    """By event time the first row goes out when the watermark has reached it; as rows come, at
    once. Its state has the keys of the rows that went out; with ``ttl_ms`` (0: none) a key is
    forgotten so long after that. ``gives_rank`` appends the row's number, which is 1."""

    def __init__(
        self,
        inputs: pa.Schema,
        time: int | None,
        keys: Sequence[int],
        schema: pa.Schema,
        *,
        gives_rank: bool = False,
        ttl_ms: int = 0,
    ) -> None:
        super().__init__(inputs, time, keys, schema)
        self.gives_rank = gives_rank
        self.ttl_ms = ttl_ms

    def open(self) -> None:
        super().open()
        fields = [self.inputs.field(at) for at in self.keys] or [pa.field("all", pa.bool_())]
        self._key_schema = pa.schema(fields)
        keys = range(len(self.keys))
        self._seen = RowsByKey(self._key_schema, keys, self.ttl_ms, self.context)
        self._seen.open(self.backend, SEEN)

    def entries_held(self) -> int:
        return super().entries_held() + len(self._seen)

    def bytes_held(self) -> int:
        return super().bytes_held() + held_bytes(self._seen)

    def take_in_time(self, data: pa.RecordBatch) -> pa.RecordBatch:
        if self.keys:
            keys = pa.RecordBatch.from_arrays(
                [plain(data.column(at)) for at in self.keys], schema=self._key_schema
            )
        else:
            keys = pa.RecordBatch.from_arrays(
                [pa.array(np.ones(data.num_rows, np.bool_))], schema=self._key_schema
            )
        firsts = data.take(pa.array(self._new(keys)))
        self._seen.relieve(data.num_rows)
        columns = firsts.columns
        if self.gives_rank:
            columns.append(pa.array(np.ones(firsts.num_rows, np.int64)))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _new(self, keys: pa.RecordBatch) -> np.ndarray:
        """The positions of rows whose key was not there before."""
        found = self._seen.of(keys)
        is_new = ~self._seen.have(found.ids)
        firsts: np.ndarray = found.firsts[is_new]
        self._seen.put(found.ids[is_new], keys.take(pa.array(firsts)))
        return np.sort(firsts)
