"""The first records of a stream: the operator of ``limit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.graph.operator_port import TwoPhases
from flinkpy.operators.base import BatchForm, OneInputOperator
from flinkpy.operators.row_kinds import check_kinds
from flinkpy.state.descriptors import RESERVED

if TYPE_CHECKING:
    import pyarrow as pa

_PASSED = f"{RESERVED}passed"


class LocalLimitOperator(OneInputOperator):
    """Passes on as many records, and drops all others. In each sender of a ``LimitOperator`` it
    keeps back what that would drop, so that sources can end. It has no state, so after a failure it
    passes on as many again."""

    batch_form = BatchForm.AS_IN_STREAM
    keeps_timestamps = True
    takes_changes = INSERT_ONLY

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def output_schema(self, schema: pa.Schema) -> Any:
        return schema

    def open(self) -> None:
        self._left = self.limit

    @property
    def has_enough(self) -> bool:
        return not self._left

    def process_batch(self, batch: Batch) -> None:
        check_kinds(batch, self.takes_changes, self.context.name)
        count = min(self._left, len(batch))
        if count:
            self._left -= count
            self.output.emit(batch if count == len(batch) else _first(batch, count))


class LimitOperator(LocalLimitOperator):
    """The same, over failures too: the count is in its state. One subtask must see all records."""

    def in_two_phases(self) -> TwoPhases:
        return TwoPhases(
            LocalLimitOperator(self.limit),
            self,
            None,
            pays_within_process=True,
            in_batch=True,
            is_partial=False,
        )

    def open(self) -> None:
        state = self.context.operator_state
        passed = state.engine_list(_PASSED)
        self._left = self.limit - sum(passed.get())
        state.before_snapshot(
            lambda checkpoint_id, timestamp_ms: passed.update([self.limit - self._left])
        )


def _first(batch: Batch, count: int) -> Batch:
    if isinstance(batch, ColumnBatch):
        return batch.slice(0, count)
    stamps = batch.timestamps
    return RowBatch(batch.values[:count], None if stamps is None else stamps[:count])
