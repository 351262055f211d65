"""Jobs for the simulation: random graphs, whose ``chain`` says how their tasks behave instead of
what they compute."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from flinkpy.connectors.source_api.enumerators import SplitQueue
from flinkpy.connectors.source_api.source import (
    Boundedness,
    ReaderContext,
    Source,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.elements import SavepointFormatType, SnapshotType
from flinkpy.core.ids import IntermediateDataSetId, JobId, JobVertexId, OperatorId
from flinkpy.graph.job_graph import (
    DistributionPattern,
    IntermediateDataSet,
    JobEdge,
    JobGraph,
    JobVertex,
    OperatorInfo,
    ResultPartitionType,
)
from flinkpy.graph.resources import ANY, ResourceProfile

RECORDS_PER_SPLIT = 2  # of tasks that pass records on


@dataclass(frozen=True)
class StreamBehaviour:
    """A task that passes records on and takes part in checkpoints: how long a record takes at most
    to be read, how likely it is that state cannot be saved, and when those attempts fail that
    do."""

    operator_id: OperatorId
    read_s: float = 0.5
    declines: float = 0.0
    fails_after_s: float = 1.0


@dataclass(frozen=True)
class TaskBehaviour:
    """What a simulated task of a vertex does. ``run_s`` None: it runs until cancelled.
    ``failures``: attempts of subtask ``failing`` below this number fail. ``reads_splits``: it asks
    the coordinator for splits and ends when there are no more. With ``stream`` it ends when its
    producers have ended."""

    run_s: float | None = 1.0
    start_s: float = 0.01
    failing: int = 0
    failures: int = 0
    reads_splits: OperatorId | None = None
    stream: StreamBehaviour | None = None

    def dumps(self) -> bytes:
        return pickle.dumps(self)


@dataclass(frozen=True)
class SimulatedSplit:
    split_id: str


class SimulatedSource(Source[SimulatedSplit]):
    """A source that only has the coordinator's side: simulated tasks read its splits without a
    reader."""

    def __init__(self, splits: int) -> None:
        self.splits = splits

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(
        self, context: SplitEnumeratorContext[SimulatedSplit], checkpoint: Any = None
    ) -> SplitEnumerator[SimulatedSplit]:
        return SplitQueue(
            context,
            lambda parallelism: [
                SimulatedSplit(f"split-{number}") for number in range(self.splits)
            ],
            checkpoint,
        )

    def create_reader(self, context: ReaderContext) -> NoReturn:
        raise NotImplementedError("simulated tasks read splits without a reader")


class JobBuilder:
    """Builds a job graph vertex by vertex.

    >>> job = JobBuilder(JobId("1"))
    >>> source = job.vertex(2)
    >>> _ = job.vertex(2, [(source, DistributionPattern.ALL_TO_ALL)])
    >>> len(job.build().vertices)
    2
    """

    def __init__(
        self, job_id: JobId, name: str = "", configuration: dict[str, Any] | None = None
    ) -> None:
        self.graph = JobGraph(job_id, name or f"job-{job_id:.6}", [], dict(configuration or {}))

    def vertex(
        self,
        parallelism: int,
        inputs: Sequence[tuple[JobVertex, DistributionPattern]] = (),
        behaviour: TaskBehaviour = TaskBehaviour(),
        *,
        group: str = "default",
        co_location: str | None = None,
        profile: ResourceProfile = ANY,
        splits: int | None = None,
        partition_type: ResultPartitionType = ResultPartitionType.PIPELINED,
    ) -> JobVertex:
        number = len(self.graph.vertices)
        vertex_id = JobVertexId(f"{self.graph.job_id:.6}-v{number}")
        operator_id = OperatorId(f"{self.graph.job_id:.6}-o{number}")
        sources: tuple[tuple[OperatorId, bytes], ...] = ()
        if splits is not None:
            sources = ((operator_id, pickle.dumps(SimulatedSource(splits))),)
            behaviour = TaskBehaviour(
                behaviour.run_s,
                behaviour.start_s,
                behaviour.failing,
                behaviour.failures,
                operator_id,
            )
        vertex = JobVertex(
            vertex_id,
            f"v{number}",
            parallelism,
            max(128, parallelism),
            (OperatorInfo(operator_id, f"v{number}"),),
            behaviour.dumps(),
            slot_sharing_group=group,
            co_location_group=co_location,
            resources=profile,
            sources=sources,
        )
        for producer, pattern in inputs:
            data_set = IntermediateDataSet(
                IntermediateDataSetId(f"{producer.id}-{len(producer.outputs)}"),
                producer.id,
                len(producer.outputs),
                partition_type,
            )
            producer.outputs.append(data_set)
            vertex.inputs.append(
                JobEdge(data_set, vertex_id, pattern, "SIMULATED", min(1, len(vertex.inputs)))
            )
        self.graph.vertices.append(vertex)
        return vertex

    def build(self) -> JobGraph:
        return self.graph


@dataclass(frozen=True)
class SavepointAt:
    """A savepoint, or a checkpoint out of turn, that is asked for so long after the submission.
    With ``cancels_after_s``, the job is cancelled so long after its client was told where it is.
    Who is refused asks again, so many times."""

    after_s: float
    kind: SnapshotType
    trigger_id: str
    form: SavepointFormatType = SavepointFormatType.NATIVE
    cancels_after_s: float | None = None
    again: int = 0


@dataclass(frozen=True)
class SimulatedJob:
    """A job and its client's actions. With ``cancel_after_s`` None the job ends by itself, whatever
    happens."""

    graph: JobGraph
    submit_at_s: float
    cancel_after_s: float | None
    savepoints: tuple[SavepointAt, ...] = ()


def splits_of(vertex: JobVertex) -> int:
    """How many splits its source has."""
    return sum(pickle.loads(source).splits for _, source in vertex.sources)


def random_job(chance: random.Random, job_id: JobId) -> SimulatedJob:
    """Returns a job of chains, fan-outs and joins, with all kinds of edges; bounded, unbounded or
    reading splits; failing or not; with any restart strategy."""
    unbounded = chance.random() < 0.3
    builder = JobBuilder(job_id, configuration=_configuration(chance))
    groups = ["default"] if chance.random() < 0.75 else ["default", "other"]
    share = chance.random()
    # some exchanges block, or all do, as in BATCH mode
    blocking = share < 0.15 and not unbounded
    batch = share < 0.08
    widest = chance.choice((1, 2, 2, 3, 4))
    same = chance.random() < 0.4  # all vertices have the same parallelism
    vertices: list[JobVertex] = []
    for number in range(chance.choice((1, 2, 2, 3, 3, 4, 5))):
        parallelism = widest if same else chance.randint(1, widest)
        inputs = [
            (vertex, chance.choice(list(DistributionPattern)))
            for vertex in _producers(chance, vertices)
        ]
        splits = (
            chance.randint(0, 6) if not inputs and not unbounded and chance.random() < 0.5 else None
        )
        kind = (
            ResultPartitionType.BLOCKING
            if blocking and (chance.random() < 0.5 or batch)
            else ResultPartitionType.PIPELINED
        )
        builder.vertex(
            parallelism,
            inputs,
            _behaviour(chance, parallelism, unbounded),
            group=chance.choice(groups),
            splits=splits,
            partition_type=kind,
        )
        vertices.append(builder.graph.vertices[number])
    if same and chance.random() < 0.3 and len(groups) == 1:
        for vertex in vertices:
            vertex.co_location_group = "together"
    cancel = unbounded or chance.random() < 0.15
    return SimulatedJob(
        builder.build(), 10 * chance.random(), 15 * chance.random() if cancel else None
    )


def _producers(chance: random.Random, vertices: list[JobVertex]) -> list[JobVertex]:
    """Returns the producers of a vertex: none (another source), one (a chain or a fan-out) or two
    (a join)."""
    if not vertices or chance.random() < 0.15:
        return []
    return chance.sample(vertices, min(len(vertices), chance.choice((1, 1, 2))))


def _behaviour(chance: random.Random, parallelism: int, unbounded: bool) -> TaskBehaviour:
    pick: Callable[[tuple[int, ...]], int] = chance.choice
    failures = pick((1, 1, 2, 5)) if chance.random() < 0.15 else 0
    run_s = None if unbounded else chance.choice((0.0, 0.1, 1.0, 5.0)) * chance.random()
    return TaskBehaviour(run_s, 0.05 * chance.random(), chance.randrange(parallelism), failures)


def _configuration(chance: random.Random) -> dict[str, Any]:
    strategy = chance.choice(("pipelined-region", "pipelined-region", "eager", "lazy-from-sources"))
    restart = chance.choice(
        (
            {},
            {
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": chance.choice((1, 3, 10)),
                "restart-strategy.fixed-delay.delay": f"{chance.choice((0, 100, 1000))} ms",
            },
            {
                "restart-strategy.type": "exponential-delay",
                "restart-strategy.exponential-delay.initial-backoff": "100 ms",
                "restart-strategy.exponential-delay.max-backoff": "5 s",
                "restart-strategy.exponential-delay.attempts-before-reset-backoff": 8,
            },
        )
    )
    return {"jobmanager.scheduler.strategy": strategy, **restart}
