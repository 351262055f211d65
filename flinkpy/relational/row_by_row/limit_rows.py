"""Limit: some rows, whichever come first."""

from __future__ import annotations

import pyarrow as pa

from flinkpy.core.elements import ColumnBatch
from flinkpy.relational.relational_operator import RelationalOperator
from flinkpy.state.descriptors import RESERVED

_PASSED = f"{RESERVED}dropped and given"


class LimitRowsOperator(RelationalOperator):
    """Drops the first ``offset`` rows, and all behind the next ``limit`` ones. How many these were
    is in its state. One subtask must see all rows."""

    def __init__(self, offset: int, limit: int | None, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.offset = offset
        self.limit = limit

    def open(self) -> None:
        state = self.context.operator_state
        passed = state.engine_list(_PASSED)
        before = list(passed.get())
        self._dropped = sum(dropped for dropped, _ in before)
        self._given = sum(given for _, given in before)
        state.before_snapshot(
            lambda checkpoint_id, timestamp_ms: passed.update([(self._dropped, self._given)])
        )

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
