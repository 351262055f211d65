"""A reader that gives what the test says, in an operator with a watermark strategy."""

from __future__ import annotations

from collections import deque
from typing import Any

from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.connectors.memory.ranges import NumberSequenceSource
from flinkpy.connectors.source_api.source import ReaderContext, SourceReader
from flinkpy.connectors.source_api.timestamped_source import TimestampedSourceOperator
from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import Batch, ControlElement, RowBatch, Watermark, WatermarkStatus
from flinkpy.operators.base import InputStatus
from flinkpy.operators.context import Output
from tests.connectors.harness import ManualTimers, operator_context

BEGIN, END = "begin", "end"


class ScriptedReader(SourceReader[Any]):
    """Gives the batches of ``script``; they hold event times as values."""

    def __init__(self, context: ReaderContext) -> None:
        self.context = context
        self.script: deque[list[int] | str] = deque()

    def poll(self, limit: int) -> Batch | InputStatus:
        if not self.script:
            return InputStatus.NOTHING_AVAILABLE
        step = self.script.popleft()
        return InputStatus.END_OF_INPUT if isinstance(step, str) else RowBatch(list(step))

    def add_splits(self, splits: list[Any]) -> None:
        raise AssertionError("there are none here")

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        return []


class SplitReader(ScriptedReader):
    """Reads splits side by side: a step is (split, times), (split, BEGIN) or (split, END)."""

    def __init__(self, context: ReaderContext) -> None:
        super().__init__(context)
        self.split: str | None = None
        self.steps: deque[tuple[str, list[int] | str]] = deque()

    def poll(self, limit: int) -> Batch | InputStatus:
        while self.steps:
            self.split, step = self.steps.popleft()
            if not isinstance(step, str):
                # as early as a reader may say so
                if self.steps and self.steps[0] == (self.split, END):
                    self.steps.popleft()
                    self.context.split_finished(self.split)
                return RowBatch(list(step))
            (self.context.split_begun if step == BEGIN else self.context.split_finished)(self.split)
        return InputStatus.NOTHING_AVAILABLE

    def split_of_batch(self) -> str | None:
        return self.split


class Recording(Output):
    """Values, watermarks as ("w", timestamp), statuses as "idle" and "active"."""

    def __init__(self) -> None:
        self.elements: list[Any] = []

    def emit(self, batch: Batch) -> None:
        assert isinstance(batch, RowBatch)
        assert batch.timestamps == batch.values
        self.elements += batch.values

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        raise AssertionError("no side outputs here")

    def emit_control(self, element: ControlElement) -> None:
        if isinstance(element, Watermark):
            self.elements.append(("w", element.timestamp))
        else:
            assert isinstance(element, WatermarkStatus)
            self.elements.append("idle" if element.idle else "active")


class EventTimeSource:
    """An open TimestampedSourceOperator over a scripted reader, on a clock of the test's."""

    def __init__(
        self,
        strategy: WatermarkStrategy,
        reader: type[ScriptedReader] = ScriptedReader,
        batch_records: int = 100,
    ) -> None:
        self.clock = ManualClock()
        self.timers = ManualTimers(self.clock)
        self.output = Recording()
        self.sent: list[Any] = []
        self.wakes = 0
        source = NumberSequenceSource(1, 1)
        source.create_reader = self._create_reader  # type: ignore[method-assign]
        self._reader_class = reader
        self.operator = TimestampedSourceOperator(
            source, strategy.with_timestamp_assigner(lambda value: value)
        )
        context = operator_context(
            send=self.sent.append, clock=self.clock, timers=self.timers, batch_records=batch_records
        )
        self.operator.setup(context, self.output)
        self.operator.initialize_state(None)
        self.operator.wake_up = self._wake
        self.operator.open()
        self.sent.clear()  # the registration

    def _create_reader(self, context: ReaderContext) -> ScriptedReader:
        self.reader: Any = self._reader_class(context)
        reader: ScriptedReader = self.reader
        return reader

    def _wake(self) -> None:
        self.wakes += 1

    def pass_seconds(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.timers.fire()

    def tell(self, event: Any) -> None:
        self.operator.handle_operator_event(event)

    def read(self, times: int = 100) -> InputStatus:
        """Reads until it does not want to any more."""
        for _ in range(times):
            status = self.operator.emit_next()
            if status is not InputStatus.MORE_AVAILABLE:
                return status
        return InputStatus.MORE_AVAILABLE
