"""Wires a piece of stream for a harness: its operators, which of them reads from which, and the
harness's own inputs and output at its ends.

The parts between operators are those of a job: an output with several consumers copies values that
could be changed, and where several streams meet, a valve passes on the lowest of their watermarks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from flinkpy.core.elements import Batch, ControlElement, Watermark, WatermarkStatus
from flinkpy.operators.base import OneInputOperator, StreamOperator, TwoInputOperator, Work
from flinkpy.operators.chain.outputs import (
    CopyingBroadcastingOutput,
    OperatorCounters,
    OperatorInput,
)
from flinkpy.operators.context import Output
from flinkpy.runtime.valve import WatermarkValve
from flinkpy.testing.recorder import Recorder


class Origin(NamedTuple):
    """The origin of records: an operator's output, by the operator's number, or an input of the
    harness: -1, -2. With ``tag_id``: a side output."""

    number: int
    tag_id: str | None = None


class Piece(NamedTuple):
    """The operators, each after those it reads from; for each, by input, the origins of its
    records; and the origins of the output."""

    operators: list[StreamOperator]
    inputs: list[tuple[tuple[Origin, ...], ...]]
    ends: tuple[Origin, ...]


class _Edge(Output):
    """The connection to one consumer."""

    def __init__(
        self, push: Callable[[Batch], None], control: Callable[[ControlElement], None]
    ) -> None:
        self._push, self._control = push, control

    def emit(self, batch: Batch) -> None:
        if len(batch):
            self._push(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        """Drops the batch: a side output does not follow the main one."""

    def emit_control(self, element: ControlElement) -> None:
        self._control(element)


class _Outputs(Output):
    """The main output of an operator, and its side outputs; those without a consumer are
    recorded."""

    def __init__(
        self, edges: dict[str | None, CopyingBroadcastingOutput], recorder: Recorder
    ) -> None:
        self._edges = edges
        self._recorder = recorder
        self._main = edges.get(None)

    def emit(self, batch: Batch) -> None:
        if self._main is not None:
            self._main.emit(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        side = self._edges.get(tag_id)
        if side is None:
            self._recorder.take_side(tag_id, batch)
        else:
            side.emit(batch)

    def emit_control(self, element: ControlElement) -> None:
        for output in self._edges.values():
            output.emit_control(element)


class Wiring:
    """``outputs`` are those of each operator, for its ``setup``; ``inputs`` are the harness's
    inputs."""

    def __init__(self, piece: Piece, inputs: int, recorder: Recorder) -> None:
        self._edges: dict[Origin, list[Output]] = {}
        for operator, origins in zip(piece.operators, piece.inputs):
            processes = (
                [operator.process_batch]
                if isinstance(operator, OneInputOperator)
                else _both(operator)
            )
            ways_in = [
                OperatorInput(operator, process, OperatorCounters()) for process in processes
            ]
            self._meet(
                [
                    (origin, way.push)
                    for way, of_input in zip(ways_in, origins)
                    for origin in of_input
                ],
                ways_in[0].control,
            )
        self._meet([(origin, recorder.take) for origin in piece.ends], recorder.elements.append)
        self.outputs = [
            _Outputs(self._of(number), recorder) for number in range(len(piece.operators))
        ]
        self.inputs = [
            self._of(-1 - number).get(None, CopyingBroadcastingOutput(()))
            for number in range(inputs)
        ]

    def _meet(
        self,
        ways: Sequence[tuple[Origin, Callable[[Batch], None]]],
        control: Callable[[ControlElement], None],
    ) -> None:
        valve = WatermarkValve(len(ways))

        def through_valve(channel: int, element: ControlElement) -> None:
            if isinstance(element, Watermark):
                passed: Sequence[ControlElement] = valve.watermark_from(channel, element)
            elif isinstance(element, WatermarkStatus):
                passed = valve.status_from(channel, element)
            else:
                passed = [element]
            for each in passed:
                control(each)

        for channel, (origin, push) in enumerate(ways):
            self._edges.setdefault(origin, []).append(
                _Edge(push, control if len(ways) == 1 else partial(through_valve, channel))
            )

    def _of(self, number: int) -> dict[str | None, CopyingBroadcastingOutput]:
        return {
            origin.tag_id: CopyingBroadcastingOutput(edges)
            for origin, edges in self._edges.items()
            if origin.number == number
        }


def _both(operator: StreamOperator) -> list[Callable[[Batch], Work | None]]:
    assert isinstance(operator, TwoInputOperator)
    return [operator.process_batch1, operator.process_batch2]
