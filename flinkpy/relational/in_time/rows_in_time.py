"""What operators share that take rows in the order of event time: a row waits until the watermark
has reached its time. A row that comes later is late; it is dropped and counted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.core.elements import Batch, ColumnBatch, Watermark
from flinkpy.operators.base import BatchForm
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.relational_operator import RelationalOperator, pieces
from flinkpy.relational.state.waiting_rows import WaitingRows

PENDING = "pending"


class RowsInTime(DropsLateRecords, KeyedStateOperator, RelationalOperator):
    """``inputs`` is the schema of its input, ``time`` the column of event time (None: rows are
    taken as they come), ``keys`` are the columns by which rows come to the subtasks."""

    batch_form = BatchForm.AT_END_OF_TIME
    emits_changes = INSERT_ONLY

    def __init__(
        self, inputs: pa.Schema, time: int | None, keys: Sequence[int], schema: pa.Schema
    ) -> None:
        super().__init__(schema)
        self.inputs = inputs
        self.time = time
        self.keys = tuple(keys)

    @abstractmethod
    def take_in_time(self, data: pa.RecordBatch) -> pa.RecordBatch:
        """The results of rows that are in order."""

    def open(self) -> None:
        self._waiting: WaitingRows | None = None
        if self.time is not None:
            self._waiting = WaitingRows(self.context.task, self.inputs, self.time, self.keys)
            self._waiting.open(self.backend, PENDING)

    def entries_held(self) -> int:
        return 0 if self._waiting is None else len(self._waiting)

    def bytes_held(self) -> int:
        return held_bytes(self._waiting)

    def process_batch(self, batch: Batch) -> None:
        data = columns(batch, self.context, self.takes_changes).data
        with explained(data, self.context):
            if self._waiting is not None:
                self.drop_late(self._waiting.add(data))
                self._waiting.relieve()
            else:
                self._emit(self.take_in_time(data))

    def process_columns(self, batch: ColumnBatch) -> Any:
        raise NotImplementedError("process_batch lets rows wait")

    def process_watermark(self, watermark: Watermark) -> None:
        if self._waiting is not None:
            with explained(None, self.context):
                for moment in self._waiting.moments(watermark.timestamp):
                    data = self._waiting.take(moment)
                    if data is not None:
                        self._emit(self.take_in_time(data))
        self.output.emit_control(watermark)

    def _emit(self, results: pa.RecordBatch) -> None:
        for each in pieces(results):
            self.output.emit(each)
