"""The window join of two streams of columns: batches are stored as they come, and each complete
window is joined at once by array kernels.

Without allowed lateness it gives the same results in the same order as the join of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.elements import MIN_TIMESTAMP, Batch, ColumnBatch, Watermark
from flinkpy.core.errors import ProgramError
from flinkpy.operators.base import BatchForm, TwoInputOperator
from flinkpy.operators.columnar.column_operators import columns
from flinkpy.operators.columnar.joined_columns import JoinedColumns
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.spilling.operator_memory import OperatorMemory
from flinkpy.operators.spilling.spills_in_batch import SpillsInBatch
from flinkpy.windowing.assigners import no_timestamp
from flinkpy.windowing.joins.column_matching import matching_pairs
from flinkpy.windowing.joins.rows_by_slice import RowsBySlice
from flinkpy.windowing.slicing import slicing_of
from flinkpy.windowing.windows import TimeWindow

CONTENTS = "_columnar window join contents"  # the name of the state
ROWS_AT_ONCE = 1 << 16  # of a batch of results


class ColumnarJoinOperator(DropsLateRecords, SpillsInBatch, KeyedStateOperator, TwoInputOperator):
    """Inner join by the named key columns, in tumbling or sliding event-time windows."""

    batch_form = BatchForm.AT_END_OF_TIME
    _memory: OperatorMemory | None = None  # in a batch job

    def __init__(self, left_keys: Sequence[str], right_keys: Sequence[str], assigner: Any) -> None:
        self.keys, self.assigner = (tuple(left_keys), tuple(right_keys)), assigner

    def output_schema(self, left: Any, right: Any) -> Any:
        """The schema of the results. Raises ProgramError for schemas that cannot be joined."""
        return JoinedColumns(self.keys, left, right, "join").schema

    # -- life --------------------------------------------------------------------------------------

    def open(self) -> None:
        slicing = slicing_of(self.assigner)
        assert slicing is not None, "made for aligned windows only"
        self._held = RowsBySlice(slicing, self.keys, self.context.task.max_parallelism)
        self._schemas: list[Any] = [None, None]
        self._joined: JoinedColumns | None = None
        if self._memory is not None:
            self._held.spill_to(self._memory)
        saved = self.backend.register_region(CONTENTS, self._held.freeze)
        on_disk = self._held.log_of(self.backend, CONTENTS)
        for side, data in self._held.restore(saved, on_disk):
            self._check(side, data.schema)

    def spill_to(self, memory: OperatorMemory) -> None:
        self._memory = memory

    def free_memory(self) -> None:
        if self._memory is not None:
            self._held.relieve(0)

    def entries_held(self) -> int:
        return self._held.rows

    def bytes_held(self) -> int:
        return self._held.nbytes

    # -- records -----------------------------------------------------------------------------------

    def process_batch1(self, batch: Batch) -> None:
        self._add_batch(columns(batch, self.context), 0)

    def process_batch2(self, batch: Batch) -> None:
        self._add_batch(columns(batch, self.context), 1)

    def _add_batch(self, batch: ColumnBatch, side: int) -> None:
        stamps = batch.timestamps
        if stamps is None or int(stamps.min()) == MIN_TIMESTAMP:
            raise no_timestamp(self.assigner)
        self._check(side, batch.data.schema)
        self.drop_late(self._held.add(side, batch.data, stamps))
        self._held.relieve()

    def _check(self, side: int, schema: pa.Schema) -> None:
        known = self._schemas[side]
        if known is not None and known.equals(schema):
            return
        try:
            if known is not None:
                raise ProgramError("the columns of a joined stream changed while the job runs")
            self._schemas[side] = schema
            if None not in self._schemas:
                self._joined = JoinedColumns(self.keys, self._schemas[0], self._schemas[1], "join")
        except ProgramError as error:
            raise ProgramError(f"operator {self.context.name!r}: {error}") from None

    # -- windows -----------------------------------------------------------------------------------

    def process_watermark(self, watermark: Watermark) -> None:
        for window, sides in self._held.closed(watermark.timestamp):
            self._fire(window, sides)
        super().process_watermark(watermark)

    def _fire(self, window: TimeWindow, sides: list[list[pa.RecordBatch]]) -> None:
        last = window.max_timestamp()
        if not all(sides) or self._joined is None:
            return
        left, right = (pa.Table.from_batches(batches) for batches in sides)
        ours, theirs = matching_pairs(
            [left.column(name) for name in self.keys[0]],
            [right.column(name) for name in self.keys[1]],
        )
        arrays = [_whole(column) for column in left.columns]
        others = [_whole(right.column(at)) for at in self._joined.right]
        for begin in range(0, len(ours), ROWS_AT_ONCE):
            at, there = (pa.array(each[begin : begin + ROWS_AT_ONCE]) for each in (ours, theirs))
            taken = [array.take(at) for array in arrays] + [array.take(there) for array in others]
            self.output.emit(
                ColumnBatch(
                    pa.RecordBatch.from_arrays(taken, schema=self._joined.schema),
                    np.full(len(at), last, dtype=np.int64),
                )
            )


def _whole(column: Any) -> Any:
    """A chunked array as a single array."""
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
