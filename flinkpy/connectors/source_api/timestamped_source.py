"""A source with a watermark strategy: for the program it is one operator, with the source's name,
uid and parallelism."""

from __future__ import annotations

from typing import Any

from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.connectors.source_api.source import Source, SourceReader
from flinkpy.connectors.source_api.source_operator import SourceReaderOperator
from flinkpy.connectors.source_api.split_watermarks import SplitWatermarks
from flinkpy.connectors.source_api.watermark_alignment import ReaderAlignment, WatermarkAllowed
from flinkpy.core.elements import MAX_TIMESTAMP, Batch
from flinkpy.operators.base import InputStatus
from flinkpy.operators.context import OperatorContext, Output, TimerHandle
from flinkpy.operators.event_time.watermarks import TimestampsAndWatermarksOperator


class TimestampedSourceOperator(SourceReaderOperator):
    """Assigns timestamps to the reader's records and generates the subtask's watermarks.

    If a reader reads several splits concurrently and overrides ``split_of_batch``, each split has
    its own watermark generator. If splits are read one after the other, a single generator gives
    the same result, because a watermark never goes back. The task emits the final watermark. In an
    alignment group the operator stops reading while it is too far ahead of the others."""

    def __init__(self, source: Source[Any], strategy: WatermarkStrategy) -> None:
        super().__init__(source)
        self.stamping = TimestampsAndWatermarksOperator(strategy)
        self._splits: SplitWatermarks | None = None
        self._ended_splits: list[str] = []
        self._alignment: ReaderAlignment | None = None
        self._report_timer: TimerHandle | None = None

    def with_filter(self, expression: Any) -> TimestampedSourceOperator:
        """This operator as it is: records that the filter drops have a part in its watermarks."""
        return self

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self.stamping.setup(context, output)
        self._emit_batch = self.stamping.process_batch

    def open(self) -> None:
        strategy = self.stamping.strategy
        if strategy.alignment is not None:
            self._alignment = ReaderAlignment(strategy.alignment, self.context.send_operator_event)
            self._report_s = strategy.alignment.update_interval.total_seconds()
        super().open()
        reader = self._opened()
        if type(reader).split_of_batch is SourceReader.split_of_batch:
            self.stamping.open()
        else:
            self._splits = SplitWatermarks(strategy, self.context, self.output)
            self._emit_batch = self._emit_by_split
        if self._alignment is not None:
            self._schedule_report()

    def end_event_time(self) -> None:
        self._stop_telling_time()
        super().end_event_time()

    def close(self) -> None:
        self._stop_telling_time()
        super().close()

    def _stop_telling_time(self) -> None:
        """No timer emits a watermark, or goes idle, or reports any more."""
        self._cancel_report()
        if self._splits is not None:
            self._splits.close()
        self.stamping.close()

    # -- splits ------------------------------------------------------------------------------------

    def _emit_by_split(self, batch: Batch) -> None:
        split, splits = self._opened().split_of_batch(), self._splits
        if split is None or splits is None:
            self.output.emit(batch)
        else:
            splits.process_batch(split, batch)

    def split_begun(self, split_id: str) -> None:
        if self._splits is not None:
            self._splits.begin_split(split_id)

    def split_finished(self, split_id: str) -> None:
        """Notes the end. It takes effect before the next poll, because the split's last batch may
        not have been emitted yet."""
        self._ended_splits.append(split_id)

    def emit_next(self) -> InputStatus:
        alignment = self._alignment
        if self._ended_splits and not self._rest and self._splits is not None:
            ended, self._ended_splits = self._ended_splits, []
            for split in ended:
                self._splits.end_split(split)
        if alignment is not None and alignment.must_wait(self._event_time()):
            return InputStatus.NOTHING_AVAILABLE  # the coordinator's answer wakes up the operator
        status = super().emit_next()
        if status is InputStatus.END_OF_INPUT and alignment is not None:
            self._cancel_report()  # a later report would hold the others back again
            alignment.tick(MAX_TIMESTAMP)
        return status

    # -- alignment ---------------------------------------------------------------------------------

    def _event_time(self) -> int:
        return self.stamping.event_time if self._splits is None else self._splits.event_time

    def _schedule_report(self) -> None:
        self._report_timer = self.context.timers.call_later(self._report_s, self._report)

    def _cancel_report(self) -> None:
        timer, self._report_timer = self._report_timer, None
        if timer is not None:
            timer.cancel()

    def _report(self) -> None:
        idle = self.stamping.idle if self._splits is None else self._splits.idle
        if self._alignment is not None:
            self._alignment.tick(MAX_TIMESTAMP if idle else self._event_time())
        self._schedule_report()

    def _handle_event(self, reader: SourceReader[Any], event: Any) -> None:
        if isinstance(event, WatermarkAllowed):
            if self._alignment is not None:
                self._alignment.allowed(event)
        else:
            super()._handle_event(reader, event)
