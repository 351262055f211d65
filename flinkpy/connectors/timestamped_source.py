"""A source with a watermark strategy: one operator to the program, so that its name, uid and parallelism are the source's."""

from __future__ import annotations

from typing import Any

from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.connectors.source import Source
from flinkpy.connectors.source_operator import SourceReaderOperator
from flinkpy.core.elements import Batch, ControlElement
from flinkpy.operators.base import OperatorContext, Output
from flinkpy.operators.watermarks import TimestampsAndWatermarksOperator


class _Stamping(Output):
    """Between the reader and what follows."""

    def __init__(self, stamping: TimestampsAndWatermarksOperator, output: Output) -> None:
        self.emit = stamping.process_batch  # type: ignore[method-assign]  # one call less per batch
        self._output = output

    def emit(self, batch: Batch) -> None: ...

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self._output.emit_side(tag_id, batch)

    def emit_control(self, element: ControlElement) -> None:
        self._output.emit_control(element)


class TimestampedSourceOperator(SourceReaderOperator):
    """Stamps what the reader gives, and makes watermarks for this subtask.

    Readers read one split after the other, and a watermark never goes back: one generator a subtask says the same as one a split would.
    The last watermark is the task's own.
    """

    def __init__(self, source: Source[Any], strategy: WatermarkStrategy) -> None:
        super().__init__(source)
        self.stamping = TimestampsAndWatermarksOperator(strategy)

    def setup(self, context: OperatorContext, output: Output) -> None:
        self.stamping.setup(context, output)
        super().setup(context, _Stamping(self.stamping, output))

    def open(self) -> None:
        self.stamping.open()
        super().open()

    def close(self) -> None:
        self.stamping.close()
        super().close()
