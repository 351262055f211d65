"""The window functions alone (TUMBLE, HOP, CUMULATE): the row, with the windows it is in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.relational.relational_operator import ROWS_AT_ONCE, RelationalOperator
from flinkpy.relational.row_times import milliseconds, times_of
from flinkpy.relational.windows.wall_clock import AS_IT_IS, WallClock
from flinkpy.relational.windows.window_times import windows_of
from flinkpy.sql.rex.relational_terms import WindowSpec


class WindowRowsOperator(RelationalOperator):
    """Each row once for each of its windows, with window_start, window_end and window_time behind
    it."""

    keeps_nothing = True
    takes_changes = ALL_CHANGES

    def __init__(self, window: WindowSpec, schema: pa.Schema, clock: WallClock = AS_IT_IS) -> None:
        super().__init__(schema)
        self.window = window
        self.clock = clock

    def process_batch(self, batch: Batch) -> None:
        batch = columns(batch, self.context, self.takes_changes)
        with explained(batch.data, self.context):
            for start in range(0, len(batch), ROWS_AT_ONCE):
                self._process(batch.slice(start, ROWS_AT_ONCE))

    def process_columns(self, batch: ColumnBatch) -> Any:
        raise NotImplementedError("process_batch emits the results in pieces")

    def _process(self, batch: ColumnBatch) -> None:
        at, now = self.window.time, self.context.timers.now_ms()
        if self.window.is_processing:
            instants = np.full(len(batch), now, np.int64)
        else:
            instants = milliseconds(batch.data.column(at), self.schema.names[at])
        rows, starts, ends = windows_of(self.window, self.clock.local(instants))
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            piece = slice(begin, begin + ROWS_AT_ONCE)
            taken = batch.take(rows[piece])
            width = taken.data.num_columns
            last = self.clock.instants(ends[piece] - 1)
            if self.window.is_processing:
                last = np.full(len(last), now, np.int64)
            moments = (starts[piece], ends[piece], last)
            kinds = [field.type for field in self.schema][width:]
            times_added = [times_of(each, kind) for each, kind in zip(moments, kinds)]
            names = self.schema.names
            self.output.emit(
                taken.with_columns(
                    pa.RecordBatch.from_arrays([*taken.data.columns, *times_added], names=names)
                )
            )
