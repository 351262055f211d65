"""Between streams and tables: event times that stand beside rows become a column, and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.relational.relational_operator import RelationalOperator, plain
from flinkpy.relational.row_times import milliseconds, times_of


class RowtimeColumnOperator(RelationalOperator):
    """Appends the event time of each row as its last column."""

    keeps_nothing = True
    takes_changes = ALL_CHANGES

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        if batch.timestamps is None:
            raise ProgramError(
                "the rows of this stream have no event times: call "
                "assign_timestamps_and_watermarks(...) before it becomes a table with the "
                "metadata column 'rowtime'"
            )
        times = times_of(batch.timestamps.astype(np.int64), self.schema.types[-1])
        arrays = [*batch.data.columns, times]
        conformed = [
            array if array.type == kind else plain(array).cast(kind)
            for array, kind in zip(arrays, self.schema.types)
        ]
        return batch.with_columns(pa.RecordBatch.from_arrays(conformed, schema=self.schema))


class EventTimesOperator(RelationalOperator):
    """The column ``rowtime`` is the event time of each row from here on."""

    keeps_nothing = True
    takes_changes = ALL_CHANGES

    def __init__(self, rowtime: int, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.rowtime = rowtime

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        column = plain(batch.data.column(self.rowtime))
        return batch.with_timestamps(milliseconds(column, self.schema.names[self.rowtime]))
