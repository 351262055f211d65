"""The operator chain of a task: its operators, wired together, with their lifecycle calls in
Flink's order.

The chain is a tree: every operator but the head has exactly one predecessor, so a control element
passes each operator once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from flinkpy.core.elements import (
    Batch,
    CheckpointBarrier,
    ControlElement,
    LatencyMarker,
    Watermark,
    WatermarkStatus,
)
from flinkpy.core.ids import OperatorId
from flinkpy.graph.chain_config import ChainConfig, ChainedOperator, NetworkEdge
from flinkpy.network.port import RecordWriter
from flinkpy.operators.base import StreamOperator, TwoInputOperator
from flinkpy.operators.chain.chain_metrics import ChainMetrics
from flinkpy.operators.chain.chain_wiring import ChainWiring
from flinkpy.operators.chain.early_end import Enough
from flinkpy.operators.chain.own_functions import functions_of_writer
from flinkpy.operators.chain.parking import ParkedWork, Passing
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.functions import Function, close_function, open_function
from flinkpy.operators.user_errors import raise_told
from flinkpy.state.snapshots.saved_state import FrozenState, SavedState

T = TypeVar("T")
ContextFactory = Callable[[ChainedOperator[StreamOperator]], OperatorContext]


class OperatorChain:
    """The operators of one task. ``writers`` stand in the order of the network outputs.

    While there is ``parked_work`` no input may come: ``parked_work.go_on`` does it first, step by
    step."""

    def __init__(
        self,
        config: ChainConfig[StreamOperator],
        writers: Sequence[RecordWriter],
        context_of: ContextFactory,
        *,
        fusion: bool = True,
        object_reuse: bool = False,
    ) -> None:
        wiring = ChainWiring(config, writers, fusion=fusion, copies=not object_reuse)
        self._config, self._context_of = config, context_of
        self._input = wiring.inputs[0]
        self._outputs = wiring.outputs
        self._writers = wiring.writers
        self._runs = wiring.runs
        self.parked_work = ParkedWork(wiring.parking)
        self.metrics = ChainMetrics(
            [chained.operator_id for chained in config.operators],
            wiring.counters,
            wiring.runs,
            wiring.writers,
        )
        self._set_up: list[StreamOperator] = []  # last operator first
        # those that take part in checkpoints: none, if all had finished
        self._checkpointed = self._config.operators
        self._finishing = 0  # operators told to finish
        self._pausing = [operator for operator in self.operators if operator.may_pause]
        self._gathering = [
            operator
            for operator in self.operators
            if type(operator).input_pauses is not StreamOperator.input_pauses
        ]
        self.enough = Enough(config)
        # whether ``available`` may ever be False
        self.may_pause = bool(self._pausing or self._writers)

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
        return next(
            (
                chained.operator
                for chained in self._config.operators
                if chained.operator_id == operator_id
            ),
            None,
        )

    @property
    def available(self) -> bool:
        """Whether more input is welcome: no writer is full, and no sink asks for a pause."""
        for output in self._writers:
            if not output.writer.available:
                return False
        # asked twice per batch: ``all`` would make a generator each time
        for operator in self._pausing:  # noqa: SIM110
            if not operator.available:
                return False
        return True

    def set_listener(self, on_available: Callable[[], None]) -> None:
        """Sets whom to call when a writer or an operator becomes available again. Before
        ``open``."""
        for output in self._writers:
            output.writer.set_listener(on_available)
        for operator in self.operators:
            operator.set_listener(on_available)

    @property
    def consumed(self) -> bool:
        """Whether all consumers have taken all output, to its end."""
        return all(output.writer.consumed for output in self._writers)

    # -- lifecycle ---------------------------------------------------------------------------------

    def setup(self) -> None:
        """Sets up every operator, last first: the operators its output leads to are set up before
        an operator is."""
        for chained, output in zip(reversed(self._config.operators), reversed(self._outputs)):
            chained.operator.setup(self._context_of(chained), output)
            self._set_up.append(chained.operator)

    def initialize_state(self, restored: Mapping[OperatorId, SavedState] | None) -> None:
        """Every operator, last first, with what it saved; None if the task does not start from a
        checkpoint."""
        for chained in reversed(self._config.operators):
            state = None if restored is None else restored.get(chained.operator_id, SavedState())
            _call(chained.operator, chained.operator.initialize_state, state)

    def open(self, *, had_finished: bool = False) -> None:
        """Opens the functions that writers call, then, unless all had finished, every operator,
        last first. A fused run is compiled as soon as its first operator is open."""
        for chained in self._config.operators:
            for function in _functions_of_writers(chained):
                _call(chained.operator, open_function, function, chained.operator.context)
        if had_finished:
            self._checkpointed = ()
            return
        for position in reversed(range(len(self._config.operators))):
            operator = self._config.operators[position].operator
            _call(operator, operator.open)
            if position in self._runs:
                self._runs[position].compile()

    @property
    def waits_for_final_checkpoint(self) -> bool:
        """Whether an operator has results that only a checkpoint commits."""
        return any(each.operator.waits_for_final_checkpoint for each in self._checkpointed)

    @property
    def has_rest(self) -> bool:
        """Whether ``finish`` can go on at once."""
        return self.parked_work.pending() or (
            0 < self._finishing <= len(self.operators)
            and self.operators[self._finishing - 1].has_rest
        )

    def finish(self) -> bool:
        """Finishes every operator, head first: what one emits here still goes through the next.
        False: an operator is not done; call again at once while the chain ``has_rest``, else when
        the listener was called."""
        if self.parked_work.pending():
            self.parked_work.go_on()
            if self.parked_work.pending():
                return False
        for position, operator in enumerate(self.operators):
            if position == self._finishing:
                self._finishing += 1
                _call(operator, operator.finish)
            if self.parked_work.pending():
                return False
            if operator.has_rest:
                _call(operator, operator.emit_rest)
            if self.parked_work.pending() or operator.has_rest or not operator.drained:
                return False
        return True

    def close(self) -> list[BaseException]:
        """Closes every operator that was set up, head first, even if another one raises; gives back
        what was raised, ``SystemExit`` and the like too: the rest is to be closed all the same."""
        errors = self.parked_work.close()
        for run in self._runs.values():
            run.close()
        for operator in reversed(self._set_up):
            try:
                _call(operator, operator.close)
            except BaseException as error:
                errors.append(error)
        for chained in self._config.operators:
            for function in _functions_of_writers(chained):
                try:
                    close_function(function)
                except BaseException as error:
                    errors.append(error)
        return errors

    # -- what comes in -----------------------------------------------------------------------------

    def batch_inputs(self) -> tuple[Callable[[Batch], None], ...]:
        """The calls that give the head a batch, one for each input."""
        head = self.head
        if not isinstance(head, TwoInputOperator):
            return (self._input.push,)
        return self._input.push_of(head.process_batch1), self._input.push_of(head.process_batch2)

    @property
    def reads_first(self) -> int | None:
        """The input of the head that is read to its end before the other."""
        return self.head.reads_first if isinstance(self.head, TwoInputOperator) else None

    def end_input(self, input_index: int) -> None:
        """One of the head's inputs has ended."""
        if isinstance(self.head, TwoInputOperator):
            self._input.call(self.head.end_input, input_index)

    def control(self, element: ControlElement) -> None:
        """Gives the head a watermark, status or latency marker."""
        self._input.control(element)

    def emit_from_head(self, element: Watermark | WatermarkStatus | LatencyMarker) -> None:
        """Emits a control element that the task of a source makes itself, behind the source's own
        output."""
        self._outputs[0].emit_control(element)

    def process_barrier(
        self, barrier: CheckpointBarrier, then: Callable[[CheckpointBarrier], None]
    ) -> None:
        """Parked work is done first. Each operator, head first, emits what must go before the
        barrier; then the barrier is written. ``then`` is called with it before anything else comes:
        the operators' state is that of the barrier."""
        self.parked_work.pass_barrier(self._passed(barrier, then))

    def _passed(
        self, barrier: CheckpointBarrier, then: Callable[[CheckpointBarrier], None]
    ) -> Passing:
        operators = [each.operator for each in self._checkpointed]
        for operator in operators:
            _call(operator, operator.prepare_snapshot_pre_barrier, barrier.checkpoint_id)
            while not _call(operator, _is_flushed, operator):
                yield False
            yield True
        for operator in operators:
            _call(operator, operator.emit_before_barrier, barrier.checkpoint_id)
        self.write(barrier)
        then(barrier)

    def freeze_state(self, barrier: CheckpointBarrier) -> dict[OperatorId, FrozenState]:
        """The state of each operator that has some, last first."""
        frozen: dict[OperatorId, FrozenState] = {}
        for chained in reversed(self._checkpointed):
            state = _call(chained.operator, chained.operator.freeze_state, barrier)
            if not state.is_empty:
                frozen[chained.operator_id] = replace(
                    state, operator_name=chained.operator.context.name
                )
        return frozen

    def notify_checkpoint(self, checkpoint_id: int, is_complete: bool) -> None:
        """Tells every operator, head first, that the checkpoint is durable, or will never be."""
        for operator in [each.operator for each in self._checkpointed]:
            notify = (
                operator.notify_checkpoint_complete
                if is_complete
                else operator.notify_checkpoint_aborted
            )
            _call(operator, notify, checkpoint_id)

    def write(self, element: ControlElement) -> None:
        """Writes a control element that passes no operator to all network outputs: a barrier, the
        end of data, the end of the partition."""
        for output in self._writers:
            output.writer.emit_control(element)

    def input_pauses(self) -> None:
        """No input is there at the moment, so nothing waits for more of it any longer: neither in
        operators nor in writers."""
        for operator in self._gathering:
            _call(operator, operator.input_pauses)
        self.flush()

    def flush(self) -> None:
        """Sends what the writers hold back to fill a batch."""
        for output in self._writers:
            output.writer.flush()

    def __repr__(self) -> str:
        return (
            "<OperatorChain "
            f"{' → '.join(chained.name for chained in self._config.operators)}, "
            f"{len(self._runs)} fused>"
        )


def _call(operator: StreamOperator, call: Callable[..., T], *arguments: object) -> T:
    """Calls it; an exception of user code gets the operator's name."""
    try:
        return call(*arguments)
    except BaseException as error:
        raise_told(error, operator.context)


def _is_flushed(operator: StreamOperator) -> bool:
    return operator.flushed


def _functions_of_writers(chained: ChainedOperator[StreamOperator]) -> list[Function]:
    """The key selectors and partitioners on the edges to the network."""
    return [
        function
        for edge in chained.edges
        if isinstance(edge, NetworkEdge)
        for function in functions_of_writer(edge.partitioning)
    ]
