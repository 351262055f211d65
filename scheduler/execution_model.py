"""The parts of an execution graph: subtasks and their attempts, the results they exchange, the
slots they are in, the regions they fail in, and the failovers that restart them. Each names some of
the others, so they are described in one place; what is done with them stands in ``execution_graph``
(states and counts), ``execution_slots``, ``regions`` and ``failover``.

Wiring. However an edge is distributed, its producers fall into disjoint groups, each read by its
own group of consumers (ALL_TO_ALL: one group of all; POINTWISE: one group per consumer or per
producer, whichever are fewer). Everything that has to know who reads from whom (regions,
deployment, "may the consumers start?") asks these groups, so an edge costs producers + consumers,
never their product."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flinkpy.core.errors import EngineError
from flinkpy.core.ids import AllocationId, ExecutionAttemptId, ResultPartitionId, SlotRequestId
from flinkpy.core.lifecycles import EXECUTION, ExecutionState, StateMachine
from flinkpy.graph.deployment import ShuffleDescriptor, ShuffleDescriptors, TaskManagerLocation
from flinkpy.graph.job_graph import DistributionPattern, JobEdge, JobGraph, JobVertex
from flinkpy.graph.resources import ResourceProfile

TERMINAL = (ExecutionState.FINISHED, ExecutionState.CANCELED, ExecutionState.FAILED)


class Execution:
    """One attempt to run one subtask."""

    __slots__ = (
        "attempt_id",
        "entered",
        "error",
        "failure",
        "location",
        "machine",
        "result_lost",
        "slot",
        "started",
        "vertex",
    )

    def __init__(self, vertex: ExecutionVertex, attempt_id: ExecutionAttemptId, now: float) -> None:
        self.vertex, self.attempt_id = vertex, attempt_id
        self.machine = StateMachine(EXECUTION, str(vertex))
        self.entered = {self.machine.state: now}  # when it entered each state that it has been in
        self.slot: SharedSlot | None = None  # from SCHEDULED until it ends
        self.location: TaskManagerLocation | None = None  # from DEPLOYING on, also after its end
        self.error: BaseException | None = None
        # the error in words, when another attempt has taken its place: an error may hold much of
        # the program's data
        self.failure = ""
        self.started = False  # counted as started in the groups that read it
        # finished, but its blocking result is gone: lost, or released because it was not needed
        self.result_lost = False

    @property
    def state(self) -> ExecutionState:
        return self.machine.state

    @property
    def is_terminal(self) -> bool:
        return self.machine.state in TERMINAL

    @property
    def has_begun(self) -> bool:
        return self.machine.state is not ExecutionState.CREATED

    @property
    def keeps_results(self) -> bool:
        """Whether it has finished and left blocking results behind."""
        return (
            self.machine.state is ExecutionState.FINISHED
            and not self.result_lost
            and self.location is not None
            and any(result.is_blocking for result in self.vertex.job_vertex.outputs)
        )

    def __repr__(self) -> str:
        return f"<{self.vertex}#{self.attempt_id.attempt}: {self.state.name}>"


class ExecutionVertex:
    """One subtask, and its current attempt."""

    __slots__ = ("earlier", "execution", "failover", "index", "job_vertex", "region")

    region: PipelinedRegion

    def __init__(self, job_vertex: ExecutionJobVertex, index: int) -> None:
        self.job_vertex, self.index = job_vertex, index
        self.failover: Failover | None = None  # the failover that will restart it
        self.earlier: tuple[Execution, ...] = ()  # attempts that ended before, the newest first
        self.execution = Execution(
            self,
            ExecutionAttemptId(
                job_vertex.job_id, job_vertex.vertex.id, index, job_vertex.first_attempt
            ),
            0.0,
        )

    @property
    def is_schedulable(self) -> bool:
        """Whether its attempt was not scheduled yet, and no failover is about to restart it."""
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
        return (
            f"{self.job_vertex.vertex.name} ({self.index + 1}/{self.job_vertex.vertex.parallelism})"
        )


class ExecutionJobVertex:
    """All subtasks of one job vertex, and how many are in which state."""

    def __init__(self, job_graph: JobGraph, vertex: JobVertex, first_attempt: int = 0) -> None:
        self.job_id = job_graph.job_id
        self.vertex = vertex
        self.first_attempt = first_attempt
        self.inputs: list[IntermediateResult] = []
        self.outputs: list[IntermediateResult] = []  # by output index
        self.vertices = [ExecutionVertex(self, index) for index in range(vertex.parallelism)]
        self.counts = dict.fromkeys(ExecutionState, 0)
        self.counts[ExecutionState.CREATED] = vertex.parallelism


class PartitionGroup:
    """Producers that are read together by the same consumers: subtask ``consumers[k]`` reads
    subpartition ``k`` of each producer."""

    __slots__ = (
        "_descriptors",
        "consumers",
        "producers",
        "result",
        "unconsumed",
        "unfinished",
        "unstarted",
    )

    def __init__(self, result: IntermediateResult, producers: range, consumers: range) -> None:
        self.result = result
        self.producers = producers
        self.consumers = consumers
        self.unstarted = self.unfinished = len(producers)
        self.unconsumed = len(consumers)  # that have not finished
        self._descriptors: tuple[ShuffleDescriptor, ...] | None = None

    @property
    def is_blocking(self) -> bool:
        return self.result.is_blocking

    @property
    def is_consumable(self) -> bool:
        """Whether its consumers may be scheduled one after the other: a blocking result is all
        produced, a pipelined one is being produced."""
        return (self.unfinished if self.is_blocking else self.unstarted) == 0

    def producer_vertices(self) -> list[ExecutionVertex]:
        return self.result.producer.vertices[self.producers.start : self.producers.stop]

    def consumer_vertices(self) -> list[ExecutionVertex]:
        return self.result.consumer.vertices[self.consumers.start : self.consumers.stop]

    def descriptors(self) -> tuple[ShuffleDescriptor, ...]:
        """Where the producers are: one tuple for all consumers of the group."""
        if self._descriptors is None:
            self._descriptors = ShuffleDescriptors(
                self._describe(vertex.execution) for vertex in self.producer_vertices()
            )
        return self._descriptors

    def forget_descriptors(self) -> None:
        """A producer starts anew, elsewhere perhaps."""
        self._descriptors = None

    def _describe(self, producer: Execution) -> ShuffleDescriptor:
        if producer.location is None:
            raise EngineError(
                f"a consumer of {producer} is deployed before the place of its producer is known"
            )
        return ShuffleDescriptor(
            ResultPartitionId(self.result.edge.data_set.id, producer.attempt_id), producer.location
        )


class IntermediateResult:
    """What one job vertex produces for one other: its groups."""

    def __init__(
        self, edge: JobEdge, producer: ExecutionJobVertex, consumer: ExecutionJobVertex
    ) -> None:
        self.edge = edge
        self.producer = producer
        self.consumer = consumer
        self.is_blocking = edge.data_set.partition_type.is_blocking
        self._width_in, self._width_out = producer.vertex.parallelism, consumer.vertex.parallelism
        self.groups = [
            PartitionGroup(self, producers, consumers)
            for producers, consumers in wiring(edge.pattern, self._width_in, self._width_out)
        ]

    def group_of_producer(self, index: int) -> PartitionGroup:
        if len(self.groups) == 1:
            return self.groups[0]
        return self.groups[
            index
            if self._width_in < self._width_out
            else ((index + 1) * self._width_out - 1) // self._width_in
        ]

    def group_of_consumer(self, index: int) -> PartitionGroup:
        if len(self.groups) == 1:
            return self.groups[0]
        return self.groups[
            index * self._width_in // self._width_out if self._width_in < self._width_out else index
        ]


def wiring(
    pattern: DistributionPattern, producers: int, consumers: int
) -> Iterator[tuple[range, range]]:
    """The groups of an edge as ranges of subtasks.

    >>> list(wiring(DistributionPattern.POINTWISE, 2, 3))
    [(range(0, 1), range(0, 2)), (range(1, 2), range(2, 3))]
    """
    if pattern is DistributionPattern.ALL_TO_ALL:
        yield range(producers), range(consumers)
    elif producers >= consumers:
        for index in range(consumers):
            yield (
                range(index * producers // consumers, (index + 1) * producers // consumers),
                range(index, index + 1),
            )
    else:
        for index in range(producers):
            yield (
                range(index, index + 1),
                range(-(-index * consumers // producers), -(-(index + 1) * consumers // producers)),
            )


class SlotKey(NamedTuple):
    """An execution slot sharing group."""

    group: str
    subtask: int


class Bulk:
    """Attempts that are deployed once all their slots are there."""

    __slots__ = ("executions", "missing")

    def __init__(self) -> None:
        self.executions: list[Execution] = []
        self.missing: set[SharedSlot] = set()


class SharedSlot:
    """A slot asked for, and later there, and the attempts that are in it or wait for it."""

    __slots__ = ("allocation_id", "key", "location", "profile", "request_id", "users", "waiting")

    def __init__(self, key: SlotKey, request_id: SlotRequestId, profile: ResourceProfile) -> None:
        self.key = key
        self.request_id = request_id
        self.profile = profile
        self.allocation_id: AllocationId | None = None
        self.location: TaskManagerLocation | None = None
        self.users: dict[Execution, None] = {}  # in order of arrival, so that equal runs are equal
        self.waiting: list[Bulk] = []

    def __repr__(self) -> str:
        where = f"on {self.location.resource_id}" if self.location is not None else "requested"
        return f"<slot {self.key.group}/{self.key.subtask} {where}, {len(self.users)} users>"


class PipelinedRegion:
    """Subtasks that stand and fall together, and the blocking results they read and write (each
    group once)."""

    __slots__ = ("inputs", "outputs", "vertices")

    def __init__(self) -> None:
        self.vertices: list[ExecutionVertex] = []
        self.inputs: list[PartitionGroup] = []
        self.outputs: list[PartitionGroup] = []

    @property
    def is_ready(self) -> bool:
        """Whether everything it reads from other regions is there."""
        return all(group.is_consumable for group in self.inputs)

    def __repr__(self) -> str:
        return f"<region of {len(self.vertices)} subtasks from {self.vertices[0]}>"


class Failover:
    """A restart under way: waits until its subtasks' attempts ended and its pause is over."""

    __slots__ = ("error", "pause_is_over", "running", "timer_id", "vertices")

    def __init__(self, timer_id: str, error: BaseException) -> None:
        self.timer_id, self.error = timer_id, error
        self.vertices: dict[ExecutionVertex, None] = {}
        self.running = 0  # attempts that have not ended yet
        self.pause_is_over = False

    @property
    def is_ready(self) -> bool:
        return self.pause_is_over and self.running == 0

    def __repr__(self) -> str:
        return f"<{self.timer_id}: {len(self.vertices)} subtasks, {self.running} still end>"
