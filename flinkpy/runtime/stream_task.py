"""What runs inside a task: the operator chain and its input, brought to life, driven and taken down
in Flink's order.

A task that ends well goes through the phases of :class:`Phase` in their order. A cancelled or
failed one jumps from wherever it is to QUIESCE_TIMERS → CLOSE_OPERATORS → CLEAN_UP. In RUN the
mailbox alternates mail and the default action, which processes input.

Everything happens in the task's thread, one bounded step at a time. While a function waits, so does
its task; the others go on (``flinkpy.runtime.loop.task_home``). Many calls at a time are what async
I/O is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, Protocol

from flinkpy.core.elements import (
    MAX_TIMESTAMP,
    CheckpointBarrier,
    EndOfData,
    EndOfPartition,
    Watermark,
)
from flinkpy.core.errors import EngineError, FlinkpyError, UserCodeError
from flinkpy.core.ids import OperatorId
from flinkpy.core.mailbox import Mailbox, MailboxProcessor
from flinkpy.core.reactor import Reactor
from flinkpy.graph.chain_config import ChainConfig, ChainedOperator
from flinkpy.graph.checkpoint_messages import FinalCheckpointAwaited
from flinkpy.network.port import InputGate, RecordWriter
from flinkpy.operators.base import InputStatus, SourceOperator, StreamOperator
from flinkpy.operators.chain.operator_chain import OperatorChain
from flinkpy.operators.context import OperatorContext, TaskInfo
from flinkpy.operators.user_errors import raise_told
from flinkpy.runtime.checkpointing.channel_recording import TaskTiming
from flinkpy.runtime.checkpointing.output_barriers import OutputBarriers
from flinkpy.runtime.checkpointing.sent_first import SentFirst, send_first
from flinkpy.runtime.checkpointing.snapshot_writer import SnapshotWriter
from flinkpy.runtime.checkpointing.state_io import Base
from flinkpy.runtime.checkpointing.task_checkpoints import TaskCheckpoints
from flinkpy.runtime.files.worker_files import WorkerFiles
from flinkpy.runtime.inputs import StreamInputs
from flinkpy.runtime.latency_markers import LatencyMarkers
from flinkpy.runtime.loop.adaptive_batch_size import LONG_S, AdaptiveBatchSize
from flinkpy.runtime.loop.busy_time import BusyTime, Waiting
from flinkpy.runtime.loop.processing_timers import TaskTimers
from flinkpy.runtime.memory.task_memory import TaskMemory
from flinkpy.runtime.source_input import SourceInput
from flinkpy.runtime.task_messages import MessageFromTask, MessageToTask, OperatorEvent
from flinkpy.state.snapshots.saved_state import SavedState

# an input that has one batch and no more is flushed in the same step, without a round of the poller
# in between
INPUTS_PER_STEP = 2

CHECKPOINT_MAIL = "checkpoint"  # what the JobMaster says of checkpoints


class Phase(Enum):
    """What a task does as it comes to life, runs and ends. Each is entered just before it is
    done."""

    CREATE_CHAIN = "create the operator chain"
    SETUP = "give every operator its context and output"
    CONNECT_INPUT = "connect the gates, or the source, to the head of the chain"
    INITIALIZE_STATE = "create or restore the operators' state"
    OPEN = "open the operators"
    RUN = "process mail and input"
    FINISH = "let the operators emit what they hold back"
    QUIESCE_TIMERS = "cancel the timers and take no more"
    AWAIT_CHECKPOINT = (
        "with checkpoints: wait for the producers to end, and for a checkpoint to commit the "
        "last results"
    )
    FLUSH_OUTPUTS = "end the partitions, and wait until the consumers have read them"
    CLOSE_OPERATORS = "close the operators"
    CLEAN_UP = "close the mailbox"


class TaskInput(Protocol):
    """Where a task's records come from: its gates, or the source at the head of its chain."""

    @property
    def end_of_data(self) -> EndOfData:
        """What the task tells its consumers when the input has ended."""
        ...

    def event_time_and_barriers(self) -> dict[str, float]:
        """The task's metrics of these. May be called from any thread."""
        ...

    def process_some(self) -> InputStatus:
        """Processes a bounded amount of input: the task's default action."""
        ...

    def begin_checkpoint(self, barrier: CheckpointBarrier) -> None:
        """No producer will send this barrier: it is the task's to begin with."""
        ...

    def end_event_time(self) -> None:
        """The input has ended, and the operators have not finished yet: event time ends, unless a
        producer has said so."""
        ...

    def leave(self) -> None:
        """The task stops here, though its data has not ended: ``drain`` reads what still comes, and
        nothing is made of it."""
        ...

    def drain(self) -> bool:
        """The data has ended: reads what still comes. True when there is no more, so that the
        producers can go."""
        ...

    def close(self) -> None:
        """The task has ended, in whatever way."""
        ...


@dataclass(frozen=True)
class StreamTaskConfig:
    """What a task's descriptor says about its chain."""

    info: TaskInfo
    chain: ChainConfig[StreamOperator]
    input_indices: tuple[int, ...] = ()  # beside the gates
    configuration: dict[str, Any] = field(default_factory=dict)
    restored: Mapping[OperatorId, SavedState] | None = None
    # the checkpoint it starts from, if later ones may build on it
    bases: Mapping[int, Base] = field(default_factory=dict)
    # what was on its way to the consumers, in the checkpoint it starts from
    sent_first: SentFirst | None = None
    # all subtasks of all operators, in the checkpoint it starts from: nothing is left to do
    had_finished: bool = False
    # the job has stopped with the savepoint it starts from: nothing is left but to commit, which
    # sinks do as they open
    stops: bool = False
    has_checkpoints: bool = False  # or may be asked for savepoints
    fusion: bool = True
    object_reuse: bool = False
    batch_records: int = 4096


@dataclass(frozen=True)
class TaskServices:
    """What a task has of the process that it runs in. ``wake`` makes the loop run a step, and may
    be called from any thread; ``send_message`` sends to the JobMaster, or to a coordinator
    there."""

    reactor: Reactor
    wake: Callable[[], None]
    send_message: Callable[[MessageFromTask], None]
    files: WorkerFiles = field(default_factory=WorkerFiles)
    memory: TaskMemory = field(default_factory=TaskMemory)


class StreamTask:
    """Runs a chain over its input. To its checkpoints it is a ``CheckpointedTask``."""

    def __init__(
        self,
        config: StreamTaskConfig,
        writers: Sequence[RecordWriter],
        gates: Sequence[InputGate],
        services: TaskServices,
    ) -> None:
        self.config = config
        self._services = services
        self._writers = list(writers)
        self.gates = list(gates)
        self.processor = MailboxProcessor(
            Mailbox(config.info.subtask_name, services.wake), self._process
        )
        self.timers = TaskTimers(services.reactor, lambda action: self.mailbox.put(action, "timer"))
        self.time = BusyTime(services.reactor.clock)
        self.batch_size = AdaptiveBatchSize(config.batch_records)
        self.accumulators: dict[str, Any] = {}
        self.phases: list[Phase] = []  # entered so far, in order
        self.chain: OperatorChain | None = None
        self.checkpoints: TaskCheckpoints  # from CONNECT_INPUT on, as ``input``
        self.input: TaskInput
        self.step_s = 0.0  # what its last step took
        self.done = False

    @property
    def mailbox(self) -> Mailbox:
        return self.processor.mailbox

    # -- coming to life ----------------------------------------------------------------------------

    def restore(self) -> None:
        """Everything before the mailbox loop. Raises what the user's ``open`` raises."""
        self.processor.adopt_thread()
        self.phases.append(Phase.CREATE_CHAIN)
        chain = OperatorChain(
            self.config.chain,
            self._writers,
            self._context_of,
            fusion=self.config.fusion,
            object_reuse=self.config.object_reuse,
        )
        self.phases.append(Phase.SETUP)
        self.chain = chain
        chain.setup()
        self.phases.append(Phase.CONNECT_INPUT)
        timing = TaskTiming.of(self._services.reactor, self.run_in_task)
        self.checkpoints = self._create_checkpoints(chain, timing)
        self.input = self._connect_input(chain, timing)
        chain.set_listener(self._output_available)
        chain.parked_work.set_listener(self.resume)
        if self.config.had_finished:
            self.processor.default_action = self._end_anew
            chain.open(had_finished=True)
        else:
            self.phases.append(Phase.INITIALIZE_STATE)
            chain.initialize_state(self.config.restored)
            self.phases.append(Phase.OPEN)
            chain.open()
        if self.config.stops:
            self._leave_at_once()
        if self.config.sent_first is not None:
            send_first(self.config.sent_first, self._writers)
        self.phases.append(Phase.RUN)

    def _create_checkpoints(self, chain: OperatorChain, timing: TaskTiming) -> TaskCheckpoints:
        config, services = self.config, self._services
        job_id, files = config.info.attempt_id.job_id, services.files
        snapshots = SnapshotWriter(
            config.info,
            partial(files.checkpoint_storage, config.configuration, job_id),
            files,
            services.send_message,
            config.bases,
            services.reactor.clock,
            had_finished=config.had_finished,
        )
        return TaskCheckpoints(
            self,
            chain,
            snapshots,
            OutputBarriers(self._writers, timing),
            None if config.sent_first is None else config.sent_first.checkpoint_id,
            services.reactor.clock,
        )

    def _connect_input(self, chain: OperatorChain, timing: TaskTiming) -> TaskInput:
        if not self.config.chain.inputs:
            source = SourceInput(
                chain,
                self.batch_size,
                self.config.batch_records,
                lambda: self.run_in_task(self.input_available),
                self.checkpoints,
                self._services.memory.sources_rest,
            )
            LatencyMarkers(chain, chain.head.context).start()
            return source
        for gate in self.gates:
            gate.set_listener(self.input_available)
        return StreamInputs(
            self.gates, self.config.input_indices, chain, self.batch_size, self.checkpoints, timing
        )

    def _context_of(self, operator: ChainedOperator[StreamOperator]) -> OperatorContext:
        return OperatorContext(
            operator.operator_id,
            operator.name,
            operator.uid,
            self.config.info,
            self._services.reactor.clock,
            self.timers,
            run_in_task=self.run_in_task,
            send_operator_event=lambda event: self._services.send_message(
                OperatorEvent(operator.operator_id, event)
            ),
            configuration=self.config.configuration,
            accumulators=self.accumulators,
            object_reuse=self.config.object_reuse,
            batch_records=self.config.batch_records,
            cached_file=self._services.files.cached_file,
            memory=self._services.memory.of_operator(operator.name, operator.operator),
        )

    def run_in_task(self, action: Callable[[], None]) -> None:
        """From any thread: runs the action in a step of this task; not at all, once the task has
        ended."""
        self.mailbox.put(action, "run_in_task")

    # -- running -----------------------------------------------------------------------------------

    def run_step(self) -> bool:
        """One step of the mailbox loop; True while there is more to do now. After the last one,
        ``done`` is True."""
        processor = self.processor
        mails, rows = processor.mails_processed, self.batch_size.rows_taken
        self.time.step_begins()
        try:
            more = processor.run_step()
            if not more and mails != processor.mails_processed and self.chain is not None:
                # mail may have emitted (a timer, an asynchronous result), and no input will follow
                # soon
                self.chain.input_pauses()
        except FlinkpyError as error:
            _add_origin(error, self.chain)
            raise
        finally:
            taken = self.step_s = self.time.step_ends()
            if taken > LONG_S or not self.batch_size.is_full:
                self.batch_size.step_took(self.batch_size.rows_taken - rows, taken)
        return more and not self.done

    def _process(self) -> None:
        chain = self.chain
        assert chain is not None
        for _ in range(INPUTS_PER_STEP):
            if chain.may_pause and not chain.available:
                self._suspend(Waiting.OUTPUT)
                return
            if chain.parked_work.pending():
                chain.parked_work.go_on()
                chain.flush()  # it may be slow
                return
            if self.checkpoints.awaits_stop:
                return
            status = self.input.process_some()
            if status is InputStatus.NOTHING_AVAILABLE:
                chain.input_pauses()
                if chain.parked_work.pending():
                    return
                self._suspend(Waiting.INPUT)
                return
            if status is InputStatus.END_OF_INPUT:
                self.end_input()
                return

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
            self._services.wake()

    def input_available(self) -> None:
        """A gate or the source has something."""
        if self.processor.suspended and self.time.reason is not Waiting.OUTPUT:
            self.resume()

    def _output_available(self) -> None:
        if self.time.reason is not Waiting.INPUT or self.processor.default_action == self._drain:
            self.resume()

    # -- what the JobMaster and coordinators say ---------------------------------------------------

    def deliver_message(self, message: MessageToTask) -> None:
        """Puts the message into the mailbox."""
        if isinstance(message, OperatorEvent):
            self.mailbox.put(lambda: self._handle_operator_event(message), "operator event")
        else:
            self.mailbox.put(lambda: self.checkpoints.handle_message(message), CHECKPOINT_MAIL)

    def _handle_operator_event(self, message: OperatorEvent) -> None:
        operator_id, event = message.operator_id, message.event
        operator = self._alive.operator_of(operator_id)
        if operator is None:
            raise EngineError(
                f"{self.config.info.subtask_name} has no operator {operator_id}, but got "
                f"{event!r:.80} for it"
            )
        try:
            operator.handle_operator_event(event)
        except BaseException as error:
            raise_told(error, operator.context)

    # -- what its checkpoints have it do -----------------------------------------------------------

    @property
    def reads_source(self) -> bool:
        return not self.config.chain.inputs and self._has_input

    @property
    def _has_input(self) -> bool:
        return self.processor.default_action == self._process

    def begin_barrier(self, barrier: CheckpointBarrier) -> None:
        self.input.begin_checkpoint(barrier)

    def stand_still(self) -> None:
        if self._has_input:
            self.processor.admit_only(CHECKPOINT_MAIL)
            self.processor.default_action = self._stand_still

    def _stand_still(self) -> None:
        """The default action until the savepoint is complete, or was given up."""
        if self.checkpoints.may_stop:
            self._leave_input()
        else:
            self._suspend(Waiting.INPUT)

    def go_on(self) -> None:
        """The savepoint for which the task stood still was given up. What came meanwhile, such as
        splits, is handled before the next mail: that may begin another savepoint."""
        if self.processor.default_action == self._stand_still:
            self.processor.default_action = self._process
            self.processor.admit_only(None)

    def _leave_at_once(self) -> None:
        """The job has stopped with the savepoint that the task starts from. What was to be
        committed is, since the operators are open."""
        self.processor.admit_only(CHECKPOINT_MAIL)
        self.processor.default_action = self._leave_input

    # -- ending well -------------------------------------------------------------------------------

    def end_input(self) -> None:
        self.resume()
        self.phases.append(Phase.FINISH)
        self.checkpoints.hold_back()
        self.timers.fire_due()  # their mail may come behind the end
        self.processor.default_action = self._end_event_time
        self._end_event_time()

    def _end_event_time(self) -> None:
        """The default action until what the timers began is done: the last watermark comes behind
        it."""
        chain = self._alive
        if chain.may_pause and not chain.available:
            self._suspend(Waiting.OUTPUT)
            return
        if chain.parked_work.pending():
            chain.parked_work.go_on()
            chain.flush()
            return
        self.input.end_event_time()
        self.processor.default_action = self._finish
        self._finish()

    def _leave_input(self) -> None:
        """The task stops with a savepoint: its operators do not finish, and event time does not
        end."""
        self.phases.append(Phase.QUIESCE_TIMERS)
        self.timers.quiesce()
        self.input.leave()
        self._alive.write(EndOfData(drain=False))
        self._end_partitions()

    def _finish(self) -> None:
        """The default action until every operator has emitted everything; one may still wait for
        something, or for room in the outputs."""
        chain = self._alive
        if chain.has_rest and not chain.available:
            self._suspend(Waiting.OUTPUT)
            return
        if not chain.finish():
            if chain.parked_work.pending():
                chain.flush()
            elif not chain.has_rest:
                chain.flush()
                self._suspend(Waiting.OUTPUT)
            return
        self._end_data()

    def _end_anew(self) -> None:
        """All had ended when the checkpoint was taken: the consumers are told again."""
        self.phases.append(Phase.FINISH)
        self._alive.write(Watermark(MAX_TIMESTAMP))
        self._end_data()

    def _end_data(self) -> None:
        self._alive.write(self.input.end_of_data)
        self.phases.append(Phase.QUIESCE_TIMERS)
        self.timers.quiesce()
        if not self.config.has_checkpoints:
            self._end_partitions()
            return
        self.phases.append(Phase.AWAIT_CHECKPOINT)
        self.checkpoints.release()
        if self._alive.waits_for_final_checkpoint:
            self._services.send_message(FinalCheckpointAwaited())
        self.processor.default_action = self._await_checkpoint
        self._await_checkpoint()

    def _await_checkpoint(self) -> None:
        """The default action until no barrier can come any more, and the last results are
        committed."""
        chain = self._alive
        chain.flush()
        if (
            not self.input.drain()
            or chain.waits_for_final_checkpoint
            or self.checkpoints.awaits_stop
        ):
            self._suspend(Waiting.INPUT)
            return
        self._end_partitions()

    def _end_partitions(self) -> None:
        self.phases.append(Phase.FLUSH_OUTPUTS)
        self.checkpoints.close()
        self._alive.write(EndOfPartition())
        self.processor.default_action = self._drain
        self._drain()

    def _drain(self) -> None:
        """The default action until the consumers have taken all output and all input was read: an
        ended task leaves nothing behind."""
        chain = self._alive
        chain.flush()
        if not self.input.drain() or not chain.consumed:
            self._suspend(Waiting.INPUT if chain.consumed else Waiting.OUTPUT)
            return
        errors = self._close_operators(chain)
        if errors:
            raise errors[0]
        self._clean_up()
        self.done = True

    # -- ending otherwise --------------------------------------------------------------------------

    def abort(self) -> list[BaseException]:
        """Takes everything down from wherever it is; gives back what that raised. May be called
        again."""
        if Phase.CLEAN_UP in self.phases:
            return []
        if Phase.QUIESCE_TIMERS not in self.phases:
            self.phases.append(Phase.QUIESCE_TIMERS)
            self.timers.quiesce()
        errors = (
            []
            if self.chain is None or Phase.CLOSE_OPERATORS in self.phases
            else self._close_operators(self.chain)
        )
        self._clean_up()
        return errors

    def _close_operators(self, chain: OperatorChain) -> list[BaseException]:
        self.phases.append(Phase.CLOSE_OPERATORS)
        return chain.close()

    def _clean_up(self) -> None:
        if Phase.CONNECT_INPUT in self.phases:
            self.checkpoints.end()
            self.input.close()
        self.phases.append(Phase.CLEAN_UP)
        self.time.stop()
        self.mailbox.close()

    def __repr__(self) -> str:
        return (
            f"<StreamTask {self.config.info.subtask_name}: "
            f"{self.phases[-1].name if self.phases else 'new'}>"
        )


def _add_origin(error: FlinkpyError, chain: OperatorChain | None) -> None:
    """Says which split and offset the failing batch came from, where the task reads the source
    itself: the record may be any of the batch."""
    if (
        isinstance(error, UserCodeError)
        and error.origin is None
        and chain is not None
        and isinstance(chain.head, SourceOperator)
    ):
        position = chain.head.position()
        error.origin = f"{position} or later" if position is not None else None
