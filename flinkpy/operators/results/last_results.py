"""The last result of each key of an operator whose results replace each other, in a stream that
ends.

A running aggregate emits a new result for a key whenever it has changed. Whoever takes the results
as a table wants the last one of each key. These are in the operator's state when its input has
ended, so nothing else is kept, and a restart finds them there. Results before the end are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flinkpy.core.elements import MAX_TIMESTAMP, Batch, ControlElement, Watermark
from flinkpy.operators.base import OneInputOperator, Work, WorksAtItsEnd
from flinkpy.operators.context import OperatorContext, Output
from flinkpy.operators.wrapping_operator import WrappingOperator, bare


class LastResultsOperator(WrappingOperator, WorksAtItsEnd, OneInputOperator):
    """Wraps an operator that ``replaces_results``. Emits one result for each key when the input has
    ended."""

    wrapped: OneInputOperator

    def __init__(self, wrapped: OneInputOperator) -> None:
        super().__init__(wrapped)
        self.parks = wrapped.parks

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._held = _NotYet(output)
        self.wrapped.do = self.do
        self.wrapped.setup(context, self._held)
        self._take = getattr(bare(self.wrapped), "take_batch", self.wrapped.process_batch)

    def process_batch(self, batch: Batch) -> Work | None:
        work: Work | None = self._take(batch)
        return work

    def finish(self) -> None:
        self.wrapped.finish()
        self._rest = self._emitting()

    def _emitting(self) -> Iterator[None]:
        holds_results: Any = bare(self.wrapped)  # which is so of what ``replaces_results``
        for batch in holds_results.last_results():
            self.output.emit(batch)
            yield
        if self._held.end_of_time is not None:
            self.output.emit_control(self._held.end_of_time)


class _NotYet(Output):
    """Drops results, and keeps the last watermark until all results are out."""

    def __init__(self, target: Output) -> None:
        self.target = target
        self.end_of_time: Watermark | None = None

    def emit(self, batch: Batch) -> None:
        pass

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self.target.emit_side(tag_id, batch)

    def emit_control(self, element: ControlElement) -> None:
        if isinstance(element, Watermark) and element.timestamp == MAX_TIMESTAMP:
            self.end_of_time = element
        else:
            self.target.emit_control(element)
