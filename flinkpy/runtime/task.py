"""A task: one attempt's life, from its descriptor to its terminal report, including the release of
everything it acquired.

    CREATED → DEPLOYING → INITIALIZING → RUNNING → FINISHED | CANCELED | FAILED

Each state is reported once, in order; the terminal one comes last, after partitions, gates,
operators and timers were released. All methods belong to the task's thread
(``flinkpy.runtime.loop.task_home``), but for those that say otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from flinkpy.common.pyflink_imports import install as install_pyflink_imports
from flinkpy.core.errors import EngineError, FlinkpyError, ProgramError
from flinkpy.core.ids import ExecutionAttemptId
from flinkpy.core.lifecycles import TASK, ExecutionState, StateMachine
from flinkpy.core.options.engine import (
    BATCH_RECORDS,
    OBJECT_REUSE,
    OPERATOR_FUSION,
    PYFLINK_IMPORTS,
    RUNTIME_MODE,
    TASK_THREAD,
    RuntimeMode,
    TaskThreadUse,
)
from flinkpy.core.options.schema import read
from flinkpy.core.program.code import loads
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.chain_config import ChainConfig, NetworkEdge
from flinkpy.graph.checkpoints import TaskRestore
from flinkpy.graph.deployment import (
    ResultPartitionDescriptor,
    TaskDeploymentDescriptor,
    TaskExecutionState,
    TaskMetrics,
)
from flinkpy.graph.partitioning import Partitioning, PartitioningKind
from flinkpy.metrics.live import LiveAccumulators
from flinkpy.metrics.reported import reported
from flinkpy.network.port import InputGate, RecordWriter, ShuffleEnvironment
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.chain.own_functions import holds_what_is_opened, with_own_functions
from flinkpy.operators.context import TaskInfo
from flinkpy.operators.user_errors import ENDS_PROGRAMS, format_error, user_frames
from flinkpy.runtime.checkpointing.sent_first import SentFirst, read_in_flight
from flinkpy.runtime.checkpointing.state_io import read_states
from flinkpy.runtime.files.worker_files import WorkerFiles
from flinkpy.runtime.local_folders import check_local_folders
from flinkpy.runtime.loop.busy_time import Waiting
from flinkpy.runtime.loop.loop_port import Loop
from flinkpy.runtime.loop.step_pace import NOTABLE_S
from flinkpy.runtime.loop.task_home import TaskHome
from flinkpy.runtime.memory.task_memory import SlotMemory, TaskMemory
from flinkpy.runtime.runner_port import TaskReporter
from flinkpy.runtime.stream_task import StreamTask, StreamTaskConfig, TaskServices
from flinkpy.runtime.task_measures import TaskMeasures
from flinkpy.runtime.task_messages import MessageToTask

LOG = engine_logger(__name__)

_S = ExecutionState


@dataclass(frozen=True)
class TaskPlace:
    """What a task has of the worker and the slot that it runs in. Where ``may_have_thread``, one
    that waits gets a thread of its own."""

    files: WorkerFiles = field(default_factory=WorkerFiles)
    memory: SlotMemory = field(default_factory=SlotMemory)
    may_have_thread: bool = False


class Task:
    """Runs one attempt. ``on_end`` is called with it after the terminal report."""

    def __init__(
        self,
        descriptor: TaskDeploymentDescriptor,
        shuffle: ShuffleEnvironment,
        loop: Loop,
        reporter: TaskReporter,
        on_end: Callable[[Task], None],
        place: TaskPlace | None = None,
    ) -> None:
        self.descriptor = descriptor
        self._shuffle = shuffle
        self._loop = loop
        self._reporter = reporter
        self._on_end = on_end
        self._machine = StateMachine(TASK, descriptor.subtask_name)
        self.stream_task: StreamTask | None = None
        self._live = LiveAccumulators(loop.clock)
        self.measures: TaskMeasures | None = None  # from RUNNING on
        self._began_s = 0.0
        place = place or TaskPlace()
        self._files = place.files
        self.memory = TaskMemory(place.memory, descriptor.managed_memory)
        self._early: list[MessageToTask] = []  # came before the task had started
        self.home = TaskHome(loop, self, descriptor.subtask_name)
        self._may_have_thread = place.may_have_thread
        self._loaded: StreamTaskConfig | None = None  # it can run now
        # it was cancelled: what its functions raise from now on is nobody's failure. Set from any
        # thread
        self.is_to_end = False
        self.scheduled = False  # kept by the loop
        # from any thread: the task has something to do
        self.wake: Callable[[], None] = partial(loop.schedule_threadsafe, self)

    @property
    def attempt_id(self) -> ExecutionAttemptId:
        return self.descriptor.attempt_id

    @property
    def state(self) -> ExecutionState:
        return self._machine.state

    # -- the loop's calls --------------------------------------------------------------------------

    def step(self) -> bool:
        """In the loop's thread: it is the task's turn."""
        return self._step() if self.home.is_plain else self.home.step(self._step)

    def _step(self) -> bool:
        """The first step loads the task, the second one opens it; every other one is a step of its
        mailbox loop."""
        if self._machine.is_terminal:
            return False
        try:
            if self.stream_task is None:
                return self._start() if self._loaded is None else self._run(self._loaded)
            more = self.stream_task.run_step()
            if self.stream_task.step_s >= NOTABLE_S:
                self.home.step_was_long(self.stream_task.step_s)
            if self.stream_task.done:
                self._finish()
                return False
            return more
        except Exception as error:
            if not self.is_to_end:  # otherwise its cancellation follows
                self.fail(error)
            return False

    def crashed(self, error: BaseException) -> None:
        """User code raised something that is not an Exception, such as SystemExit or
        KeyboardInterrupt."""
        if self.is_to_end:
            return
        where = "".join(f"\n{frame}" for frame in user_frames(error.__traceback__))
        self.fail(
            ProgramError(
                f"a function of {self.descriptor.subtask_name} raised {format_error(error)}"
                f"{ENDS_PROGRAMS}{where}"
            )
        )

    # -- life --------------------------------------------------------------------------------------

    def _start(self) -> bool:
        """True when it can run. While its state is being read it is not scheduled. What the code
        sets up for its thread, as its modules are imported, holds for all threads that tasks get
        from here on."""
        self._began_s = self._loop.clock.monotonic()
        self._move(_S.DEPLOYING)
        check_local_folders(self.descriptor.configuration, has_run=self.attempt_id.attempt > 0)
        config = self._config()
        self._move(_S.INITIALIZING)
        self._choose_thread(config)
        restore = self.descriptor.restore
        if restore is None or (restore.finished and not restore.outputs):
            self._loaded = config
            return True
        self._files.run_io(lambda: self._read_state(config, restore))
        return False

    def _read_state(self, config: StreamTaskConfig, restore: TaskRestore) -> None:
        """In the thread for files."""
        try:
            storage = self._files.checkpoint_storage(
                self.descriptor.configuration, self.attempt_id.job_id
            )
            if not restore.finished:
                restored = read_states(storage, restore, config.info, self.descriptor.configuration)
                config = replace(
                    config, restored=restored.states, bases={restore.checkpoint_id: restored.base}
                )
            found = replace(config, sent_first=read_in_flight(storage, restore, config.info))
        except Exception as read_error:
            error = read_error
            self.home.run(lambda: self.fail(error))
        else:
            self._loaded = found
            self.wake()

    def _choose_thread(self, config: StreamTaskConfig) -> None:
        """A task begins in a thread of its own, as opening it may wait, and moves to the loop's
        when its steps are short. If its functions may hold what belongs to a thread, it keeps the
        one in which they are opened."""
        wanted = (
            read(self.descriptor.configuration, TASK_THREAD)
            if self._may_have_thread
            else TaskThreadUse.NEVER
        )
        if wanted is not TaskThreadUse.NEVER:
            moves = wanted is TaskThreadUse.AUTO and not holds_what_is_opened(config.chain)
            self.home.begin(has_thread=True, moves=moves)

    def _run(self, config: StreamTaskConfig) -> bool:
        """Brings it to life; True, as it runs then."""
        writers = self._create_writers(config.chain)
        gates = self._create_gates()
        self.stream_task = StreamTask(
            config,
            writers,
            gates,
            TaskServices(
                self.home,
                self.wake,
                partial(self._reporter.send_message, self.attempt_id),
                self._files,
                self.memory,
            ),
        )
        self.stream_task.restore()
        clock = self._loop.clock
        self.measures = TaskMeasures(
            self.descriptor,
            self.stream_task,
            clock,
            round((clock.monotonic() - self._began_s) * 1000),
        )
        self._move(_S.RUNNING)
        early, self._early = self._early, []
        for message in early:
            self.deliver_message(message)
        return True

    def _config(self) -> StreamTaskConfig:
        descriptor = self.descriptor
        info = TaskInfo(
            descriptor.job_name,
            descriptor.task_name,
            descriptor.attempt_id,
            descriptor.parallelism,
            descriptor.max_parallelism,
        )
        values, restore = descriptor.configuration, descriptor.restore
        return StreamTaskConfig(
            info,
            self._load_chain(),
            tuple(gate.input_index for gate in descriptor.gates),
            values,
            sent_first=None if restore is None else SentFirst(restore.checkpoint_id),
            had_finished=restore is not None and restore.finished,
            stops=restore is not None and restore.stops,
            has_checkpoints=read(values, RUNTIME_MODE) is not RuntimeMode.BATCH,
            fusion=read(values, OPERATOR_FUSION),
            object_reuse=read(values, OBJECT_REUSE),
            batch_records=read(values, BATCH_RECORDS),
        )

    def _load_chain(self) -> ChainConfig[StreamOperator]:
        if read(self.descriptor.configuration, PYFLINK_IMPORTS):
            install_pyflink_imports()
        try:
            chain = loads(self.descriptor.chain, self.descriptor.out_of_band)
        except Exception as error:
            raise ProgramError(
                f"the code of {self.descriptor.task_name} cannot be loaded on this "
                f"worker: {type(error).__name__}: {error}; "
                "modules that do not lie beside the program must be installed on every worker"
            ) from error
        if not isinstance(chain, ChainConfig):
            raise EngineError(
                f"{self.descriptor.task_name} carries {chain!r:.80} instead of a ChainConfig"
            )
        return with_own_functions(chain)

    def _create_writers(self, chain: ChainConfig[StreamOperator]) -> list[RecordWriter]:
        edges = {
            edge.output_index: edge
            for operator in chain.operators
            for edge in operator.edges
            if isinstance(edge, NetworkEdge)
        }
        partitions = sorted(
            self.descriptor.partitions, key=lambda partition: partition.output_index
        )
        if [partition.output_index for partition in partitions] != sorted(edges):
            raise EngineError(
                f"{self.descriptor.task_name} has partitions {partitions}, but network edges "
                f"{sorted(edges)}"
            )
        if not partitions:
            return []
        chosen = [edges[partition.output_index] for partition in partitions]
        partitionings = [_partitioning(*each) for each in zip(chosen, partitions)]
        timeouts = [edge.buffer_timeout_ms for edge in chosen]
        return self._shuffle.create_writers(
            self.attempt_id, partitions, partitionings, timeouts, self._fail_soon, self.home
        )

    def _create_gates(self) -> list[InputGate]:
        return (
            self._shuffle.create_gates(
                self.attempt_id, self.descriptor.gates, self._fail_soon, self.home
            )
            if self.descriptor.gates
            else []
        )

    def _finish(self) -> None:
        self._shuffle.finish_partitions(self.attempt_id)
        self._end(_S.FINISHED, None)

    def cancel(self) -> None:
        """Ends it CANCELED; does nothing if it has ended."""
        if self._machine.is_terminal:
            return
        if self.state is not _S.CREATED:
            self._move(_S.CANCELING)
        self._release_resources(None)
        self._end(_S.CANCELED, None)

    def fail(self, error: BaseException) -> None:
        """Ends it FAILED; does nothing if it has ended."""
        if self._machine.is_terminal:
            return
        self._release_resources(error)
        self._end(_S.FAILED, _as_sent(error))

    def _fail_soon(self, error: BaseException) -> None:
        """Called by the network in any thread, perhaps in the middle of a step: fails the task
        after the step."""
        self.home.run(lambda: self.fail(error))

    def _release_resources(self, cause: BaseException | None) -> None:
        """Releases everything the task acquired. What goes wrong on the way is logged and does not
        stop the rest."""
        if self.stream_task is not None:
            for error in self.stream_task.abort():
                told = error if isinstance(error, FlinkpyError) else format_error(error)
                LOG.warning("%s: closing raised: %s", self.descriptor.subtask_name, told)
        try:
            self._shuffle.release(self.attempt_id, cause)
        except Exception:
            LOG.exception(
                "%s: its partitions and gates could not be released", self.descriptor.subtask_name
            )

    def _end(self, state: ExecutionState, error: BaseException | None) -> None:
        for leak in self.memory.release_all():
            LOG.warning("%s: %s", self.descriptor.subtask_name, leak)
        self._machine.move(state)
        accumulators = (
            reported(self.stream_task.accumulators) if self.stream_task is not None else {}
        )
        if self.measures is not None:
            self.measures.read_functions()
        self._reporter.state_changed(
            TaskExecutionState(self.attempt_id, state, error, accumulators, self.metrics())
        )
        self._on_end(self)
        self.home.leave()

    def _move(self, state: ExecutionState) -> None:
        self._machine.move(state)
        self._reporter.state_changed(TaskExecutionState(self.attempt_id, state))

    # -- messages ----------------------------------------------------------------------------------

    def end_rest(self) -> None:
        """Its source, if it has one, need not rest any more: the process has memory again."""
        if self.stream_task is not None:
            self.stream_task.input_available()

    def free_memory(self) -> None:
        """The process is short of memory: its operators write to disk what they can."""
        task = self.stream_task
        if task is None or task.chain is None or self._machine.is_terminal:
            return
        try:
            for operator in task.chain.operators:
                operator.free_memory()
        except Exception as error:
            self.fail(error)

    def deliver_message(self, message: MessageToTask) -> None:
        """Puts what the JobMaster or a coordinator says into the mailbox. A task that has ended
        ignores it."""
        if self._machine.is_terminal:
            return
        stream_task = self.stream_task
        if stream_task is None:
            self._early.append(message)
        else:
            stream_task.deliver_message(message)

    # -- metrics -----------------------------------------------------------------------------------

    def metrics(self) -> TaskMetrics:
        """Counters so far; may be read from any thread."""
        task, now_ms = self.stream_task, int(self._loop.clock.monotonic() * 1000)
        if task is None or task.chain is None:
            return TaskMetrics(self.attempt_id, read_ms=now_ms)
        chain, time = task.chain, task.time
        return TaskMetrics(
            self.attempt_id,
            chain.metrics.records_in,
            chain.metrics.records_out,
            int(time.busy * 1000),
            int(time.waited(Waiting.OUTPUT) * 1000),
            int(time.waited(Waiting.INPUT) * 1000),
            chain.metrics.of_operators(),
            now_ms,
            self._live.last_reading,
            None if self.measures is None else self.measures.read(),
        )

    def read_accumulators(self) -> bool:
        """Reads the functions' accumulators and metrics; True if ``metrics`` reports something new
        from now on."""
        return self.stream_task is not None and self._live.read(self.stream_task.accumulators)

    def __repr__(self) -> str:
        return f"<Task {self.descriptor.subtask_name}: {self.state.name}>"


def _partitioning(edge: NetworkEdge, partition: ResultPartitionDescriptor) -> Partitioning:
    """As the program has it, over the key groups that the consumer has now: those of the checkpoint
    that it started from."""
    if edge.partitioning.kind is not PartitioningKind.HASH or partition.key_groups is None:
        return edge.partitioning
    return replace(edge.partitioning, max_parallelism=partition.key_groups)


def _as_sent(error: BaseException) -> BaseException:
    """The error as it is sent to the JobMaster: an error of the engine itself, which can be
    pickled; for others a description."""
    if isinstance(error, FlinkpyError):
        error.__cause__ = error.__context__ = None
        return error.with_traceback(None)
    return EngineError(f"{type(error).__name__}: {error}")
