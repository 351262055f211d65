"""The watermark of a table, computed in its source: for each split of its own, as in Flink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from flinkpy.columns.sql.calc_compiler import CompiledCalc
from flinkpy.columns.sql.calc_program import CalcProgram
from flinkpy.common.watermark_strategy import WatermarkOutput
from flinkpy.core.elements import Batch
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.event_time.batch_watermarks import BatchWatermarkGenerator
from flinkpy.relational.windows.watermark_rows import WatermarkRowsOperator, greatest_moment


@dataclass(frozen=True)
class WatermarkOfTable:
    """Makes the generator of a split. ``strategy`` is over the columns ``names``, which the
    source's batches have once ``decoders`` are through with them."""

    strategy: CalcProgram
    names: tuple[str, ...]
    decoders: tuple[Callable[[pa.RecordBatch], pa.RecordBatch], ...] = ()

    def __call__(self) -> SplitWatermarkGenerator:
        return SplitWatermarkGenerator(self)


class SplitWatermarkGenerator(BatchWatermarkGenerator):
    """The greatest value that the expression has had in a split's rows."""

    def __init__(self, made_by: WatermarkOfTable) -> None:
        self._of = made_by

    def open(self, context: OperatorContext) -> None:
        self._context = context
        with explained(None, context):
            self._strategy = CompiledCalc(self._of.strategy, ["watermark"], context)

    def on_batch(self, batch: Batch, output: WatermarkOutput) -> None:
        data = columns(batch, self._context, WatermarkRowsOperator.takes_changes).data
        with explained(data, self._context):
            for decode in self._of.decoders:
                data = decode(data)
            rows = data.select(list(self._of.names))
            moment = greatest_moment(self._strategy(rows).column(0))
        if moment is not None:
            output.emit_watermark(moment)

    def close(self) -> None:
        self._strategy.close()
