"""Small jobs on one slot loop, with the real shuffle environment, and reporters that record."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from flinkpy.core.elements import Batch, CheckpointBarrier, RowBatch, Watermark
from flinkpy.core.ids import (
    AllocationId,
    ExecutionAttemptId,
    IntermediateDataSetId,
    JobId,
    JobVertexId,
    OperatorId,
    ResourceId,
    ResultPartitionId,
)
from flinkpy.core.lifecycles import TASK
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.core.program.code import dumps
from flinkpy.graph.chain_config import ChainConfig, ChainedEdge, ChainedOperator, NetworkEdge
from flinkpy.graph.deployment import (
    InputGateDescriptor,
    ResultPartitionDescriptor,
    ShuffleDescriptor,
    TaskDeploymentDescriptor,
    TaskExecutionState,
    TaskManagerLocation,
)
from flinkpy.graph.partitioning import FORWARD, Partitioning
from flinkpy.graph.resources import ManagedMemoryUse
from flinkpy.network.shuffle import ShuffleService
from flinkpy.operators.base import (
    InputStatus,
    OneInputOperator,
    SourceOperator,
    StreamOperator,
    TwoInputOperator,
)
from flinkpy.operators.context import OperatorContext, Output
from flinkpy.runtime.loop.slot_loop import SlotLoop
from flinkpy.runtime.task import Task, TaskPlace
from flinkpy.runtime.task_messages import MessageFromTask
from flinkpy.state.snapshots.saved_state import SavedState

RESOURCE = ResourceId("worker")
LOCATION = TaskManagerLocation(RESOURCE, "local")
SECRET = b"secret of the test"

JOURNAL: list[str] = []  # operators travel pickled, so what they record goes here


class Journal:
    """Lifecycle calls of an operator, written down under its name."""

    name: str
    context: OperatorContext

    def note(self, what: str) -> None:
        JOURNAL.append(f"{self.name}.{what}")


class JournalSource(Journal, SourceOperator):
    """Emits its batches, then ends, or goes on for ever without anything to give."""

    def __init__(
        self,
        name: str,
        batches: Sequence[Sequence[Any]],
        *,
        endless: bool = False,
        fail_at: str = "",
    ) -> None:
        self.name = name
        self.batches = list(batches)
        self.endless = endless
        self.fail_at = fail_at

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self.note("setup")

    def initialize_state(self, restored: SavedState | None) -> None:
        self.note("initialize_state")

    def open(self) -> None:
        self.note("open")
        if self.fail_at == "open":
            raise OSError("no such database")

    def emit_next(self) -> InputStatus:
        if self.batches:
            self.note("emit")
            self.output.emit(RowBatch(list(self.batches.pop(0))))
            return InputStatus.MORE_AVAILABLE
        return InputStatus.NOTHING_AVAILABLE if self.endless else InputStatus.END_OF_INPUT

    def position(self) -> str | None:
        return "split 0, offset 7"

    def finish(self) -> None:
        self.note("finish")
        self.output.emit(RowBatch([f"last of {self.name}"]))

    def close(self) -> None:
        self.note("close")
        if self.fail_at == "close":
            raise OSError("cannot close")
        if self.fail_at == "exit in close":
            raise SystemExit(3)

    def handle_operator_event(self, event: Any) -> None:
        self.note(f"event {event}")
        self.context.send_operator_event(f"answer to {event}")
        self.batches.append([event])
        self.wake_up()


class JournalOperator(Journal, OneInputOperator):
    """Passes everything on."""

    def __init__(self, name: str, *, fail_on: Any = None) -> None:
        self.name, self.fail_on = name, fail_on

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self.note("setup")

    def initialize_state(self, restored: SavedState | None) -> None:
        self.note("initialize_state")

    def open(self) -> None:
        self.note("open")

    def process_batch(self, batch: Batch) -> None:
        assert isinstance(batch, RowBatch)
        if self.fail_on is not None and self.fail_on in batch.values:
            raise ValueError(f"cannot take {self.fail_on!r}")
        for value in batch.values:
            self.note(f"got {value}")
        self.output.emit(batch)

    def process_watermark(self, watermark: Watermark) -> None:
        self.note("watermark")
        super().process_watermark(watermark)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        self.note(f"before barrier {checkpoint_id}")

    def finish(self) -> None:
        self.note("finish")

    def close(self) -> None:
        self.note("close")


class JournalTwoInputs(Journal, TwoInputOperator):
    """Notes what comes on which input."""

    def __init__(self, name: str) -> None:
        self.name = name

    def process_batch1(self, batch: Batch) -> None:
        self._got(1, batch)

    def process_batch2(self, batch: Batch) -> None:
        self._got(2, batch)

    def _got(self, number: int, batch: Batch) -> None:
        assert isinstance(batch, RowBatch)
        for value in batch.values:
            self.note(f"got {value} on {number}")

    def end_input(self, input_index: int) -> None:
        self.note(f"end of input {input_index + 1}")

    def process_watermark(self, watermark: Watermark) -> None:
        self.note("watermark")


class Reporter:
    """Keeps what tasks report."""

    def __init__(self) -> None:
        self.states: list[TaskExecutionState] = []
        self.messages: list[tuple[ExecutionAttemptId, MessageFromTask]] = []
        self._changed = threading.Condition()

    def state_changed(self, state: TaskExecutionState) -> None:
        with self._changed:
            self.states.append(state)
            self._changed.notify_all()

    def send_message(self, attempt_id: ExecutionAttemptId, message: MessageFromTask) -> None:
        with self._changed:
            self.messages.append((attempt_id, message))
            self._changed.notify_all()

    def of(self, attempt_id: ExecutionAttemptId) -> list[str]:
        return [state.state.name for state in self.states if state.attempt_id == attempt_id]

    def terminal(self) -> list[TaskExecutionState]:
        return [state for state in self.states if TASK.is_terminal(state.state)]

    def error_of(self, attempt_id: ExecutionAttemptId) -> BaseException | None:
        return next(
            (
                state.error
                for state in self.states
                if state.attempt_id == attempt_id and state.error is not None
            ),
            None,
        )

    def wait_for(self, condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, timeout_s), (
                f"still waiting; states {self.states}"
            )


def attempt(vertex: str, subtask: int = 0) -> ExecutionAttemptId:
    return ExecutionAttemptId(JobId("job"), JobVertexId(vertex), subtask, 0)


def chain(
    *operators: StreamOperator, inputs: int = 0, outputs: Sequence[NetworkEdge] = ()
) -> ChainConfig[Any]:
    last = len(operators) - 1
    return ChainConfig(
        tuple(
            ChainedOperator(
                OperatorId(f"{getattr(operator, 'name', i)}"),
                f"{getattr(operator, 'name', i)}",
                None,
                operator,
                (ChainedEdge(i + 1),) if i < last else tuple(outputs),
            )
            for i, operator in enumerate(operators)
        ),
        inputs,
    )


def partition(vertex: str, subtask: int = 0) -> ResultPartitionId:
    return ResultPartitionId(IntermediateDataSetId(f"out of {vertex}"), attempt(vertex, subtask))


def descriptor(
    vertex: str,
    *operators: StreamOperator,
    reads: Sequence[tuple[str, int]] = (),
    consumers: int = 0,
    partitioning: Partitioning = FORWARD,
    subtask: int = 0,
    parallelism: int = 1,
    configuration: dict[str, Any] | None = None,
) -> TaskDeploymentDescriptor:
    """A subtask that reads subpartition ``subtask`` of single producers, each for an input, and
    writes one partition if it has consumers."""
    outputs = (NetworkEdge(0, partitioning),) if consumers else ()
    config = chain(*operators, inputs=len({index for _, index in reads}), outputs=outputs)
    return TaskDeploymentDescriptor(
        attempt(vertex, subtask),
        AllocationId("slot"),
        "job",
        vertex,
        parallelism,
        128,
        dumps(config),
        partitions=(ResultPartitionDescriptor(partition(vertex, subtask), 0, consumers),)
        if consumers
        else (),
        gates=tuple(
            InputGateDescriptor(
                partition(producer).data_set_id,
                index,
                subtask,
                (ShuffleDescriptor(partition(producer), LOCATION),),
            )
            for producer, index in reads
        ),
        configuration=configuration or {},
        managed_memory=ManagedMemoryUse(
            sum((Counter(operator.memory_weights) for operator in operators), Counter())
        ),
    )


class LoopHarness:
    """A loop without a thread: the test runs its rounds."""

    def __init__(self) -> None:
        JOURNAL.clear()
        self.loop = SlotLoop("test loop")
        self.shuffle = ShuffleService(NetworkConfig(), SECRET, RESOURCE)
        self.shuffle.start(self.loop, self.loop)
        self.reporter = Reporter()
        self.ended: list[Task] = []

    def submit(self, one: TaskDeploymentDescriptor, place: TaskPlace | None = None) -> Task:
        task = Task(one, self.shuffle, self.loop, self.reporter, self.ended.append, place)
        self.loop.schedule(task)
        return task

    def run_until(self, condition: Callable[[], bool], rounds: int = 2000) -> None:
        for _ in range(rounds):
            if condition():
                return
            self.loop.run_once(may_wait=False)
        raise AssertionError(f"not reached in {rounds} rounds: {self.reporter.states}, {JOURNAL}")

    def run(self, *descriptors: TaskDeploymentDescriptor) -> list[Task]:
        """Runs them to their end."""
        tasks = [self.submit(one) for one in descriptors]
        self.run_until(lambda: len(self.ended) == len(tasks), rounds=200_000)
        return tasks

    def close(self) -> None:
        self.shuffle.stop()
        self.loop.run_once(may_wait=False)
        self.loop.stop()


def barrier(checkpoint_id: int) -> CheckpointBarrier:
    return CheckpointBarrier(checkpoint_id, 0)
