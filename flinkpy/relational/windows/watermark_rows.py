"""WatermarkAssigner: watermarks from an expression over the rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from flinkpy.columns.sql.calc_program import CalcProgram
from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import (
    BEYOND_TIME,
    MIN_TIMESTAMP,
    Batch,
    ColumnBatch,
    Watermark,
    WatermarkStatus,
)
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.relational.relational_operator import RelationalOperator, plain
from flinkpy.relational.row_times import milliseconds


class WatermarkRowsOperator(RelationalOperator):
    """Passes the rows on; behind each batch the greatest value that ``strategy`` has had is the
    watermark. Watermarks and idle statuses from before end here, but for the last one."""

    takes_changes = ALL_CHANGES

    def __init__(self, rowtime: int, strategy: CalcProgram, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.rowtime = rowtime
        self.strategy = strategy

    def open(self) -> None:
        self._strategy = self.compiled(self.strategy, ["watermark"])
        self._watermark = MIN_TIMESTAMP

    def process_batch(self, batch: Batch) -> None:
        batch = columns(batch, self.context, self.takes_changes)
        with explained(batch.data, self.context):
            name = self.schema.names[self.rowtime]
            milliseconds(batch.data.column(self.rowtime), name)
            found = plain(self._strategy(batch.data).column(0)).drop_null()
            moments = milliseconds(found, name)
        self.output.emit(batch)
        if len(moments) and moments.max() > self._watermark:
            self._watermark = int(moments.max())
            self.output.emit_control(Watermark(self._watermark))

    def process_columns(self, batch: ColumnBatch) -> Any:
        raise NotImplementedError("process_batch emits the watermark behind the rows")

    def process_watermark(self, watermark: Watermark) -> None:
        if watermark.timestamp >= BEYOND_TIME:
            self.output.emit_control(watermark)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        """Whether there is time here depends on the rows."""
