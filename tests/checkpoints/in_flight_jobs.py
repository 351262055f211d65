"""Small jobs of real tasks, gates, partitions and connections in one thread, in which chance
decides who does a step next: where barriers meet records, who is held up, and where the job dies. A
second job goes on from the checkpoint of the first, with any parallelism."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import Batch, CheckpointBarrier, CheckpointOptions, RowBatch, Watermark
from flinkpy.core.ids import (
    ExecutionAttemptId,
    ExecutionVertexId,
    IntermediateDataSetId,
    JobId,
    JobVertexId,
    OperatorId,
    ResourceId,
    ResultPartitionId,
)
from flinkpy.core.keys import canonical_key, channel_of_key_group, key_group
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.graph.chain_config import ChainConfig, ChainedOperator, NetworkEdge
from flinkpy.graph.checkpoint_messages import (
    BeginCheckpoint,
    CheckpointAborted,
    SnapshotFailed,
    SnapshotTaken,
)
from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.graph.deployment import (
    InputGateDescriptor,
    ResultPartitionDescriptor,
    ShuffleDescriptor,
    TaskManagerLocation,
)
from flinkpy.graph.job_graph import IntermediateDataSet, JobEdge, JobGraph, JobVertex, OperatorInfo
from flinkpy.graph.partitioning import KeySpec, Partitioning, PartitioningKind
from flinkpy.network.shuffle import ShuffleService
from flinkpy.operators.base import InputStatus, OneInputOperator, SourceOperator, StreamOperator
from flinkpy.operators.context import TaskInfo
from flinkpy.runtime.checkpointing.sent_first import read_in_flight
from flinkpy.runtime.stream_task import StreamTask, StreamTaskConfig, TaskServices
from flinkpy.scheduler.checkpointing.checkpoint_plan import CheckpointPlan
from flinkpy.scheduler.checkpointing.pending_checkpoint import PendingCheckpoint
from flinkpy.scheduler.checkpointing.state_assignment import (
    check_restorable,
    has_rescaled_in_flight,
    task_restore,
)
from flinkpy.state.checkpoints.checkpoint_storage import MemoryCheckpointStorage
from flinkpy.state.snapshots.saved_state import FrozenState, SavedState
from flinkpy.testing.manual_reactor import ManualReactor

JOB, SECRET, MAX_PARALLELISM, SPLITS = JobId("job"), b"secret", 16, 4
CONFIG = NetworkConfig(
    total_segments=400,
    segment_size=256,
    batch_records=8,
    batch_bytes=1024,
    buffers_per_channel=1,
    floating_buffers=1,
    max_buffers_per_channel=2,
    partition_request_timeout=timedelta(seconds=60),
)
HASH = Partitioning(PartitioningKind.HASH, KeySpec(lambda record: record[2]), MAX_PARALLELISM)
Record = tuple[str, int, int]  # source and split, number, key


class Numbers(SourceOperator):
    """Splits of ``count`` records each; a subtask has every ``parallelism``-th."""

    def __init__(self, name: str, count: int, keys: int) -> None:
        self.name = name
        self.count = count
        self.keys = keys
        self.next: dict[int, int] = {}

    def initialize_state(self, restored: SavedState | None) -> None:
        self.next = {} if restored is None else pickle.loads(restored.operator or b"")

    def freeze_state(self, barrier: CheckpointBarrier) -> FrozenState:
        return FrozenState(operator=pickle.dumps(self.next))

    def emit_next(self) -> InputStatus:
        left = [split for split, number in self.next.items() if number < self.count]
        if not left:
            return InputStatus.END_OF_INPUT
        split = left[0]
        numbers = range(self.next[split], min(self.count, self.next[split] + 5))
        self.next[split] = numbers.stop
        self.output.emit(
            RowBatch(
                [(f"{self.name}{split}", number, number % self.keys) for number in numbers],
                [number * 10 for number in numbers],
            )
        )
        self.output.emit_control(Watermark(numbers.stop * 10 - 1 if len(left) == 1 else -1))
        return InputStatus.MORE_AVAILABLE


class Counts(OneInputOperator):
    """How often it has seen each key, with each record; changes nothing else. Sees that those of a
    key come in order."""

    def __init__(self) -> None:
        self.seen: dict[Any, int] = {}
        self.last: dict[Any, int] = {}

    def initialize_state(self, restored: SavedState | None) -> None:
        self.seen, self.last = (
            ({}, {}) if restored is None else pickle.loads(restored.operator or b"")
        )

    def freeze_state(self, barrier: CheckpointBarrier) -> FrozenState:
        return FrozenState(operator=pickle.dumps((self.seen, self.last)))

    def process_batch(self, batch: Batch) -> None:
        assert isinstance(batch, RowBatch)
        out = []
        for source, number, key in batch.values:
            self.seen[key] = self.seen.get(key, 0) + 1
            assert self.last.get((source, key), -1) < number, (
                f"{source} {number} came behind {self.last[source, key]}"
            )
            self.last[source, key] = number
            out.append((source, number, (key, self.seen[key])))
        self.output.emit(RowBatch(out, batch.timestamps))


class Passes(OneInputOperator):
    def process_batch(self, batch: Batch) -> None:
        self.output.emit(batch)


class Keeps(OneInputOperator):
    """The end: all that came is its state."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def initialize_state(self, restored: SavedState | None) -> None:
        self.kept = [] if restored is None else pickle.loads(restored.operator or b"")

    def freeze_state(self, barrier: CheckpointBarrier) -> FrozenState:
        return FrozenState(operator=pickle.dumps(self.kept))

    def process_batch(self, batch: Batch) -> None:
        assert isinstance(batch, RowBatch)
        self.kept += batch.values


@dataclass(frozen=True)
class Shape:
    """Sources, each with ``count`` records a split, whose union goes to a second vertex and from
    there to a third."""

    sources: int = 1
    parallelism: tuple[int, int, int] = (2, 2, 2)
    first: PartitioningKind = PartitioningKind.HASH
    second: PartitioningKind = PartitioningKind.REBALANCE
    count: int = 60
    keys: int = 7

    @property
    def is_keyed(self) -> bool:
        return self.first is PartitioningKind.HASH

    def expected(self) -> Counter[Any]:
        """What is kept at the end of an undisturbed run."""
        names = [
            f"{chr(97 + source)}{split}"
            for source in range(self.sources)
            for split in range(SPLITS)
        ]
        copies = self.parallelism[2] if self.second is PartitioningKind.BROADCAST else 1
        return Counter({(name, number): copies for name in names for number in range(self.count)})


def graph_of(shape: Shape) -> JobGraph:
    def vertex(name: str, parallelism: int) -> JobVertex:
        return JobVertex(
            JobVertexId(name),
            name,
            parallelism,
            MAX_PARALLELISM,
            (OperatorInfo(OperatorId(name), name),),
            b"",
        )

    sources = [vertex(f"source {number}", shape.parallelism[0]) for number in range(shape.sources)]
    middle, end = vertex("middle", shape.parallelism[1]), vertex("end", shape.parallelism[2])
    for producer, consumer, kind in [
        *((source, middle, shape.first) for source in sources),
        (middle, end, shape.second),
    ]:
        output = IntermediateDataSet(IntermediateDataSetId(f"of {producer.name}"), producer.id, 0)
        producer.outputs.append(output)
        consumer.inputs.append(
            JobEdge(output, consumer.id, _partitioning(kind).pattern, kind.value)
        )
    return JobGraph(JOB, "job", [*sources, middle, end])


def _partitioning(kind: PartitioningKind) -> Partitioning:
    return HASH if kind is PartitioningKind.HASH else Partitioning(kind)


@dataclass
class RunningTask:
    task: StreamTask
    operator: StreamOperator
    attempt_id: ExecutionAttemptId
    producers: list[ExecutionAttemptId]
    service: str


@dataclass
class Job:
    """One run. ``choose`` decides everything that is left open."""

    shape: Shape
    choose: random.Random
    start_from: CompletedCheckpoint | None = None
    attempt: int = 0
    clock: ManualClock = field(default_factory=ManualClock)
    completed: list[CompletedCheckpoint] = field(default_factory=list)
    failures: list[SnapshotFailed] = field(default_factory=list)
    # what subtasks had kept that had finished before the checkpoint
    committed: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.graph, self.reactor = graph_of(self.shape), ManualReactor(self.clock)
        if self.start_from is not None:
            check_restorable(self.start_from, self.graph, False)
        self.services = {name: ShuffleService(CONFIG, SECRET, name) for name in "ab"}
        for service in self.services.values():
            service.start(self.reactor, self.reactor)
        self.pending: PendingCheckpoint | None = None
        self.committed_then: list[Any] = []  # as ``committed``, of the newest checkpoint
        self.next_id = 1 if self.start_from is None else self.start_from.checkpoint_id + 1
        self.errors: list[BaseException] = []
        self.tasks: dict[ExecutionAttemptId, RunningTask] = {}
        places = {
            self._attempt(vertex, subtask): self.choose.choice("ab")
            for vertex in self.graph.vertices
            for subtask in range(vertex.parallelism)
        }
        try:
            for vertex in self.graph.vertices:
                for subtask in range(vertex.parallelism):
                    self._deploy(vertex, subtask, places)
            self.reactor.settle(1)
        except BaseException:
            self.close()
            raise

    def _attempt(self, vertex: JobVertex, subtask: int) -> ExecutionAttemptId:
        return ExecutionAttemptId(JOB, vertex.id, subtask, self.attempt)

    # -- deploying ---------------------------------------------------------------------------------

    def _deploy(
        self, vertex: JobVertex, subtask: int, places: dict[ExecutionAttemptId, str]
    ) -> None:
        owner = self._attempt(vertex, subtask)
        service = self.services[places[self._attempt(vertex, subtask)]]
        operator, edges, writers = self._operator(vertex), [], []
        for output in vertex.outputs:
            consumer = self.graph.vertex(self.graph.edge_of(output.id).consumer)  # type: ignore[union-attr]
            kind = self.shape.second if vertex.id == "middle" else self.shape.first
            channels = 1 if kind is PartitioningKind.FORWARD else consumer.parallelism
            descriptor = ResultPartitionDescriptor(ResultPartitionId(output.id, owner), 0, channels)
            writers += service.create_writers(
                owner, [descriptor], [_partitioning(kind)], [-1], self.errors.append
            )
            edges.append(NetworkEdge(0, _partitioning(kind)))
        gates, producers = [], []
        for edge in vertex.inputs:
            producer = self.graph.vertex(edge.data_set.producer)
            subtasks = (
                [subtask] if edge.ship_strategy == "FORWARD" else list(range(producer.parallelism))
            )
            attempts = [self._attempt(producer, each) for each in subtasks]
            found = tuple(
                ShuffleDescriptor(
                    ResultPartitionId(edge.data_set.id, each), self._location(places[each])
                )
                for each in attempts
            )
            index = 0 if edge.ship_strategy == "FORWARD" else subtask
            gates += service.create_gates(
                owner, [InputGateDescriptor(edge.data_set.id, 0, index, found)], self.errors.append
            )
            producers += attempts
        info = TaskInfo("job", vertex.name, owner, vertex.parallelism, MAX_PARALLELISM)
        chain = ChainConfig(
            (ChainedOperator(OperatorId(vertex.id), vertex.name, None, operator, tuple(edges)),),
            1 if gates else 0,
        )
        config = StreamTaskConfig(
            info,
            chain,
            (0,) * len(gates),
            restored=self._restored(vertex, subtask),
            sent_first=self._in_flight(vertex, info),
            has_checkpoints=True,
            batch_records=2,
        )
        task = StreamTask(
            config,
            writers,
            gates,
            TaskServices(self.reactor, lambda: None, lambda message: self._heard(owner, message)),
        )
        task.restore()
        self.tasks[owner] = RunningTask(task, operator, owner, producers, places[owner])

    def _location(self, name: str) -> TaskManagerLocation:
        return TaskManagerLocation(ResourceId(name), "", *self.services[name].data_address)

    def _operator(self, vertex: JobVertex) -> StreamOperator:
        if not vertex.inputs:
            return Numbers(chr(97 + int(vertex.name[-1])), self.shape.count, self.shape.keys)
        if vertex.id == "middle":
            return Counts() if self.shape.is_keyed else Passes()
        return Keeps()

    def _restored(self, vertex: JobVertex, subtask: int) -> dict[OperatorId, SavedState]:
        """As the operators' own formats would, only plainer."""
        if vertex.id == "middle" and not self.shape.is_keyed:
            return {}
        saved: list[Any] = []
        operator_id = OperatorId(vertex.id)
        if self.start_from is not None and operator_id in self.start_from.operators:
            states = self.start_from.operators[operator_id].subtasks
            saved = [
                pickle.loads(state.operator.data or b"")
                for _, state in sorted(states.items())
                if state.operator is not None
            ]
        state: Any
        if not vertex.inputs:
            every = (
                {split: number for each in saved for split, number in each.items()}
                if self.start_from
                else dict.fromkeys(range(SPLITS), 0)
            )
            state = {
                split: number
                for split, number in every.items()
                if split % vertex.parallelism == subtask
            }
        elif vertex.id == "end":
            state = (
                [record for each in (*saved, self.committed) for record in each]
                if subtask == 0
                else []
            )
        else:

            def owned(values: dict[Any, Any], key_of: Any) -> dict[Any, Any]:
                return {
                    name: value
                    for name, value in values.items()
                    if _owner(key_of(name), vertex.parallelism) == subtask
                }

            state = (
                {
                    k: v
                    for each in saved
                    if each
                    for k, v in owned(each[0], lambda name: name).items()
                },
                {
                    k: v
                    for each in saved
                    if each
                    for k, v in owned(each[1], lambda name: name[1]).items()
                },
            )
        return {OperatorId(vertex.id): SavedState(operator=pickle.dumps(state))}

    def _in_flight(self, vertex: JobVertex, info: TaskInfo) -> Any:
        if self.start_from is None:
            return None
        return read_in_flight(
            MemoryCheckpointStorage(), task_restore(self.start_from, vertex, self.graph), info
        )

    # -- running -----------------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        return all(running.task.done for running in self.tasks.values())

    def step(self) -> None:
        """Someone does something."""
        if self.choose.random() < 0.3:
            self.reactor.step()
        running = self.choose.choice(list(self.tasks.values()))
        if not running.task.done:
            self._step_of(running)

    def _step_of(self, running: RunningTask) -> None:
        running.task.run_step()
        if running.task.done:
            self.services[running.service].finish_partitions(running.attempt_id)
            if self.pending is not None and running.attempt_id in self.pending.awaited:
                self.abort()
        if self.errors:
            raise self.errors[0]

    def run_to_end(self) -> None:
        for _ in range(200_000):
            if self.is_done:
                return
            self.step()
        raise AssertionError(
            "the job does not end: "
            f"{[running.task for running in self.tasks.values() if not running.task.done]}"
        )

    def kept_by(self, subtasks: Iterable[ExecutionVertexId]) -> list[Any]:
        return [
            record
            for running in self.tasks.values()
            if running.attempt_id.vertex in set(subtasks) and isinstance(running.operator, Keeps)
            for record in running.operator.kept
        ]

    def kept(self) -> Counter[Any]:
        """What the last vertex has, without the counts that the middle adds."""
        ends = [
            running.operator
            for running in self.tasks.values()
            if isinstance(running.operator, Keeps)
        ]
        return Counter((source, number) for end in ends for source, number, _ in end.kept)

    def counts(self) -> dict[Any, list[int]]:
        """Of each key, the counts with which its records came."""
        found: dict[Any, list[int]] = {}
        for running in self.tasks.values():
            if isinstance(running.operator, Keeps):
                for _, _, (key, count) in running.operator.kept:
                    found.setdefault(key, []).append(count)
        return {key: sorted(values) for key, values in found.items()}

    def close(self) -> None:
        for running in self.tasks.values():
            running.task.abort()
        for service in self.services.values():
            service.stop()
        self.reactor.settle(1)
        self.reactor.close()

    # -- checkpoints -------------------------------------------------------------------------------

    def begin_checkpoint(self, alignment_timeout_ms: int | None) -> None:
        """By those that run, as the coordinator would have it."""
        running = [each for each in self.tasks.values() if not each.task.done]
        alive = {each.attempt_id for each in running}
        trigger = [each for each in running if not alive & set(each.producers)]
        finished = tuple(each.vertex for each in self.tasks if each not in alive)
        plan = CheckpointPlan(tuple(each.attempt_id for each in trigger), tuple(alive), finished)
        self.pending = PendingCheckpoint(self.next_id, self.clock.time_ms(), 0.0, plan, self.graph)
        self.pending.acknowledge_coordinators({})
        self.next_id += 1
        if (
            self.start_from is not None
            and not self.completed
            and has_rescaled_in_flight(self.start_from, self.graph)
        ):
            alignment_timeout_ms = None
        options = CheckpointOptions(alignment_timeout_ms=alignment_timeout_ms)
        message = BeginCheckpoint(self.pending.checkpoint_id, self.clock.time_ms(), options)
        for each in trigger:
            each.task.mailbox.put(lambda task=each.task: task.checkpoints.handle_message(message))  # type: ignore[misc]

    def abort(self) -> None:
        """The coordinator gives the checkpoint up."""
        assert self.pending is not None
        message, self.pending = CheckpointAborted(self.pending.checkpoint_id), None
        for each in self.tasks.values():
            each.task.mailbox.put(lambda task=each.task: task.checkpoints.handle_message(message))  # type: ignore[misc]

    def _heard(self, who: ExecutionAttemptId, event: Any) -> None:
        pending = self.pending
        if isinstance(event, SnapshotFailed):
            self.failures.append(event)
        if (
            not isinstance(event, SnapshotTaken)
            or pending is None
            or event.checkpoint_id != pending.checkpoint_id
        ):
            return
        pending.acknowledge(who, event.snapshot)
        if pending.is_fully_acknowledged:
            self.completed.append(pending.contents())
            self.committed_then = self.kept_by(pending.plan.finished)
            self.pending = None


def _owner(key: Any, parallelism: int) -> int:
    return channel_of_key_group(
        key_group(canonical_key(key), MAX_PARALLELISM), MAX_PARALLELISM, parallelism
    )


def finish_and_check(job: Job) -> None:
    """The job ends, and each record is kept once, and was counted once."""
    job.run_to_end()
    assert job.kept() == job.shape.expected()
    if job.shape.is_keyed and job.shape.second is not PartitioningKind.BROADCAST:
        counts: Iterable[list[int]] = job.counts().values()
        for found in counts:
            assert found == list(range(1, len(found) + 1))
