"""What runs inside a task: the operator chain and its inputs, brought to life, driven and taken down in Flink's order.

The order (a test says so)::

    set_initial_state → create_state_backend → create_operator_chain → setup → init → initialize_state → open →
    run (mailbox: mail first, then the default action) → finish → quiesce_timers → flush_outputs → dispose → task_cleanup → common_cleanup

A cancelled or failed task jumps from wherever it is to quiesce_timers → task_cleanup → dispose → common_cleanup.

Everything happens in the slot loop's thread, one bounded step at a time. User code that blocks, in ``open`` too, blocks the slot: what must
wait belongs into a SourceFunction (own thread) or async I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from flinkpy.core.elements import MAX_TIMESTAMP, CheckpointBarrier, EndOfData, Watermark
from flinkpy.core.errors import EngineError, FlinkpyError, UserCodeError
from flinkpy.core.ids import OperatorId
from flinkpy.core.mailbox import Mailbox, MailboxProcessor
from flinkpy.core.reactor import Reactor
from flinkpy.graph.chain_config import ChainConfig, ChainedOperator
from flinkpy.network.port import InputGate, RecordWriter
from flinkpy.operators.base import InputStatus, SourceOperator
from flinkpy.operators.chain.operator_chain import OperatorChain
from flinkpy.operators.context import OperatorContext, TaskInfo
from flinkpy.operators.user_errors import user_code_error
from flinkpy.runtime.inputs import StreamInputs
from flinkpy.runtime.latency_markers import LatencyMarkers
from flinkpy.runtime.loop.adaptive_batch_size import LONG_S, Portion
from flinkpy.runtime.loop.busy_time import BusyTime, Waiting
from flinkpy.runtime.loop.processing_timers import TaskTimers

INPUTS_PER_STEP = 2  # an input that has one batch and no more is flushed in the same step, without a round of the selector in between
EMISSIONS_PER_LOOK = 64
NOTABLE_EXPANSION = 1.5
RECORDS_IN_CACHE = 1024


@dataclass(frozen=True)
class StreamTaskConfig:
    """What a StreamTask is told."""

    info: TaskInfo
    chain: ChainConfig
    input_indices: tuple[int, ...] = ()  # beside the gates
    configuration: dict[str, Any] = field(default_factory=dict)
    restored: bytes | None = None
    fusion: bool = True
    object_reuse: bool = False
    batch_records: int = 4096


class StreamTask:
    """Base of the kinds of task; they differ in their default action. ``wake`` makes the loop run a step; callable from any thread."""

    def __init__(
        self, config: StreamTaskConfig, writers: Sequence[RecordWriter], gates: Sequence[InputGate], reactor: Reactor,
        wake: Callable[[], None], send_event: Callable[[OperatorId, Any], None],
    ) -> None:
        self.config, self._writers, self._gates, self._reactor = config, list(writers), list(gates), reactor
        self._send_event = send_event
        self.mailbox = Mailbox(config.info.subtask_name, wake)
        self.processor = MailboxProcessor(self.mailbox, self._process)
        self.timers = TaskTimers(reactor, self._post_timer)
        self.time = BusyTime(reactor.clock)
        self.portion = Portion(config.batch_records)
        self.accumulators: dict[str, Any] = {}
        self.phases: list[str] = []  # what was done so far, in order
        self.chain: OperatorChain | None = None
        self._wake = wake
        self._disposed = False
        self.done = False

    # -- coming to life ----------------------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Everything before the mailbox loop. Raises what the user's ``open`` raises."""
        self.processor.adopt_thread()
        self._enter("set_initial_state")
        self._enter("create_state_backend")  # keyed state lives in the operators until there are backends to choose from
        self._enter("create_operator_chain")
        chain = OperatorChain(
            self.config.chain, self._writers, self._context_of, fusion=self.config.fusion, object_reuse=self.config.object_reuse,
        )
        self._enter("setup")
        self.chain = chain
        chain.setup()
        self._enter("init")
        self.init(chain)
        self._enter("initialize_state")
        chain.initialize_state(self.config.restored)
        self._enter("open")
        chain.set_listener(self._output_available)
        chain.set_parked_listener(self.resume)
        chain.open()
        self._enter("run")

    def init(self, chain: OperatorChain) -> None:
        """Task-specific initialisation."""

    def _context_of(self, operator: ChainedOperator) -> OperatorContext:
        return OperatorContext(
            operator.operator_id, operator.name, operator.uid, self.config.info, self._reactor.clock, self.timers,
            run_in_task=self.run_in_task, send_operator_event=lambda event: self._send_event(operator.operator_id, event),
            configuration=self.config.configuration, accumulators=self.accumulators,
            object_reuse=self.config.object_reuse, batch_records=self.config.batch_records,
        )

    def run_in_task(self, action: Callable[[], None]) -> None:
        """From any thread: runs the action in a step of this task; not at all, once the task has ended."""
        self.mailbox.put(action, "run_in_task")

    def _post_timer(self, action: Callable[[], None]) -> None:
        self.mailbox.put(action, "timer")

    # -- running ------------------------------------------------------------------------------------------------------------

    def run_step(self) -> bool:
        """One step of the mailbox loop; True while there is more to do now. After the last one, ``done`` is True."""
        processor = self.processor
        mails, rows = processor.mails_processed, self.portion.taken
        self.time.step_begins()
        try:
            more = processor.run_step()
            if not more and mails != processor.mails_processed and self.chain is not None:
                self.chain.flush()  # mail may have emitted (a timer, an asynchronous result), and no input will follow soon
        except FlinkpyError as error:
            self._add_origin(error)
            raise
        finally:
            taken = self.time.step_ends()
            if taken > LONG_S or not self.portion.is_full:
                self.portion.step_took(self.portion.taken - rows, taken)
        return more and not self.done

    def _process(self) -> None:
        chain = self.chain
        assert chain is not None
        for _ in range(INPUTS_PER_STEP):
            if chain.may_pause and not chain.available:
                self._suspend(Waiting.OUTPUT)
                return
            if chain.parked():
                chain.go_on()
                chain.flush()  # it may be slow
                return
            status = self.process_input()
            if status is InputStatus.NOTHING_AVAILABLE:
                chain.flush()
                if chain.parked():
                    return
                self._suspend(Waiting.INPUT)
                return
            if status is InputStatus.END_OF_INPUT:
                self._end_input()
                return

    def process_input(self) -> InputStatus:
        """The default action of this kind of task: processes a bounded amount of input."""
        raise NotImplementedError

    @property
    def _alive(self) -> OperatorChain:
        if self.chain is None:
            raise EngineError(f"{self!r} has no operator chain yet")
        return self.chain

    def _suspend(self, reason: Waiting) -> None:
        self.time.reason = reason
        self.processor.suspended = True

    def resume(self) -> None:
        """In the loop's thread: there may be something to do again."""
        if self.processor.suspended:
            self.time.reason = None
            self.processor.suspended = False
            self._wake()

    def input_available(self) -> None:
        """A gate or the source has something."""
        if self.processor.suspended and self.time.reason is not Waiting.OUTPUT:
            self.resume()

    def _output_available(self) -> None:
        if self.time.reason is not Waiting.INPUT or self.processor.default_action == self._drain:
            self.resume()

    def _add_origin(self, error: FlinkpyError) -> None:
        """Says which split and offset the failing batch came from, where this task reads the source itself."""
        if isinstance(error, UserCodeError) and error.origin is None and self.chain is not None and isinstance(self.chain.head, SourceOperator):
            error.origin = self.chain.head.position()

    def deliver_operator_event(self, operator_id: OperatorId, event: Any) -> None:
        """An event of a coordinator, as mail."""
        operator = self._alive.operator_of(operator_id)
        if operator is None:
            raise EngineError(f"{self.config.info.subtask_name} has no operator {operator_id}, but got {event!r:.80} for it")
        try:
            operator.handle_operator_event(event)
        except FlinkpyError:
            raise
        except Exception as error:
            raise user_code_error(error, operator.context) from error

    # -- ending well ----------------------------------------------------------------------------------------------------------

    def end_of_data(self) -> EndOfData:
        """What this task tells its consumers at the end."""
        return EndOfData()

    def before_finish(self, chain: OperatorChain) -> None:
        """The input has ended; the operators have not finished yet."""

    def input_finished(self) -> bool:
        """Whether the producers can go: every channel gave its last element."""
        return True

    def _end_input(self) -> None:
        chain = self._alive
        self._enter("finish")
        self.before_finish(chain)
        self.processor.default_action = self._finish
        self._finish()

    def _finish(self) -> None:
        """Until every operator has emitted all it has: one may still wait for others."""
        chain = self._alive
        if chain.has_rest and not chain.available:
            self._suspend(Waiting.OUTPUT)
            return
        if not chain.finish():
            if chain.parked():
                chain.flush()
            elif not chain.has_rest:
                chain.flush()
                self._suspend(Waiting.OUTPUT)
            return
        chain.end_of_data(self.end_of_data())
        self._enter("quiesce_timers")
        self.timers.quiesce()
        self._enter("flush_outputs")
        chain.end_of_partition()
        self.processor.default_action = self._drain
        self._drain()

    def _drain(self) -> None:
        """Waits, without holding anybody up, until consumers took all output and all input was read: an ended task leaves nothing behind."""
        chain = self._alive
        chain.flush()
        if self.input_finished() and chain.consumed:
            self._dispose_well(chain)
            return
        self._suspend(Waiting.INPUT if chain.consumed else Waiting.OUTPUT)

    def _dispose_well(self, chain: OperatorChain) -> None:
        self._enter("dispose")
        self._disposed = True
        errors = chain.close()
        if errors:
            raise errors[0]
        self._clean_up()
        self.done = True

    # -- ending otherwise -------------------------------------------------------------------------------------------------------

    def abort(self) -> list[Exception]:
        """Takes everything down from wherever it is; gives back what that raised. May be called again."""
        if self.phases and self.phases[-1] == "common_cleanup":
            return []
        errors: list[Exception] = []
        if "quiesce_timers" not in self.phases:
            self._enter("quiesce_timers")
            self.timers.quiesce()
        self._enter("task_cleanup")
        self.cleanup()
        if self.chain is not None and not self._disposed:
            self._disposed = True
            self._enter("dispose")
            errors = self.chain.close()
        self._common_cleanup()
        return errors

    def _clean_up(self) -> None:
        self._enter("task_cleanup")
        self.cleanup()
        self._common_cleanup()

    def cleanup(self) -> None:
        """Task-specific clean-up."""

    def _common_cleanup(self) -> None:
        self._enter("common_cleanup")
        self.time.stop()
        self.mailbox.close()

    def _enter(self, phase: str) -> None:
        self.phases.append(phase)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.config.info.subtask_name}: {self.phases[-1] if self.phases else 'new'}>"


class SourceStreamTask(StreamTask):
    """Its head makes the records: so many at a time that what the chain makes of them still lies in the processor's cache
    when its consumers read it (measured on a word count: 1.7 times as fast as whole batches of 1,000 lines)."""

    def init(self, chain: OperatorChain) -> None:
        head = chain.head
        if not isinstance(head, SourceOperator):
            raise EngineError(f"{self.config.info.task_name} has no input, but its head is {head!r}")
        head.wake_up = self._wake_source
        self._head, self._emit_next = head, head.emit_next
        self._emissions, self._in_cache = 0, self.config.batch_records
        LatencyMarkers(chain, head.context).start()

    def _wake_source(self) -> None:
        self.mailbox.put(self.input_available, "source has data")

    def process_input(self) -> InputStatus:
        self._head.portion = self._in_cache if self._head.is_columnar else min(self._in_cache, self.portion.rows)
        try:
            status = self._emit_next()
        except FlinkpyError:
            raise
        except Exception as error:
            raise user_code_error(error, self._alive.head.context) from error
        self.portion.taken = self._head.rows_emitted
        if status is InputStatus.MORE_AVAILABLE:
            self._emissions += 1
            if self._emissions <= EMISSIONS_PER_LOOK or not self._emissions % EMISSIONS_PER_LOOK:  # early: by the next look much is queued
                self._look_at_chain()
        return status

    def _look_at_chain(self) -> None:
        expansion = self._alive.expansion
        fitting = max(1, int(RECORDS_IN_CACHE / expansion)) if expansion >= NOTABLE_EXPANSION else self.config.batch_records
        self._in_cache = min(self.config.batch_records, fitting)  # anew each time: the first records may be unlike the others

    def before_finish(self, chain: OperatorChain) -> None:
        chain.emit_from_head(Watermark(MAX_TIMESTAMP))  # a bounded source ends event time

    def trigger_checkpoint(self, barrier: CheckpointBarrier) -> None:
        """As mail: the barrier starts its way here, between two batches."""
        self._alive.process_barrier(barrier)


class OneInputStreamTask(StreamTask):
    """Reads gates, all of which feed the one input of its head."""

    def init(self, chain: OperatorChain) -> None:
        self.inputs = StreamInputs(self._gates, self.config.input_indices, chain, self.portion)
        for gate in self._gates:
            gate.set_listener(self.input_available)
        self.process_input = self.inputs.process_some  # type: ignore[method-assign]  # one call less per batch

    def end_of_data(self) -> EndOfData:
        return self.inputs.end_of_data

    def input_finished(self) -> bool:
        self.inputs.drop_rest()
        return self.inputs.finished


class TwoInputStreamTask(OneInputStreamTask):
    """Reads gates that feed the first or the second input of its head."""


def create_stream_task(
    config: StreamTaskConfig, writers: Sequence[RecordWriter], gates: Sequence[InputGate], reactor: Reactor,
    wake: Callable[[], None], send_event: Callable[[OperatorId, Any], None],
) -> StreamTask:
    """The kind of task the chain's head needs."""
    kinds: dict[int, type[StreamTask]] = {0: SourceStreamTask, 1: OneInputStreamTask}
    kind = kinds.get(config.chain.inputs, TwoInputStreamTask)
    return kind(config, writers, gates, reactor, wake, send_event)
