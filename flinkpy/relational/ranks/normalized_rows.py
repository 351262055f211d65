"""ChangelogNormalize: upserts by a primary key become all changes. Changes that come twice have no
effect the second time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import ColumnBatch
from flinkpy.operators.columnar.key_index import KeyedBatch
from flinkpy.relational.changed_rows import (
    AFTER,
    BEFORE,
    DELETE,
    INSERT,
    are_added,
    equal_rows,
    updates,
)
from flinkpy.relational.ranks.keeps_last_rows import KeepsLastRows, last_positions
from flinkpy.relational.relational_operator import empty_batch, one_record_batch


class NormalizedRowsOperator(KeepsLastRows):
    """Keeps the last row of each key. A row that is deleted goes out as it was kept: that of the
    input may have its key alone."""

    takes_changes = ALL_CHANGES

    def parts_of(self, batch: ColumnBatch) -> Iterable[ColumnBatch]:
        return (batch,)

    def changes_of(self, batch: ColumnBatch) -> tuple[pa.RecordBatch, Any]:
        data, kept = batch.data, self._kept
        keyed = kept.of(data)
        if self.every_change and len(keyed.ids) < len(batch):
            return self._one_by_one(batch, keyed)
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

    def _one_by_one(self, batch: ColumnBatch, keyed: KeyedBatch) -> tuple[pa.RecordBatch, Any]:
        """Each change of a batch, in which keys have several rows."""
        kept, numbers, count = self._kept, keyed.ids, len(batch)
        had, added = kept.have(numbers), are_added(batch)
        stood = kept.take(numbers[had]) if had.any() else empty_batch(self.inputs)
        rows = one_record_batch([stood, batch.data], self.inputs)
        # by row: where the one before it is among all of them; -1 if there is none
        before = np.full(len(numbers), -1)
        before[had] = np.arange(stood.num_rows)
        order = np.argsort(keyed.codes, kind="stable")
        codes = keyed.codes[order]
        follows = np.append(False, codes[1:] == codes[:-1])
        previous = np.where(follows, np.append(-1, order[:-1]) + stood.num_rows, before[codes])
        previous[follows & ~np.append(False, added[order][:-1])] = -1
        earlier = np.empty(count, np.int64)
        earlier[order] = previous
        places = stood.num_rows + np.arange(count)
        updated = added & (earlier >= 0)
        goes = np.where(added, earlier < 0, earlier >= 0)
        differs = updated.copy()
        if not self.ttl_ms and updated.any():
            pair = (rows.take(pa.array(each[updated])) for each in (earlier, places))
            differs[updated] = ~equal_rows(*pair)
        kinds = np.where(added, np.where(earlier < 0, INSERT, AFTER), DELETE)
        shown = np.column_stack([earlier, np.where(added, places, earlier)])
        wanted = np.column_stack([differs & self.gives_before, goes | differs])
        both = np.column_stack([np.full(count, BEFORE), kinds])
        last = last_positions(keyed.codes, len(numbers))
        stands = added[last]
        kept.put(numbers[stands], batch.data.take(pa.array(last[stands])))
        kept.forget(numbers[~stands])
        return rows.take(pa.array(shown[wanted])), both[wanted]
