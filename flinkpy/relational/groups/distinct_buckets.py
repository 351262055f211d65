"""Rows with the parts in which their values are counted: the first step of an aggregate of distinct
values that is split, so that a group with very many of them is the work of several subtasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import ColumnBatch
from flinkpy.relational.relational_operator import RelationalOperator, plain
from flinkpy.relational.state.rows_by_group import groups_of_rows


class DistinctBucketsOperator(RelationalOperator):
    """Each row once for each of the ``sets`` of columns: behind its columns those with the number
    of the bucket, null but for the set's own, then one for each of the ``choices``, a set and a
    column (None: none): whether the row is of this set, and the column true. With one set there is
    nothing to choose."""

    keeps_nothing = True
    takes_changes = ALL_CHANGES

    def __init__(
        self,
        sets: Sequence[tuple[int, ...]],
        choices: Sequence[tuple[int, int | None]],
        buckets: int,
        schema: pa.Schema,
    ) -> None:
        super().__init__(schema)
        self.sets = tuple(sets)
        self.choices = tuple(choices)
        self.buckets = buckets

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        return ColumnBatch.concat([self._of_set(batch, at) for at in range(len(self.sets))])

    def _of_set(self, batch: ColumnBatch, number: int) -> ColumnBatch:
        data, rows = batch.data, len(batch)
        columns = [plain(column) for column in data.columns]
        for at, each in enumerate(self.sets):
            if at == number:
                columns.append(pa.array(groups_of_rows(data, each, self.buckets)))
            else:
                columns.append(pa.nulls(rows, pa.int64()))
        for at, chosen in self.choices:
            if at != number:
                columns.append(pa.array(np.zeros(rows, np.bool_)))
            elif chosen is None:
                columns.append(pa.array(np.ones(rows, np.bool_)))
            else:
                columns.append(plain(data.column(chosen)))
        return batch.with_columns(pa.RecordBatch.from_arrays(columns, schema=self.schema))
