"""A source with a watermark strategy: one operator to the program, so that its name, uid and parallelism are the source's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.connectors.source_api.source import Source, SourceReader
from flinkpy.connectors.source_api.source_operator import SourceReaderOperator
from flinkpy.connectors.source_api.split_watermarks import SplitWatermarks
from flinkpy.connectors.source_api.watermark_alignment import ReaderAlignment, WatermarkAllowed
from flinkpy.core.elements import MAX_TIMESTAMP, Batch, ControlElement
from flinkpy.operators.base import InputStatus
from flinkpy.operators.context import OperatorContext, Output, TimerHandle
from flinkpy.operators.event_time.watermarks import TimestampsAndWatermarksOperator


class _StampingOutput(Output):
    """Takes the reader's batches to ``stamp``, which passes them on with their timestamps; the rest goes to ``output`` directly."""

    def __init__(self, stamp: Callable[[Batch], None], output: Output) -> None:
        self.stamp, self._output = stamp, output

    @property
    def emit(self) -> Callable[[Batch], None]:
        return self.stamp

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self._output.emit_side(tag_id, batch)

    def emit_control(self, element: ControlElement) -> None:
        self._output.emit_control(element)


class TimestampedSourceOperator(SourceReaderOperator):
    """Stamps what the reader gives, and makes watermarks for this subtask.

    A reader that reads several splits side by side says so (``split_of_batch``), and each split gets a watermark generator of its own. For
    one that reads them one after the other, one generator says the same, as a watermark never goes back. The last watermark is the task's own.
    In an alignment group it stops reading while it is too far ahead.
    """

    def __init__(self, source: Source[Any], strategy: WatermarkStrategy) -> None:
        super().__init__(source)
        self.stamping = TimestampsAndWatermarksOperator(strategy)
        self._splits: SplitWatermarks | None = None
        self._ended_splits: list[str] = []
        self._alignment: ReaderAlignment | None = None
        self._report_timer: TimerHandle | None = None

    def setup(self, context: OperatorContext, output: Output) -> None:
        self.stamping.setup(context, output)
        self._behind = output
        self._stamping_output = _StampingOutput(self.stamping.process_batch, output)
        super().setup(context, self._stamping_output)

    def open(self) -> None:
        strategy = self.stamping.strategy
        if strategy.alignment is not None:
            self._alignment = ReaderAlignment(strategy.alignment, self._say)
            self._report_s = strategy.alignment.update_interval.total_seconds()
        super().open()
        reader = self._opened()
        if type(reader).split_of_batch is SourceReader.split_of_batch:
            self.stamping.open()
        else:
            self._splits = SplitWatermarks(strategy, self.context, self._behind)
            self._stamping_output.stamp = self._emit_by_split
        if self._alignment is not None:
            self._arm()

    def close(self) -> None:
        self._cancel_report()
        if self._splits is not None:
            self._splits.close()
        self.stamping.close()
        super().close()

    # -- splits ---------------------------------------------------------------------------------------------------------------

    def _emit_by_split(self, batch: Batch) -> None:
        split, splits = self._opened().split_of_batch(), self._splits
        if split is None or splits is None:
            self._behind.emit(batch)
        else:
            splits.process_batch(split, batch)

    def split_begun(self, split_id: str) -> None:
        if self._splits is not None:
            self._splits.begin(split_id)

    def split_finished(self, split_id: str) -> None:
        """Said while the split's last batch may still be on its way out: it counts before the next poll."""
        self._ended_splits.append(split_id)

    def emit_next(self) -> InputStatus:
        alignment = self._alignment
        if self._ended_splits and not self._rest and self._splits is not None:
            ended, self._ended_splits = self._ended_splits, []
            for split in ended:
                self._splits.end(split)
        if alignment is not None and alignment.must_wait(self._event_time()):
            return InputStatus.NOTHING_AVAILABLE  # the answer wakes it up
        status = super().emit_next()
        if status is InputStatus.END_OF_INPUT and alignment is not None:
            self._cancel_report()  # said later, it would hold the others back again
            alignment.tick(MAX_TIMESTAMP)
        return status

    # -- alignment --------------------------------------------------------------------------------------------------------------

    def _event_time(self) -> int:
        return self.stamping.event_time if self._splits is None else self._splits.event_time

    def _arm(self) -> None:
        self._report_timer = self.context.timers.call_later(self._report_s, self._report)

    def _cancel_report(self) -> None:
        timer, self._report_timer = self._report_timer, None
        if timer is not None:
            timer.cancel()

    def _report(self) -> None:
        idle = self.stamping.idle if self._splits is None else self._splits.idle
        if self._alignment is not None:
            self._alignment.tick(MAX_TIMESTAMP if idle else self._event_time())
        self._arm()

    def _handle(self, reader: SourceReader[Any], event: Any) -> None:
        if isinstance(event, WatermarkAllowed):
            if self._alignment is not None:
                self._alignment.allowed(event)
        else:
            super()._handle(reader, event)
