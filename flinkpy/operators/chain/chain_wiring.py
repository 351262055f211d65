"""Builds what stands between the operators of a chain: the way into each, the output of each, and
the fused runs."""

from __future__ import annotations

from collections.abc import Sequence

from flinkpy.core.elements import Batch
from flinkpy.core.errors import EngineError
from flinkpy.graph.chain_config import ChainConfig, ChainedEdge, ChainedOperator, NetworkEdge
from flinkpy.network.port import RecordWriter
from flinkpy.operators.base import OneInputOperator, StreamOperator
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
from flinkpy.operators.chain.parking import ParkingInput
from flinkpy.operators.chain.stages import StageOperator
from flinkpy.operators.context import Output


class ChainWiring:
    """Inputs, outputs and counters by the position of their operator. ``copies``: consumers of one
    output must not see each other's changes."""

    def __init__(
        self,
        config: ChainConfig[StreamOperator],
        writers: Sequence[RecordWriter],
        *,
        fusion: bool,
        copies: bool,
    ) -> None:
        self._config, self._copies = config, copies
        self.counters = [OperatorCounters() for _ in config.operators]
        self.writers = [RecordWriterOutput(writer) for writer in writers]
        self.runs = {
            run[0]: FusedRun(
                [
                    stage
                    for position in run
                    if isinstance(stage := config.operators[position].operator, StageOperator)
                ]
            )
            for run in fused_positions(config)
            if fusion
        }
        self.inputs: dict[int, OperatorInput] = {}
        self.outputs: list[Output] = [DiscardingOutput()] * len(config.operators)
        # tail to head: an output needs the inputs it leads to
        for position in reversed(range(len(config.operators))):
            self.outputs[position] = CountingOutput(
                self._output_of(config.operators[position]), self.counters[position]
            )
            self.inputs[position] = self._input_of(position)

    @property
    def parking(self) -> list[ParkingInput]:
        """The inputs that may park, tail to head."""
        return [way_in for way_in in self.inputs.values() if isinstance(way_in, ParkingInput)]

    def _output_of(self, operator: ChainedOperator[StreamOperator]) -> Output:
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
            return ChainingOutput(self.inputs[edge.target])
        if edge.output_index >= len(self.writers):
            raise EngineError(
                f"the chain has an edge to network output {edge.output_index}, but the task "
                f"has {len(self.writers)} partitions"
            )
        return self.writers[edge.output_index]

    def _input_of(self, position: int) -> OperatorInput:
        operator, counters = self._config.operators[position].operator, self.counters[position]
        run = self.runs.get(position)
        process = (
            run.process_batch
            if run is not None
            else operator.process_batch
            if isinstance(operator, OneInputOperator)
            else _takes_no_batch
        )
        if run.parks if run is not None else operator.parks:
            return ParkingInput(operator, process, counters, self._parking_behind(position))
        return OperatorInput(operator, process, counters)

    def _parking_behind(self, position: int) -> list[ParkingInput]:
        """The inputs that may park among all that the operator's output leads to."""
        found: list[ParkingInput] = []
        for edge in self._config.operators[position].edges:
            if isinstance(edge, ChainedEdge):
                way_in = self.inputs[edge.target]
                found += [way_in] if isinstance(way_in, ParkingInput) else []
                found += self._parking_behind(edge.target)
        return found


def fused_positions(config: ChainConfig[StreamOperator]) -> list[range]:
    """The longest runs of stages that lead to nothing but each other, as ranges of positions."""
    runs: list[range] = []
    position = 0
    while position < len(config.operators):
        end = position
        while end < len(config.operators) and isinstance(
            config.operators[end].operator, StageOperator
        ):
            end += 1
            if config.operators[end - 1].edges != (ChainedEdge(end),):
                break
        if end > position:
            runs.append(range(position, end))
        position = max(end, position + 1)
    return runs


def _takes_no_batch(batch: Batch) -> None:
    raise EngineError(f"{batch!r} was sent to an operator that takes no single input")
