"""The operator chain of a task: operators wired tail to head, runs of stages fused, lifecycle calls in Flink's order.

The chain is a tree: every operator but the head has exactly one predecessor, so whatever travels through ``emit_control`` visits each once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from flinkpy.core.elements import Batch, CheckpointBarrier, ControlElement, EndOfData, EndOfPartition, LatencyMarker, Watermark, WatermarkStatus
from flinkpy.core.errors import EngineError, FlinkpyError
from flinkpy.core.ids import OperatorId
from flinkpy.graph.chain_config import ChainConfig, ChainedEdge, ChainedOperator, NetworkEdge
from flinkpy.network.port import RecordWriter
from flinkpy.operators.base import OneInputOperator, StreamOperator, TwoInputOperator, Work
from flinkpy.operators.chain.fusion import FusedRun
from flinkpy.operators.chain.outputs import (
    BroadcastingOutput,
    ChainingOutput,
    CopyingBroadcastingOutput,
    CopyingTaggedOutput,
    CountingOutput,
    DiscardingOutput,
    OperatorCounters,
    OperatorInput,
    RecordWriterOutput,
    TaggedOutput,
)
from flinkpy.operators.chain.own_functions import functions_of_writer
from flinkpy.operators.chain.stages import StageOperator
from flinkpy.operators.context import OperatorContext, Output
from flinkpy.operators.functions import Function, close_function, open_function
from flinkpy.operators.process.parking import ParkingInput
from flinkpy.operators.user_errors import user_code_error

ContextFactory = Callable[[ChainedOperator], OperatorContext]


class OperatorChain:
    """The operators of one task. ``writers`` stand in the order of the network outputs."""

    def __init__(
        self, config: ChainConfig, writers: Sequence[RecordWriter], context_of: ContextFactory, *, fusion: bool = True, object_reuse: bool = False,
    ) -> None:
        self._config, self._context_of, self._copies = config, context_of, not object_reuse
        self._counters = [OperatorCounters() for _ in config.operators]
        self._writer_outputs = [RecordWriterOutput(writer) for writer in writers]
        self._runs = {run[0]: FusedRun([config.operators[position].operator for position in run]) for run in fused_positions(config) if fusion}
        self._inputs: dict[int, OperatorInput] = {}
        self._outputs: list[Output] = [DiscardingOutput()] * len(config.operators)
        for position in reversed(range(len(config.operators))):  # tail to head: an output needs what it leads to
            self._outputs[position] = CountingOutput(self._output_of(config.operators[position]), self._counters[position])
            self._inputs[position] = self._input_of(position)
        self._parking = tuple(way_in for way_in in self._inputs.values() if isinstance(way_in, ParkingInput))  # tail to head
        self._barriers: deque[Work] = deque()  # under way through the chain
        self._finishing = 0  # operators told to finish
        self._pausing = [operator for operator in self.operators if operator.may_pause]
        self.may_pause = bool(self._pausing or self._writer_outputs)  # whether ``available`` may ever say no

    # -- wiring ----------------------------------------------------------------------------------------------------------

    def _output_of(self, operator: ChainedOperator) -> Output:
        main = [edge for edge in operator.edges if edge.side_tag is None]
        sides: dict[str, list[ChainedEdge | NetworkEdge]] = {}
        for edge in operator.edges:
            if edge.side_tag is not None:
                sides.setdefault(edge.side_tag, []).append(edge)
        output = self._output_over(main)
        if not sides:
            return output
        tagged = CopyingTaggedOutput if self._copies else TaggedOutput
        return tagged(output, {tag: self._output_over(edges) for tag, edges in sides.items()})

    def _output_over(self, edges: Sequence[ChainedEdge | NetworkEdge]) -> Output:
        ends = [self._end_of(edge) for edge in edges]
        if not ends:
            return DiscardingOutput()
        if len(ends) == 1:
            return ends[0]
        return CopyingBroadcastingOutput(ends) if self._copies else BroadcastingOutput(ends)

    def _end_of(self, edge: ChainedEdge | NetworkEdge) -> Output:
        if isinstance(edge, ChainedEdge):
            return ChainingOutput(self._inputs[edge.target])
        if edge.output_index >= len(self._writer_outputs):
            raise EngineError(f"the chain has an edge to network output {edge.output_index}, but the task has {len(self._writer_outputs)} partitions")
        return self._writer_outputs[edge.output_index]

    def _input_of(self, position: int) -> OperatorInput:
        operator, counters = self._config.operators[position].operator, self._counters[position]
        run = self._runs.get(position)
        process = run.process_batch if run is not None else operator.process_batch if isinstance(operator, OneInputOperator) else _takes_no_batch
        if run.parks if run is not None else operator.parks:
            return ParkingInput(operator, process, counters, self._parking_behind(position))
        return OperatorInput(operator, process, counters)

    def _parking_behind(self, position: int) -> list[ParkingInput]:
        """The inputs that may park among all that the operator's output leads to."""
        found: list[ParkingInput] = []
        for edge in self._config.operators[position].edges:
            if isinstance(edge, ChainedEdge):
                way_in = self._inputs[edge.target]
                found += [way_in] if isinstance(way_in, ParkingInput) else []
                found += self._parking_behind(edge.target)
        return found

    @property
    def operators(self) -> list[StreamOperator]:
        """Head first."""
        return [chained.operator for chained in self._config.operators]

    @property
    def head(self) -> StreamOperator:
        operator: StreamOperator = self._config.head.operator
        return operator

    def operator_of(self, operator_id: OperatorId) -> StreamOperator | None:
        """The operator of that id, if it is in this chain."""
        return next((chained.operator for chained in self._config.operators if chained.operator_id == operator_id), None)

    @property
    def available(self) -> bool:
        """Whether more input is welcome: no writer is full, and no sink asks for a pause."""
        for output in self._writer_outputs:
            if not output.writer.available:
                return False
        for operator in self._pausing:  # noqa: SIM110  # asked twice per batch: ``all`` would make a generator each time
            if not operator.available:
                return False
        return True

    def set_listener(self, on_available: Callable[[], None]) -> None:
        """Who to call when a writer or an operator becomes available again. Before ``open``."""
        for output in self._writer_outputs:
            output.writer.set_listener(on_available)
        for operator in self.operators:
            operator.set_listener(on_available)

    # -- work that is parked -----------------------------------------------------------------------------------------------

    def set_parked_listener(self, on_parked: Callable[[], None]) -> None:
        """Who to call when an operator parks: ``go_on`` is to be called soon."""
        for way_in in self._parking:
            way_in.on_parked = on_parked

    def parked(self) -> bool:
        """Whether work is parked in the chain: then no input comes before ``go_on`` has done it."""
        for way_in in self._parking:  # asked for every batch: ``any`` would make a generator each time
            if way_in.parked:
                return True
        return bool(self._barriers)

    @property
    def takes_more(self) -> bool:
        """Whether input may follow at once."""
        return not self.parked() and self.available

    def go_on(self) -> None:
        """Does a bounded part of the work that is parked: what lies behind goes first, so as to make room."""
        idle = True
        for way_in in self._parking:
            if way_in.parked:
                idle = False
                way_in.step()
        if idle and self._barriers and next(self._barriers[0], self) is self:
            self._barriers.popleft()

    @property
    def consumed(self) -> bool:
        """Whether all consumers have taken all output, to its end."""
        return all(output.writer.consumed for output in self._writer_outputs)

    # -- lifecycle -------------------------------------------------------------------------------------------------------

    def setup(self) -> None:
        """Every operator, last first: who is set up finds those its output leads to set up already."""
        for chained, output in zip(reversed(self._config.operators), reversed(self._outputs)):
            chained.operator.setup(self._context_of(chained), output)

    def initialize_state(self, restored: bytes | None) -> None:
        """Every operator, last first."""
        for operator in reversed(self.operators):
            _guarded(operator, operator.initialize_state, restored)

    def open(self) -> None:
        """What the writers call, then every operator, last first; then a run of stages is compiled as soon as its first one is open."""
        for chained in self._config.operators:
            for function in _of_writers(chained):
                _guarded(chained.operator, open_function, function, chained.operator.context)
        for position in reversed(range(len(self._config.operators))):
            operator = self._config.operators[position].operator
            _guarded(operator, operator.open)
            if position in self._runs:
                self._runs[position].compile()

    @property
    def has_rest(self) -> bool:
        """Whether ``finish`` can go on at once."""
        return self.parked() or (0 < self._finishing <= len(self.operators) and self.operators[self._finishing - 1].has_rest)

    def finish(self) -> bool:
        """Every operator, first first: what one emits here still goes through the next. False: one of them still waits for something; call again
        when the listener was called, or at once while it ``has_rest``."""
        if self.parked():
            self.go_on()
            return False
        for position, operator in enumerate(self.operators):
            if position == self._finishing:
                self._finishing += 1
                _guarded(operator, operator.finish)
            if self.parked():
                return False
            if operator.has_rest:
                _guarded(operator, operator.emit_rest)
            if self.parked() or operator.has_rest or not operator.drained:
                return False
        return True

    def close(self) -> list[Exception]:
        """Closes every operator that was set up, first first, whatever another one raises; gives back what was raised."""
        errors: list[Exception] = []
        self._barriers.clear()
        for way_in in self._parking:
            try:
                _guarded(way_in.operator, way_in.close)
            except Exception as error:
                errors.append(error)
        for run in self._runs.values():
            run.close()
        for operator in self.operators:
            if hasattr(operator, "context"):
                try:
                    _guarded(operator, operator.close)
                except Exception as error:
                    errors.append(error)
        for chained in self._config.operators:
            for function in _of_writers(chained):
                try:
                    close_function(function)
                except Exception as error:
                    errors.append(error)
        return errors

    # -- what comes in ----------------------------------------------------------------------------------------------------

    def batch_inputs(self) -> tuple[Callable[[Batch], None], ...]:
        """How the head takes batches, per input."""
        head = self.head
        if not isinstance(head, TwoInputOperator):
            return (self._inputs[0].push,)
        return self._inputs[0].push_of(head.process_batch1), self._inputs[0].push_of(head.process_batch2)

    def end_input(self, input_index: int) -> None:
        """One of the head's inputs has ended."""
        if isinstance(self.head, TwoInputOperator):
            self._inputs[0].call(self.head.end_input, input_index)

    def control(self, element: ControlElement) -> None:
        """A watermark, status or latency marker for the head."""
        self._inputs[0].control(element)

    def emit_from_head(self, element: Watermark | WatermarkStatus | LatencyMarker) -> None:
        """A control element a source's task makes itself: behind the head's own output."""
        self._outputs[0].emit_control(element)

    def process_barrier(self, barrier: CheckpointBarrier) -> None:
        """First first, each operator emits what must go before the barrier; then the barrier goes out. It waits for what is parked before it."""
        self._barriers.append(self._passed(barrier))
        while self._barriers and not any(way_in.parked for way_in in self._parking):
            self.go_on()

    def _passed(self, barrier: CheckpointBarrier) -> Work:
        for operator in self.operators:
            _guarded(operator, operator.prepare_snapshot_pre_barrier, barrier.checkpoint_id)
            yield
        self._write(barrier)

    def end_of_data(self, element: EndOfData) -> None:
        """Tells all consumers that no records follow."""
        self._write(element)

    def end_of_partition(self) -> None:
        """The last element of every channel."""
        self._write(EndOfPartition())

    def _write(self, element: ControlElement) -> None:
        for output in self._writer_outputs:
            output.writer.emit_control(element)

    def flush(self) -> None:
        """Hands on what the writers have gathered."""
        for output in self._writer_outputs:
            output.writer.flush()

    # -- metrics ------------------------------------------------------------------------------------------------------------

    @property
    def records_in(self) -> int:
        """Records the head took from the network; 0 for a source."""
        return self._counters[0].records_in

    @property
    def records_out(self) -> int:
        """Records written to the network; of a job that is one chain and writes none, what its source gave."""
        if not self._writer_outputs and not self._counters[0].records_in:
            return self._counters[0].records_out
        return sum(output.writer.records for output in self._writer_outputs)

    def counters(self) -> tuple[tuple[OperatorId, int, int], ...]:
        """Per operator: id, records in, records out. May be read from any thread."""
        counted = [(counter.records_in, counter.records_out) for counter in self._counters]
        for head, run in self._runs.items():
            counted[head : head + len(run.operators)] = run.counters()
        return tuple((chained.operator_id, *pair) for chained, pair in zip(self._config.operators, counted))

    @property
    def expansion(self) -> float:
        """The most records any operator has made of each one that entered the chain; at least 1."""
        counted = self.counters()
        entered = counted[0][1] or counted[0][2]
        return max(1.0, max(out for _, _, out in counted) / entered) if entered else 1.0

    def __repr__(self) -> str:
        return f"<OperatorChain {' → '.join(chained.name for chained in self._config.operators)}, {len(self._runs)} fused>"


def fused_positions(config: ChainConfig) -> list[range]:
    """The longest runs of stages that lead to nothing but each other, as ranges of positions."""
    runs: list[range] = []
    position = 0
    while position < len(config.operators):
        end = position
        while end < len(config.operators) and isinstance(config.operators[end].operator, StageOperator):
            end += 1
            if config.operators[end - 1].edges != (ChainedEdge(end),):
                break
        if end > position:
            runs.append(range(position, end))
        position = max(end, position + 1)
    return runs


def _guarded(operator: StreamOperator, call: Callable[..., None], *arguments: Any) -> None:
    """Calls it; a foreign exception gets the operator's name."""
    try:
        call(*arguments)
    except FlinkpyError:
        raise
    except Exception as error:
        raise user_code_error(error, operator.context) from error


def _of_writers(chained: ChainedOperator) -> list[Function]:
    """The key selectors and partitioners on the edges to the network."""
    return [function for edge in chained.edges if isinstance(edge, NetworkEdge) for function in functions_of_writer(edge.partitioning)]


def _takes_no_batch(batch: Batch) -> None:
    raise EngineError(f"{batch!r} was sent to an operator that takes no single input")
