"""Where an operator's results go: the next operator, the network, several of them, a side output.

Each class is one idea, and the chain nests them: counting around tagged around broadcasting around
the ends. The outermost, counting, drops empty batches, so the others need not look for them.

Outputs that only hand batches on have ``emit`` as a property that gives the method which takes
them. The counting output reads it once, so that a batch costs one call for each output that does
something."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.common.types import RowKind
from flinkpy.core.elements import (
    MIN_TIMESTAMP,
    Batch,
    CheckpointBarrier,
    ColumnBatch,
    ControlElement,
    EndOfData,
    EndOfPartition,
    LatencyMarker,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from flinkpy.core.mutability import could_be_mutated, private_copy
from flinkpy.network.port import RecordWriter
from flinkpy.operators.base import StreamOperator, Work, run_to_end
from flinkpy.operators.context import Output
from flinkpy.operators.user_errors import raise_told

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class OperatorCounters:
    """Records into and out of one operator, how many of each kind came in batches whose rows are
    not all inserts, and the last watermarks."""

    __slots__ = (
        "kinds_in",
        "kinds_out",
        "records_in",
        "records_out",
        "watermark_in",
        "watermark_out",
    )

    def __init__(self) -> None:
        self.records_in = 0
        self.records_out = 0
        self.kinds_in: npt.NDArray[np.int64] | None = None  # by RowKind
        self.kinds_out: npt.NDArray[np.int64] | None = None
        self.watermark_in = self.watermark_out = MIN_TIMESTAMP

    def columns_came(self, batch: ColumnBatch) -> None:
        """Counts a batch into the operator."""
        self.records_in += len(batch)
        if batch.kinds is not None:
            self.kinds_in = _counted(batch.kinds, self.kinds_in)

    def columns_went(self, batch: ColumnBatch) -> None:
        """Counts a batch out of the operator."""
        self.records_out += len(batch)
        if batch.kinds is not None:
            self.kinds_out = _counted(batch.kinds, self.kinds_out)

    def __repr__(self) -> str:
        return f"<OperatorCounters {self.records_in} in, {self.records_out} out>"


def _counted(
    kinds: npt.NDArray[np.int8], before: npt.NDArray[np.int64] | None
) -> npt.NDArray[np.int64]:
    import numpy as np

    counts = np.bincount(kinds, minlength=len(RowKind))
    return counts if before is None else before + counts


class OperatorInput:
    """The way into an operator: counts records, calls the operator, and gives exceptions of user
    code the operator's name."""

    __slots__ = ("counters", "operator", "process")

    def __init__(
        self,
        operator: StreamOperator,
        process: Callable[[Batch], Work | None],
        counters: OperatorCounters,
    ) -> None:
        self.operator = operator
        self.process = process
        self.counters = counters

    def push(self, batch: Batch) -> None:
        """Hands the operator a batch that is not empty."""
        if type(batch) is RowBatch:
            self.counters.records_in += len(batch.values)  # saves a call for small batches
        else:
            self.counters.columns_came(batch)  # type: ignore[arg-type]
        try:
            work = self.process(batch)
            if work is not None:
                run_to_end(work)
        except BaseException as error:
            raise_told(error, self.operator.context)

    def push_of(self, process: Callable[[Batch], Work | None]) -> Callable[[Batch], None]:
        """The same as ``push``, for one of two inputs."""
        return OperatorInput(self.operator, process, self.counters).push

    def control(self, element: ControlElement) -> None:
        """Hands the operator a control element."""
        self.call(self.handler_of(element), element)

    def handler_of(self, element: ControlElement) -> Callable[[Any], Work | None]:
        """The method of the operator that takes such an element."""
        operator = self.operator
        if isinstance(element, Watermark):
            self.counters.watermark_in = element.timestamp
            return operator.process_watermark
        if isinstance(element, WatermarkStatus):
            return operator.process_watermark_status
        if isinstance(element, LatencyMarker):
            return operator.process_latency_marker
        return operator.output.emit_control

    def call(self, function: Callable[..., Work | None], *arguments: Any) -> None:
        """Calls a method of the operator."""
        try:
            work = function(*arguments)
            if work is not None:
                run_to_end(work)
        except BaseException as error:
            raise_told(error, self.operator.context)


class ChainingOutput(Output):
    """To the next operator of the chain, by a direct call."""

    def __init__(self, target: OperatorInput) -> None:
        self._target = target

    @property
    def emit(self) -> Callable[[Batch], None]:
        return self._target.push

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        """A side output does not follow the main one."""

    def emit_control(self, element: ControlElement) -> None:
        self._target.control(element)


class RecordWriterOutput(Output):
    """To the network, at the end of the chain."""

    def __init__(self, writer: RecordWriter) -> None:
        self.writer = writer

    @property
    def emit(self) -> Callable[[Batch], None]:
        return self.writer.emit

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        """A side output does not follow the main one."""

    def emit_control(self, element: ControlElement) -> None:
        # The chain itself writes barriers and ends, once per writer, when all operators have dealt
        # with them.
        if not isinstance(element, (CheckpointBarrier, EndOfData, EndOfPartition)):
            self.writer.emit_control(element)


class DiscardingOutput(Output):
    """Drops everything: a sink has no consumers."""

    def emit(self, batch: Batch) -> None:
        pass

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        pass

    def emit_control(self, element: ControlElement) -> None:
        pass


class BroadcastingOutput(Output):
    """To several consumers, in order, the same objects to each."""

    def __init__(self, outputs: Sequence[Output]) -> None:
        self._outputs = tuple(outputs)

    def emit(self, batch: Batch) -> None:
        for output in self._outputs:
            output.emit(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        for output in self._outputs:
            output.emit_side(tag_id, batch)

    def emit_control(self, element: ControlElement) -> None:
        for output in self._outputs:
            output.emit_control(element)


class CopyingBroadcastingOutput(BroadcastingOutput):
    """To several consumers, one of which could change a value that another has yet to see: each but
    the last gets copies of the values that can be changed. Column batches cannot."""

    def emit(self, batch: Batch) -> None:
        if isinstance(batch, RowBatch) and could_be_mutated(batch.values):
            for output in self._outputs[:-1]:
                output.emit(
                    RowBatch([private_copy(value) for value in batch.values], batch.timestamps)
                )
            self._outputs[-1].emit(batch)
        else:
            super().emit(batch)


class TaggedOutput(Output):
    """The main output, and side outputs by tag."""

    def __init__(self, main: Output, sides: Mapping[str, Output]) -> None:
        self._main, self._sides = main, dict(sides)

    @property
    def emit(self) -> Callable[[Batch], None]:
        return self._main.emit

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        side = self._sides.get(tag_id)
        if side is not None:
            side.emit(batch)

    def emit_control(self, element: ControlElement) -> None:
        self._main.emit_control(element)
        for side in self._sides.values():
            side.emit_control(element)


class CopyingTaggedOutput(TaggedOutput):
    """The same, for functions that may have emitted one object to the main output and to a side
    output: side outputs get copies of the values that can be changed, so that the consumers of one
    do not change what those of the other see."""

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        if tag_id in self._sides and isinstance(batch, RowBatch) and could_be_mutated(batch.values):
            batch = RowBatch([private_copy(value) for value in batch.values], batch.timestamps)
        super().emit_side(tag_id, batch)


class CountingOutput(Output):
    """Counts what an operator emits, by batch, and stops empty ones."""

    def __init__(self, target: Output, counters: OperatorCounters) -> None:
        self._target, self._counters = target, counters
        self._emit = target.emit

    def emit(self, batch: Batch) -> None:
        if type(batch) is RowBatch:
            count = len(batch.values)
            if count:
                self._counters.records_out += count
                self._emit(batch)
        elif len(batch):
            self._counters.columns_went(batch)  # type: ignore[arg-type]
            self._emit(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        count = len(batch)
        if count:
            self._counters.records_out += count
            self._target.emit_side(tag_id, batch)

    def emit_control(self, element: ControlElement) -> None:
        if type(element) is Watermark:
            self._counters.watermark_out = element.timestamp
        self._target.emit_control(element)
