"""Deduplicate of STREAMING that keeps the first row of each key: what went out stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.operators.columnar.key_index import FirstRecords, KeyIndex
from flinkpy.operators.columnar.state_tables import from_bytes, key_of_group
from flinkpy.relational.in_time.rows_in_time import RowsInTime
from flinkpy.relational.key_columns import key_batch, key_names
from flinkpy.relational.relational_operator import with_schema
from flinkpy.relational.state.rows_by_group import rows_by_group

SEEN = "row"


class FirstRowsOperator(RowsInTime):
    """By event time the first row goes out when the watermark has reached it; as rows come, at
    once. Its state has the keys of the rows that went out. ``gives_rank`` appends the row's number,
    which is 1."""

    def __init__(
        self,
        inputs: pa.Schema,
        time: int | None,
        keys: Sequence[int],
        schema: pa.Schema,
        *,
        gives_rank: bool = False,
    ) -> None:
        super().__init__(inputs, time, keys, schema)
        self.gives_rank = gives_rank

    def open(self) -> None:
        super().open()
        fields = [self.inputs.field(at) for at in self.keys] or [pa.field("all", pa.bool_())]
        self._key_schema = pa.schema(fields)
        self._index = KeyIndex(key_names(len(fields)))
        self._seen = FirstRecords()
        for each in self.backend.register_region(SEEN, self._freeze_seen).values():
            self._new(with_schema(from_bytes(each), self._key_schema))

    def _freeze_seen(self) -> Callable[[Turns], dict[int, bytes]]:
        count, seen = len(self._index), self._seen.freeze()
        schema, max_parallelism = self._key_schema, self.context.task.max_parallelism
        keys = range(len(self.keys))

        def saved(turns: Turns) -> dict[int, bytes]:
            if not count:
                return {}
            found = rows_by_group(
                [with_schema(seen.all(), schema)], schema, keys, max_parallelism, turns
            )
            return {key_of_group(group, max_parallelism): data for group, data in found.items()}

        return saved

    def entries_held(self) -> int:
        return super().entries_held() + len(self._index)

    def take_in_time(self, data: pa.RecordBatch) -> pa.RecordBatch:
        if self.keys:
            keys = pa.RecordBatch.from_arrays(
                [data.column(at) for at in self.keys], schema=self._key_schema
            )
        else:
            keys = pa.RecordBatch.from_arrays(
                [pa.array(np.ones(data.num_rows, np.bool_))], schema=self._key_schema
            )
        firsts = data.take(pa.array(self._new(keys)))
        columns = firsts.columns
        if self.gives_rank:
            columns.append(pa.array(np.ones(firsts.num_rows, np.int64)))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _new(self, keys: pa.RecordBatch) -> np.ndarray:
        """The positions of rows whose key was not there before."""
        named = key_batch(keys.columns)
        fresh = self._index.numbers(named).fresh
        if len(fresh):
            self._seen.add_new(named, fresh)
        found: np.ndarray = np.sort(fresh)
        return found
