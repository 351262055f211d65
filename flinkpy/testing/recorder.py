"""Operators one behind the other, and all that comes out of them, kept for a test to look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flinkpy.core.elements import Batch, ControlElement, RowBatch, Watermark
from flinkpy.operators.base import OneInputOperator, Output, StreamOperator, TwoInputOperator
from flinkpy.operators.outputs import OperatorCounters, OperatorInput


class Recorder:
    """What was emitted, in order."""

    def __init__(self) -> None:
        self.elements: list[tuple[Any, int | None] | ControlElement] = []
        self.sides: dict[str, list[Any]] = {}

    def take(self, batch: Batch) -> None:
        rows = batch.values if isinstance(batch, RowBatch) else batch.data.to_pylist()
        stamps = [None] * len(rows) if batch.timestamps is None else [int(stamp) for stamp in batch.timestamps]
        self.elements.extend(zip(rows, stamps))

    def take_side(self, tag_id: str, batch: Batch) -> None:
        self.sides.setdefault(tag_id, []).extend(batch.values if isinstance(batch, RowBatch) else batch.data.to_pylist())

    @property
    def stamped(self) -> list[tuple[Any, int | None]]:
        return [element for element in self.elements if isinstance(element, tuple)]

    @property
    def watermarks(self) -> list[int]:
        return [element.timestamp for element in self.elements if isinstance(element, Watermark)]


class _Last(Output):
    """Behind the last operator: everything is recorded."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def emit(self, batch: Batch) -> None:
        if len(batch):
            self._recorder.take(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self._recorder.take_side(tag_id, batch)

    def emit_control(self, element: ControlElement) -> None:
        self._recorder.elements.append(element)


class _Between(Output):
    """Between two operators: only side outputs are recorded."""

    def __init__(self, following: OperatorInput, recorder: Recorder) -> None:
        self._following, self._recorder = following, recorder

    def emit(self, batch: Batch) -> None:
        if len(batch):
            self._following.push(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self._recorder.take_side(tag_id, batch)

    def emit_control(self, element: ControlElement) -> None:
        self._following.control(element)


def wire(operators: Sequence[StreamOperator], recorder: Recorder) -> tuple[list[Output], OperatorInput]:
    """The output of each operator, and the way into the first (its control elements; for one input its batches too)."""
    outputs: list[Output] = [_Last(recorder)]
    way_in = _input_of(operators[-1])
    for operator in reversed(operators[:-1]):
        outputs.append(_Between(way_in, recorder))
        way_in = _input_of(operator)
    return outputs[::-1], way_in


def inputs_of(head: StreamOperator, way_in: OperatorInput) -> list[Callable[[Batch], None]]:
    """How the first operator takes batches, per input."""
    if not isinstance(head, TwoInputOperator):
        return [way_in.push]
    return [OperatorInput(head, process, OperatorCounters()).push for process in (head.process_batch1, head.process_batch2)]


def _input_of(operator: StreamOperator) -> OperatorInput:
    def two_inputs(batch: Batch) -> None:
        raise TypeError("an operator of two inputs can only be the first")

    return OperatorInput(operator, operator.process_batch if isinstance(operator, OneInputOperator) else two_inputs, OperatorCounters())
