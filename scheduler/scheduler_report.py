"""What the scheduler reports of its job: frozen values, made on demand."""

from __future__ import annotations

from dataclasses import dataclass, field

from flinkpy.core.ids import ExecutionAttemptId, JobVertexId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.graph.deployment import TaskManagerLocation
from flinkpy.scheduler.checkpointing.checkpoint_statistics import (
    CheckpointsReport,
    CheckpointSummary,
)
from flinkpy.scheduler.execution_graph import ExecutionGraph
from flinkpy.scheduler.execution_model import Execution


@dataclass(frozen=True)
class VertexSummary:
    """One job vertex: how many of its current attempts are in which state (states without any are
    absent)."""

    vertex_id: JobVertexId
    name: str
    parallelism: int
    states: dict[ExecutionState, int]


@dataclass(frozen=True)
class ExecutionSummary:
    """One attempt."""

    attempt_id: ExecutionAttemptId
    name: str
    state: ExecutionState
    location: TaskManagerLocation | None
    failure: str  # why it has failed, in words
    # monotonic seconds at which it entered each state that it has been in
    entered: dict[ExecutionState, float]


@dataclass(frozen=True)
class FailureRecord:
    """One failure of the past. ``restarted`` says whether the job survived it; ``concurrent`` are
    failures of other subtasks that the same restart, or the same end of the job, has dealt with:
    the first few."""

    at: float  # monotonic seconds
    subtask: str  # empty: the failure came from outside the tasks
    error: BaseException
    restarted: bool
    attempt_id: ExecutionAttemptId | None = None
    location: TaskManagerLocation | None = None  # where the attempt ran
    concurrent: tuple[FailureRecord, ...] = ()


@dataclass(frozen=True)
class SchedulerDetails:
    """The job as a whole. ``failures`` holds the latest few, oldest first."""

    state: JobState
    error: BaseException | None
    vertices: tuple[VertexSummary, ...]
    restarts: int
    slots: int
    slots_requested: int
    failures: tuple[FailureRecord, ...] = ()
    checkpoints: CheckpointSummary = field(default_factory=CheckpointSummary)


@dataclass(frozen=True)
class EventSummary:
    """One event that the scheduler handled, in words, and the kinds of the commands that it
    answered with. ``details`` may name secrets."""

    at: float  # monotonic seconds
    kind: str
    details: str
    commands: tuple[str, ...]


@dataclass(frozen=True)
class SchedulerReport:
    """All there is to tell of the job. ``attempts``: of every subtask, by vertex in topological
    order, the current attempt and behind it the latest that ended before, the newest first.
    ``events``: the latest that the scheduler was given, oldest first."""

    details: SchedulerDetails
    attempts: tuple[tuple[ExecutionSummary, ...], ...]
    checkpoints: CheckpointsReport = field(default_factory=CheckpointsReport)
    events: tuple[EventSummary, ...] = ()


def vertex_summaries(graph: ExecutionGraph) -> tuple[VertexSummary, ...]:
    return tuple(
        VertexSummary(
            job_vertex.vertex.id,
            job_vertex.vertex.name,
            job_vertex.vertex.parallelism,
            {state: count for state, count in job_vertex.counts.items() if count},
        )
        for job_vertex in graph.job_vertices.values()
    )


def execution_summary(execution: Execution) -> ExecutionSummary:
    error = execution.error
    failure = execution.failure if error is None else f"{type(error).__name__}: {error}"
    return ExecutionSummary(
        execution.attempt_id,
        str(execution.vertex),
        execution.state,
        execution.location,
        failure,
        dict(execution.entered),
    )
