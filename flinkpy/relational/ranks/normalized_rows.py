"""ChangelogNormalize: upserts by a primary key become all changes. Changes that come twice have no
effect the second time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import ColumnBatch
from flinkpy.relational.changed_rows import DELETE, are_added, equal_rows, updates
from flinkpy.relational.ranks.keeps_last_rows import KeepsLastRows, last_positions
from flinkpy.relational.relational_operator import empty_batch, one_record_batch


class NormalizedRowsOperator(KeepsLastRows):
    """Keeps the last row of each key. A row that is deleted goes out as it was kept: that of the
    input may have its key alone."""

    takes_changes = ALL_CHANGES

    def changes_of(self, batch: ColumnBatch) -> tuple[pa.RecordBatch, Any]:
        data, kept = batch.data, self._kept
        keyed = kept.of(data)
        last, numbers = last_positions(keyed.codes, len(keyed.ids)), keyed.ids
        had = kept.have(numbers)
        stands = are_added(batch)[last]
        goes = numbers[had & ~stands]
        deleted = kept.take(goes) if len(goes) else empty_batch(self.inputs)
        given, kinds = self._written(
            data.take(pa.array(last[stands])), numbers[stands], had[stands]
        )
        kept.forget(numbers[~stands])
        if not len(goes):
            return given, kinds
        kinds = np.concatenate([np.full(len(goes), DELETE), kinds])
        return one_record_batch([deleted, given], self.schema), kinds

    def _written(self, after: pa.RecordBatch, numbers: Any, had: Any) -> tuple[pa.RecordBatch, Any]:
        kept = self._kept
        before = kept.take(numbers[had]) if had.any() else empty_batch(self.inputs)
        if had.any() and not self.ttl_ms:
            differs = np.ones(len(numbers), np.bool_)
            differs[had] = ~equal_rows(before, after.filter(pa.array(had)))
            before = before.filter(pa.array(differs[had]))
            after, numbers, had = after.filter(pa.array(differs)), numbers[differs], had[differs]
        kept.put(numbers, after)
        return updates(before, after, had, gives_before=self.gives_before)
