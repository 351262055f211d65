"""The execution plan of a job: how its job graph runs at its present parallelism.

The graph of subtasks, the regions they fail in, the strategy that schedules them and what each
starts from belong together: all are made from one job graph, and another parallelism needs all of
them anew. So they are one value, which is replaced as a whole. What outlives a plan is not in it:
slots, restarts, checkpoints, the job's state.

The scheduler's other parts share one ``CurrentPlan`` and read the plan from it with each event.
Rejected: every part keeps a reference to its piece of the plan and is handed the new one. Then a
part that is forgotten decides by a graph that no longer runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from flinkpy.core.errors import EngineError, SavepointRestoreError
from flinkpy.core.ids import JobVertexId
from flinkpy.core.options.engine import RUNTIME_MODE, RuntimeMode, SchedulingStrategyKind
from flinkpy.core.options.schema import read
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.checkpointing.checkpoint_stats_tracker import CheckpointStatsTracker
from flinkpy.scheduler.checkpointing.completed_checkpoint_store import CompletedCheckpointStore
from flinkpy.scheduler.checkpointing.state_assignment import StateAssignment, check_restorable
from flinkpy.scheduler.execution_graph import ExecutionGraph
from flinkpy.scheduler.execution_model import PipelinedRegion
from flinkpy.scheduler.planning.regions import compute_regions
from flinkpy.scheduler.planning.strategies import (
    EagerStrategy,
    SchedulingStrategy,
    scheduling_strategy,
)
from flinkpy.scheduler.restart import ATTEMPTS_OF_A_GENERATION, SchedulerConfig


@dataclass(frozen=True)
class ExecutionPlan:
    """``graph`` has the subtasks and their attempts, ``regions`` those that fail together,
    ``strategy`` says when they are scheduled, and ``states`` what they start from."""

    graph: ExecutionGraph
    regions: list[PipelinedRegion]
    strategy: SchedulingStrategy
    states: StateAssignment

    @property
    def job_graph(self) -> JobGraph:
        return self.graph.job_graph

    @property
    def runs_in_parts(self) -> bool:
        """Whether the job makes progress with any number of slots: no bulk needs more than one, and
        all results between bulks are blocking."""
        # a single vertex alone does not show that it is a batch job
        is_batch = (
            any(True for _ in self.graph.results)
            or read(self.job_graph.configuration, RUNTIME_MODE) is RuntimeMode.BATCH
        )
        return (
            is_batch
            and not isinstance(self.strategy, EagerStrategy)
            and all(len(region.vertices) == 1 for region in self.regions)
        )


class CurrentPlan:
    """The plan that the job runs by now (``plan``), and the job graph that is to take its place."""

    def __init__(
        self,
        job_graph: JobGraph,
        config: SchedulerConfig,
        completed: CompletedCheckpointStore,
        statistics: CheckpointStatsTracker,
    ) -> None:
        self._config = config
        self._completed = completed
        self._statistics = statistics
        self._next: JobGraph | None = None
        self.plan = self._plan_of(job_graph, config.generation * ATTEMPTS_OF_A_GENERATION)

    @property
    def graph(self) -> ExecutionGraph:
        return self.plan.graph

    @property
    def job_graph(self) -> JobGraph:
        return self.plan.graph.job_graph

    @property
    def strategy(self) -> SchedulingStrategy:
        return self.plan.strategy

    @property
    def states(self) -> StateAssignment:
        return self.plan.states

    @property
    def awaits_replacement(self) -> bool:
        """Whether another plan takes this one's place as soon as the whole job restarts."""
        return self._next is not None

    def decide(self, parallelism: Mapping[JobVertexId, int]) -> None:
        """The job is to run at this parallelism, from its next (re)start on. The latest decision
        counts; vertices that it does not name stay as they are now."""
        self._next = at_parallelism(self.job_graph, parallelism)

    def replace(self, now: float) -> bool:
        """Takes the plan that was decided, if there is one; answers whether it did. No attempt of
        the old plan may be alive. A plan that the latest checkpoint cannot be restored to, because
        of records that were in flight, waits for another checkpoint."""
        job_graph, latest = self._next, self._completed.latest
        if job_graph is None:
            return False
        try:
            if latest is not None:
                check_restorable(latest, job_graph, allow_non_restored=True)
        except SavepointRestoreError:
            return False
        old = self.graph
        self.plan = self._plan_of(job_graph, old.next_attempt)
        self.graph.succeed(old, now)
        self._next = None
        return True

    def _plan_of(self, job_graph: JobGraph, first_attempt: int) -> ExecutionPlan:
        kind = self._config.strategy
        graph = ExecutionGraph(job_graph, first_attempt, self._config.attempts_kept)
        regions = compute_regions(graph, bind_all=kind is SchedulingStrategyKind.EAGER)
        strategy = scheduling_strategy(kind, graph, regions)
        states = StateAssignment(graph, self._completed, self._statistics)
        return ExecutionPlan(graph, regions, strategy, states)


def at_parallelism(job_graph: JobGraph, parallelism: Mapping[JobVertexId, int]) -> JobGraph:
    """The same job with other numbers of subtasks. Raises EngineError for numbers that cannot be,
    with the reason: whoever decides on a parallelism asks the job graph first."""
    names = {vertex.id for vertex in job_graph.vertices}
    unknown = [str(vertex_id) for vertex_id in parallelism if vertex_id not in names]
    if unknown:
        raise EngineError(f"job {job_graph.name!r} has no vertices {', '.join(unknown)}")
    widened = replace(
        job_graph,
        vertices=[
            replace(vertex, parallelism=parallelism.get(vertex.id, vertex.parallelism))
            for vertex in job_graph.vertices
        ],
    )
    widths = {vertex.id: vertex.parallelism for vertex in widened.vertices}
    co_located: dict[str, int] = {}
    for vertex in widened.vertices:
        if not 1 <= vertex.parallelism <= vertex.max_parallelism:
            raise EngineError(
                f"{vertex.name!r} cannot have {vertex.parallelism} subtasks: its max parallelism "
                f"is {vertex.max_parallelism}"
            )
        if vertex.co_location_group is not None:
            width = co_located.setdefault(vertex.co_location_group, vertex.parallelism)
            if width != vertex.parallelism:
                raise EngineError(
                    f"{vertex.name!r} is co-located with a vertex of another parallelism"
                )
        for edge in vertex.inputs:
            if edge.ship_strategy == "FORWARD" and (
                widths[edge.data_set.producer] != vertex.parallelism
            ):
                raise EngineError(
                    f"{vertex.name!r} reads a FORWARD edge, whose ends have one parallelism"
                )
    return widened
