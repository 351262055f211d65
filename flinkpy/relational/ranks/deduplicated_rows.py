"""Deduplicate of STREAMING that keeps the last row of each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.common.changelog_mode import INSERT_ONLY, ChangelogMode
from flinkpy.core.elements import ColumnBatch
from flinkpy.relational.changed_rows import equal_rows, updates
from flinkpy.relational.ranks.keeps_last_rows import KeepsLastRows, last_positions
from flinkpy.relational.relational_operator import empty_batch
from flinkpy.relational.row_times import milliseconds


class LastRowsOperator(KeepsLastRows):
    """The last row is the one with the greatest ``time`` (a column of event time; a row that comes
    later wins among equal times), or with None the one that came last. It goes out at once, and is
    replaced when a later one comes. The rank is 1, if the results' schema has a column for it."""

    takes_changes = INSERT_ONLY

    def __init__(
        self,
        inputs: pa.Schema,
        time: int | None,
        keys: Sequence[int],
        schema: pa.Schema,
        changes: ChangelogMode,
        ttl_ms: int = 0,
    ) -> None:
        super().__init__(inputs, keys, schema, changes, ttl_ms)
        self.time = time

    def changes_of(self, batch: ColumnBatch) -> tuple[pa.RecordBatch, Any]:
        data, kept = batch.data, self._kept
        keyed = kept.of(data)
        last, numbers = self._last(data, keyed.codes, len(keyed.ids)), keyed.ids
        had = kept.have(numbers)
        before = kept.take(numbers[had]) if had.any() else empty_batch(self.inputs)
        after = data.take(pa.array(last))
        stays = np.zeros(len(numbers), np.bool_)
        if self.time is not None:
            stays[had] = self._times(before) > self._times(after.filter(pa.array(had)))
        elif not self.ttl_ms:
            # with a TTL what comes behind must hear of rows that are written again, as in Flink
            stays[had] = equal_rows(before, after.filter(pa.array(had)))
        if stays.any():
            goes = ~stays
            before = before.filter(pa.array(goes[had]))
            after, numbers, had = after.filter(pa.array(goes)), numbers[goes], had[goes]
        kept.put(numbers, after)
        given, kinds = updates(before, after, had, gives_before=self.gives_before)
        return self._ranked(given), kinds

    def _times(self, data: pa.RecordBatch) -> Any:
        assert self.time is not None
        return milliseconds(data.column(self.time), self.inputs.names[self.time])

    def _last(self, data: pa.RecordBatch, codes: Any, count: int) -> Any:
        if self.time is None:
            return last_positions(codes, count)
        order = np.argsort(self._times(data), kind="stable")
        return order[last_positions(codes[order], count)]

    def _ranked(self, data: pa.RecordBatch) -> pa.RecordBatch:
        arrays = data.columns
        if len(self.schema) > len(arrays):
            arrays.append(pa.array(np.ones(data.num_rows, np.int64)))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
