"""What all batch forms share: they wrap an operator, hold watermarks back until the end of the
input, and stop processing time until then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from flinkpy.core.elements import MAX_TIMESTAMP, Batch, ControlElement, Watermark
from flinkpy.core.options.schema import read
from flinkpy.core.options.state import STATE_BACKEND, StateBackendKind
from flinkpy.operators.base import BatchForm, Work, WorksAtItsEnd
from flinkpy.operators.context import OperatorContext, Output, ProcessingTimeService
from flinkpy.state.snapshots.saved_state import SavedState


class FrozenProcessingTime(ProcessingTimeService):
    """Processing time that can be read but fires no timer before ``end``."""

    class _Timer:
        def __init__(self, action: Callable[[], None] | None) -> None:
            self.action = action

        def cancel(self) -> None:
            self.action = None

    def __init__(self, time: ProcessingTimeService) -> None:
        self._time = time
        self._pending: list[FrozenProcessingTime._Timer] = []
        self._ended = False

    def now_ms(self) -> int:
        return MAX_TIMESTAMP if self._ended else self._time.now_ms()

    def call_later(self, delay_s: float, action: Callable[[], None]) -> _Timer:
        timer = self._Timer(action)
        if not self._ended:
            self._pending = [each for each in self._pending if each.action is not None]
            self._pending.append(timer)
        return timer

    def end(self) -> None:
        """Fires every pending timer, but none that is set from now on: a timer that sets itself
        again would never end."""
        self._ended = True
        for timer in self._pending:
            if timer.action is not None:
                timer.action()


class BatchOperator(WorksAtItsEnd):
    """Wraps an operator. The operator's results go through ``self.results``; watermarks wait until
    the end."""

    batch_form = BatchForm.AS_IN_STREAM

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.chaining, self.parks = inner.chaining, inner.parks
        self.memory_weights = dict(inner.memory_weights)

    @property
    def reads_keys(self) -> bool:
        return super().reads_keys or bool(self.inner.reads_keys)

    def make_results(self) -> Output:
        """Where the wrapped operator's results go."""
        return WithoutWatermarks(self.output)

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self.time = FrozenProcessingTime(context.timers)
        self._end_of_time: Watermark | None = None
        self.results = self.make_results()
        configuration = {**context.configuration, STATE_BACKEND.key: self.backend_kind(context)}
        self.inner.do = self.do
        self.inner.setup(
            replace(context, timers=self.time, configuration=configuration), self.results
        )

    def backend_kind(self, context: OperatorContext) -> StateBackendKind:
        return StateBackendKind(read(context.configuration, STATE_BACKEND))

    def initialize_state(self, restored: SavedState | None) -> None:
        self.inner.initialize_state(restored)

    def open(self) -> None:
        self.inner.open()

    def close(self) -> None:
        self.inner.close()

    def free_memory(self) -> None:
        self.inner.free_memory()

    def process_watermark(self, watermark: Watermark) -> Work | None:
        if watermark.timestamp == MAX_TIMESTAMP:
            self._end_of_time = watermark
        return None

    def handle_operator_event(self, event: Any) -> None:
        self.inner.handle_operator_event(event)

    # -- the end -----------------------------------------------------------------------------------

    def finish(self) -> None:
        self._rest = self._work()

    def _work(self) -> Iterator[None]:
        yield from self.work()
        self.inner.finish()
        self.flush()
        if self._end_of_time is not None:
            self.output.emit_control(self._end_of_time)

    def work(self) -> Iterator[None]:
        """Does, in steps, the work that is left when the input has ended."""
        raise NotImplementedError

    def flush(self) -> None:
        """Emits the results that were held back in order to fill a batch."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.inner!r}>"


class WithoutWatermarks(Output):
    """Passes on everything but watermarks, which the wrapping operator emits itself."""

    def __init__(self, target: Output) -> None:
        self.target = target

    def emit(self, batch: Batch) -> None:
        self.target.emit(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self.target.emit_side(tag_id, batch)

    def emit_control(self, element: ControlElement) -> None:
        if not isinstance(element, Watermark):
            self.target.emit_control(element)
