"""The first records of a stream: the operator of ``limit``."""

from __future__ import annotations

from typing import Any

from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.operators.base import BatchForm, OneInputOperator
from flinkpy.state.descriptors import RESERVED

_PASSED = f"{RESERVED}passed"


class LimitOperator(OneInputOperator):
    """Passes on as many records, and drops all others. Counts them over failures. One subtask must see all records."""

    batch_form = BatchForm.AS_IN_STREAM
    keeps_timestamps = True
    takes_updates = False

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def output_schema(self, schema: Any) -> Any:
        return schema

    def open(self) -> None:
        state = self.context.operator_state
        passed = state.engine_list(_PASSED)
        self._left = self.limit - sum(passed.get())
        state.before_snapshot(lambda checkpoint_id, timestamp_ms: passed.update([self.limit - self._left]))

    @property
    def has_enough(self) -> bool:
        return not self._left

    def process_batch(self, batch: Batch) -> None:
        count = min(self._left, len(batch))
        if count:
            self._left -= count
            self.output.emit(batch if count == len(batch) else _first(batch, count))


def _first(batch: Batch, count: int) -> Batch:
    stamps = None if batch.timestamps is None else batch.timestamps[:count]
    if isinstance(batch, ColumnBatch):
        return ColumnBatch(batch.data.slice(0, count), stamps)  # type: ignore[arg-type]  # the stamps of columns
    return RowBatch(batch.values[:count], stamps)  # type: ignore[arg-type]
