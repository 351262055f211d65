"""WatermarkAssigner: watermarks from an expression over the rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from flinkpy.columns.sql.calc_program import CalcProgram, CallNode, ConstantNode, InputNode
from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.common.logical_types.logical_type import DayTimeIntervalType
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
    watermark. Watermarks and idle statuses from before end here, but for the last one.

    ``strategy`` is None where the source computes the watermarks: they pass, and this operator
    only sees to it that each row has a time."""

    takes_changes = ALL_CHANGES

    def __init__(self, rowtime: int, strategy: CalcProgram | None, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.rowtime = rowtime
        self.strategy = strategy

    def open(self) -> None:
        self._strategy = None
        self._behind = None if self.strategy is None else behind_time(self.strategy, self.rowtime)
        if self.strategy is not None and self._behind is None:
            self._strategy = self.compiled(self.strategy, ["watermark"])
        self._watermark = MIN_TIMESTAMP

    def process_batch(self, batch: Batch) -> None:
        batch = columns(batch, self.context, self.takes_changes)
        with explained(batch.data, self.context):
            name = self.schema.names[self.rowtime]
            times = milliseconds(batch.data.column(self.rowtime), name)
            moment = None
            if self._behind is not None:
                moment = int(times.max()) - self._behind if len(times) else None
            elif self._strategy is not None:
                moment = greatest_moment(self._strategy(batch.data).column(0))
        self.output.emit(batch)
        if moment is not None and moment > self._watermark:
            self._watermark = moment
            self.output.emit_control(Watermark(moment))

    def process_columns(self, batch: ColumnBatch) -> Any:
        raise NotImplementedError("process_batch emits the watermark behind the rows")

    def process_watermark(self, watermark: Watermark) -> None:
        if self.strategy is None or watermark.timestamp >= BEYOND_TIME:
            self.output.emit_control(watermark)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        if self.strategy is None:
            self.output.emit_control(status)


def behind_time(strategy: CalcProgram, rowtime: int) -> int | None:
    """How many milliseconds the watermark is behind the time of the rows, if it is nothing but this
    column, or the column without a constant interval: then the greatest watermark is that of the
    greatest time. None of any other expression."""
    node, behind = strategy.nodes[strategy.outputs[0]], 0
    if isinstance(node, CallNode) and node.function == "-":
        time, interval = (strategy.nodes[each] for each in node.operands)
        is_of_time = node.type.nullable() == time.type.nullable()
        if not is_of_time or not isinstance(interval, ConstantNode):
            return None
        if not isinstance(interval.type, DayTimeIntervalType) or not isinstance(
            interval.value, int
        ):
            return None
        node, behind = time, interval.value
    return behind if isinstance(node, InputNode) and node.index == rowtime else None


def greatest_moment(values: pa.Array) -> int | None:
    """The latest of these times in milliseconds; None if there is none but nulls."""
    moments = milliseconds(plain(values).drop_null(), "watermark")
    return int(moments.max()) if len(moments) else None
