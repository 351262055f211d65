"""Limit: some rows, whichever come first."""

from __future__ import annotations

import pyarrow as pa

from flinkpy.core.elements import ColumnBatch
from flinkpy.relational.relational_operator import RelationalOperator


class LimitRowsOperator(RelationalOperator):
    """Drops the first ``offset`` rows, and all behind the next ``limit`` ones. Without state: it is
    for BATCH. One subtask must see all rows."""

    def __init__(self, offset: int, limit: int | None, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.offset = offset
        self.limit = limit

    def open(self) -> None:
        self._dropped, self._given = 0, 0

    @property
    def has_enough(self) -> bool:
        return self.limit is not None and self._given >= self.limit

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch | None:
        skipped = min(self.offset - self._dropped, len(batch))
        self._dropped += skipped
        left = len(batch) - skipped
        if self.limit is not None:
            left = min(left, self.limit - self._given)
        self._given += left
        return batch.slice(skipped, left) if left else None
