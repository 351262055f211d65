"""The ExecutionGraph: every subtask, its current attempt, and who reads from whom. Attempts move only through this graph, so its counts hold.

Wiring. However an edge is distributed, its producers fall into disjoint groups, each read by its own group of consumers
(ALL_TO_ALL: one group of all; POINTWISE: one group per consumer or per producer, whichever are fewer). Everything that
asks who reads from whom — regions, deployment, "may the consumers start?" — asks these groups, so an edge costs producers + consumers,
never their product.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from flinkpy.core.errors import EngineError
from flinkpy.core.ids import ExecutionAttemptId, JobVertexId, ResultPartitionId
from flinkpy.core.lifecycles import EXECUTION, ExecutionState, StateMachine
from flinkpy.graph.deployment import ShuffleDescriptor, ShuffleDescriptors, TaskManagerLocation
from flinkpy.graph.job_graph import DistributionPattern, JobEdge, JobGraph, JobVertex

if TYPE_CHECKING:
    from flinkpy.scheduler.execution_slots import SharedSlot
    from flinkpy.scheduler.failover import Failover
    from flinkpy.scheduler.regions import PipelinedRegion

_STARTED = (ExecutionState.RUNNING, ExecutionState.FINISHED)
TERMINAL = (ExecutionState.FINISHED, ExecutionState.CANCELED, ExecutionState.FAILED)


class Execution:
    """One attempt to run one subtask."""

    __slots__ = ("attempt_id", "error", "location", "machine", "result_lost", "slot", "started", "vertex")

    def __init__(self, vertex: ExecutionVertex, attempt_id: ExecutionAttemptId) -> None:
        self.vertex, self.attempt_id = vertex, attempt_id
        self.machine = StateMachine(EXECUTION, str(vertex))
        self.slot: SharedSlot | None = None  # from SCHEDULED until it ends
        self.location: TaskManagerLocation | None = None  # from DEPLOYING, for good
        self.error: BaseException | None = None
        self.started = False  # counted as started in the groups that read it
        self.result_lost = False  # finished, but its blocking result is gone: lost, or released as nobody needed it

    @property
    def state(self) -> ExecutionState:
        return self.machine.state

    @property
    def is_terminal(self) -> bool:
        return self.machine.state in TERMINAL

    @property
    def keeps_results(self) -> bool:
        """Whether it has finished and left blocking results behind."""
        return (self.machine.state is ExecutionState.FINISHED and not self.result_lost and self.location is not None
                and any(result.is_blocking for result in self.vertex.job_vertex.outputs))

    def __repr__(self) -> str:
        return f"<{self.vertex}#{self.attempt_id.attempt}: {self.state.name}>"


class ExecutionVertex:
    """One subtask, and its current attempt."""

    __slots__ = ("execution", "failover", "index", "job_vertex", "region")

    region: PipelinedRegion

    def __init__(self, job_vertex: ExecutionJobVertex, index: int) -> None:
        self.job_vertex, self.index = job_vertex, index
        self.failover: Failover | None = None  # the failover that will restart it
        self.execution = Execution(self, ExecutionAttemptId(job_vertex.job_id, job_vertex.vertex.id, index, 0))

    @property
    def is_schedulable(self) -> bool:
        """Whether its attempt was not scheduled yet, and no failover is about to take the ground from under it."""
        return self.failover is None and self.execution.machine.state is ExecutionState.CREATED

    @property
    def input_groups(self) -> Iterator[PartitionGroup]:
        """The producers it reads, a group per edge."""
        return (result.group_of_consumer(self.index) for result in self.job_vertex.inputs)

    @property
    def output_groups(self) -> Iterator[PartitionGroup]:
        """The groups its results belong to, one per edge."""
        return (result.group_of_producer(self.index) for result in self.job_vertex.outputs)

    def __repr__(self) -> str:
        return f"{self.job_vertex.vertex.name} ({self.index + 1}/{self.job_vertex.vertex.parallelism})"


class ExecutionJobVertex:
    """All subtasks of one job vertex, and how many are in which state."""

    def __init__(self, job_graph: JobGraph, vertex: JobVertex) -> None:
        self.job_id, self.vertex = job_graph.job_id, vertex
        self.inputs: list[IntermediateResult] = []
        self.outputs: list[IntermediateResult] = []  # by output index
        self.vertices = [ExecutionVertex(self, index) for index in range(vertex.parallelism)]
        self.counts = dict.fromkeys(ExecutionState, 0)
        self.counts[ExecutionState.CREATED] = vertex.parallelism


class PartitionGroup:
    """Producers that are read together by the same consumers: subtask ``consumers[k]`` reads subpartition ``k`` of each producer."""

    __slots__ = ("_descriptors", "consumers", "producers", "result", "unconsumed", "unfinished", "unstarted")

    def __init__(self, result: IntermediateResult, producers: range, consumers: range) -> None:
        self.result, self.producers, self.consumers = result, producers, consumers
        self.unstarted = self.unfinished = len(producers)
        self.unconsumed = len(consumers)  # that have not finished
        self._descriptors: tuple[ShuffleDescriptor, ...] | None = None

    @property
    def is_blocking(self) -> bool:
        return self.result.is_blocking

    @property
    def is_consumable(self) -> bool:
        """Whether its consumers may be scheduled one after the other: a blocking result is all produced, a pipelined one is being produced."""
        return (self.unfinished if self.is_blocking else self.unstarted) == 0

    def producer_vertices(self) -> list[ExecutionVertex]:
        return self.result.producer.vertices[self.producers.start:self.producers.stop]

    def consumer_vertices(self) -> list[ExecutionVertex]:
        return self.result.consumer.vertices[self.consumers.start:self.consumers.stop]

    def descriptors(self) -> tuple[ShuffleDescriptor, ...]:
        """Where the producers are: one tuple for all consumers of the group."""
        if self._descriptors is None:
            self._descriptors = ShuffleDescriptors(self._describe(vertex.execution) for vertex in self.producer_vertices())
        return self._descriptors

    def forget_descriptors(self) -> None:
        """A producer starts anew, elsewhere perhaps."""
        self._descriptors = None

    def _describe(self, producer: Execution) -> ShuffleDescriptor:
        if producer.location is None:
            raise EngineError(f"a consumer of {producer} is deployed before the place of its producer is known")
        return ShuffleDescriptor(ResultPartitionId(self.result.edge.data_set.id, producer.attempt_id), producer.location)


class IntermediateResult:
    """What one job vertex produces for one other: its groups."""

    def __init__(self, edge: JobEdge, producer: ExecutionJobVertex, consumer: ExecutionJobVertex) -> None:
        self.edge, self.producer, self.consumer = edge, producer, consumer
        self.is_blocking = edge.data_set.partition_type.is_blocking
        self._width_in, self._width_out = producer.vertex.parallelism, consumer.vertex.parallelism
        self.groups = [PartitionGroup(self, producers, consumers) for producers, consumers in wiring(edge.pattern, self._width_in, self._width_out)]

    def group_of_producer(self, index: int) -> PartitionGroup:
        if len(self.groups) == 1:
            return self.groups[0]
        return self.groups[index if self._width_in < self._width_out else ((index + 1) * self._width_out - 1) // self._width_in]

    def group_of_consumer(self, index: int) -> PartitionGroup:
        if len(self.groups) == 1:
            return self.groups[0]
        return self.groups[index * self._width_in // self._width_out if self._width_in < self._width_out else index]


def wiring(pattern: DistributionPattern, producers: int, consumers: int) -> Iterator[tuple[range, range]]:
    """The groups of an edge as ranges of subtasks.

    >>> list(wiring(DistributionPattern.POINTWISE, 2, 3))
    [(range(0, 1), range(0, 2)), (range(1, 2), range(2, 3))]
    """
    if pattern is DistributionPattern.ALL_TO_ALL:
        yield range(producers), range(consumers)
    elif producers >= consumers:
        for index in range(consumers):
            yield range(index * producers // consumers, (index + 1) * producers // consumers), range(index, index + 1)
    else:
        for index in range(producers):
            yield range(index, index + 1), range(-(-index * consumers // producers), -(-(index + 1) * consumers // producers))


class ExecutionGraph:
    """All of it. ``touched`` gathers the vertices whose attempts moved, for whoever checks invariants."""

    def __init__(self, job_graph: JobGraph) -> None:
        self.job_graph = job_graph
        self.job_vertices = {vertex.id: ExecutionJobVertex(job_graph, vertex) for vertex in job_graph.vertices}
        for vertex in job_graph.vertices:
            consumer = self.job_vertices[vertex.id]
            for edge in vertex.inputs:
                consumer.inputs.append(IntermediateResult(edge, self.job_vertices[edge.data_set.producer], consumer))
        for consumer in self.job_vertices.values():
            for result in consumer.inputs:
                result.producer.outputs.append(result)
        for producer in self.job_vertices.values():
            producer.outputs.sort(key=lambda result: result.edge.data_set.output_index)
        self.size = sum(vertex.parallelism for vertex in job_graph.vertices)
        self.counts = dict.fromkeys(ExecutionState, 0)  # over all vertices: asked for with every event
        self.counts[ExecutionState.CREATED] = self.size
        self.touched: set[ExecutionVertex] = set()

    @property
    def vertices(self) -> Iterator[ExecutionVertex]:
        """Every subtask, in topological order of the job vertices."""
        return (vertex for job_vertex in self.job_vertices.values() for vertex in job_vertex.vertices)

    @property
    def results(self) -> Iterator[IntermediateResult]:
        return (result for job_vertex in self.job_vertices.values() for result in job_vertex.inputs)

    def count(self, *states: ExecutionState) -> int:
        """How many current attempts are in one of the states."""
        counts = self.counts
        return sum([counts[state] for state in states])

    def current(self, attempt_id: ExecutionAttemptId) -> Execution | None:
        """The attempt, if it is its subtask's current one."""
        job_vertex = self.job_vertices.get(JobVertexId(attempt_id.vertex_id))
        if job_vertex is None or not 0 <= attempt_id.subtask_index < len(job_vertex.vertices):
            return None
        execution = job_vertex.vertices[attempt_id.subtask_index].execution
        return execution if execution.attempt_id == attempt_id else None

    def move(self, execution: Execution, state: ExecutionState, why: str = "") -> list[PartitionGroup]:
        """The only way an attempt changes its state. Answers with the groups that became consumable by it."""
        vertex = execution.vertex
        before = execution.machine.state
        execution.machine.move(state, why)
        for counts in (vertex.job_vertex.counts, self.counts):
            counts[before] -= 1
            counts[state] += 1
        self.touched.add(vertex)
        return self._count_progress(execution, state) if state in _STARTED else []

    def reset(self, vertex: ExecutionVertex) -> Execution:
        """Replaces an ended attempt by a new one, and takes back what its consumers were told of it."""
        old = vertex.execution
        if not old.is_terminal:
            raise EngineError(f"{old} is replaced before it ended")
        was_finished = old.state is ExecutionState.FINISHED
        for group in vertex.output_groups:
            group.unstarted += old.started
            group.unfinished += was_finished
            group.forget_descriptors()
        if was_finished:
            for group in vertex.input_groups:
                group.unconsumed += 1
        for counts in (vertex.job_vertex.counts, self.counts):
            counts[old.state] -= 1
            counts[ExecutionState.CREATED] += 1
        vertex.execution = Execution(vertex, old.attempt_id._replace(attempt=old.attempt_id.attempt + 1))
        self.touched.add(vertex)
        return vertex.execution

    def _count_progress(self, execution: Execution, state: ExecutionState) -> list[PartitionGroup]:
        consumable = []
        for group in execution.vertex.output_groups:
            was_consumable = group.is_consumable
            group.unstarted -= not execution.started
            group.unfinished -= state is ExecutionState.FINISHED
            if group.is_consumable and not was_consumable:
                consumable.append(group)
        if state is ExecutionState.FINISHED:
            for group in execution.vertex.input_groups:
                group.unconsumed -= 1
        execution.started = True
        return consumable
