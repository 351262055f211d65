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
        *,
        every_change: bool = False,
    ) -> None:
        super().__init__(inputs, keys, schema, changes, ttl_ms, every_change=every_change)
        self.time = time

    def changes_of(self, batch: ColumnBatch) -> tuple[pa.RecordBatch, Any]:
        data, kept = batch.data, self._kept
        keyed = kept.of(data)
        last, numbers = self._last(data, keyed.codes, len(keyed.ids)), keyed.ids
        had = kept.have(numbers)
        stays = np.zeros(len(numbers), np.bool_)
        stays[had] = self._stay(numbers[had], data, last[had])
        if stays.any():
            goes = ~stays
            last, numbers, had = last[goes], numbers[goes], had[goes]
        is_needed = self.gives_before and had.any()
        before = kept.take(numbers[had]) if is_needed else empty_batch(self.inputs)
        after = data.take(pa.array(last))
        kept.put(numbers, after)
        given, kinds = updates(before, after, had, gives_before=self.gives_before)
        return self._ranked(given), kinds

    def _stay(self, numbers: Any, data: pa.RecordBatch, last: Any) -> Any:
        """Which of these keys keep their row although these rows came: they have a later one, or,
        where no time counts, an equal one."""
        if not len(numbers):
            return False
        if self.time is not None:
            kept = self._kept.column(numbers, self.time)
            return milliseconds(kept, self.inputs.names[self.time]) > self._times(data)[last]
        # with a TTL what comes behind must hear of rows that are written again, as in Flink
        if self.ttl_ms:
            return False
        return equal_rows(self._kept.take(numbers), data.take(pa.array(last)))

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
