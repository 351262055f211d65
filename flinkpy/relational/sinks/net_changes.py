"""In front of a sink that upserts: of a batch only the last row of each primary key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES, ChangelogMode
from flinkpy.core.elements import ColumnBatch
from flinkpy.operators.columnar.key_index import encoded
from flinkpy.relational.changed_rows import AFTER, BEFORE, DELETE, INSERT
from flinkpy.relational.key_columns import key_batch
from flinkpy.relational.relational_operator import RelationalOperator


class NetChangesOperator(RelationalOperator):
    """Keeps nothing from batch to batch. A key whose first row of a batch is an insert was not
    there before. One that is deleted at last is deleted whatever came before: the table may have
    it, where what is behind an operator's TTL was written again."""

    takes_changes = ALL_CHANGES
    emits_changes = ChangelogMode.upsert()

    def __init__(self, schema: pa.Schema, keys: Sequence[int]) -> None:
        super().__init__(schema)
        self.keys = tuple(keys)

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        distinct = encoded(key_batch([batch.data.column(at) for at in self.keys]).columns)
        codes, count = distinct.codes, distinct.count
        kinds = batch.kinds
        if kinds is None:
            kinds = np.zeros(len(batch), np.int8)
        if count == len(batch):
            return self._with_kinds(batch, np.where(kinds == BEFORE, DELETE, kinds))
        last = np.empty(count, np.int64)
        last[codes] = np.arange(len(batch))  # the last assignment wins
        was_not = kinds[distinct.firsts] == INSERT
        is_gone = (kinds[last] == BEFORE) | (kinds[last] == DELETE)
        net = np.where(is_gone, DELETE, np.where(was_not, INSERT, AFTER))
        order = np.argsort(last)
        return self._with_kinds(batch.take(last[order]), net[order])

    def _with_kinds(self, batch: ColumnBatch, kinds: Any) -> ColumnBatch:
        return ColumnBatch(batch.data, batch.timestamps, kinds)
