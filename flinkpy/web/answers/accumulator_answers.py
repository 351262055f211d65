"""The accumulators of the program's functions: of a job, a vertex, its subtasks, and one
attempt."""

from __future__ import annotations

from typing import Any

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo, SubtaskInfo, VertexInfo
from flinkpy.actors.gateways import JobMetrics
from flinkpy.core.ids import ExecutionAttemptId, JobVertexId
from flinkpy.metrics.shown_accumulators import Shown, shown
from flinkpy.web.answers.states import endpoint_of


def of_job(metrics: JobMetrics) -> dict[str, Any]:
    return {
        "job-accumulators": [],
        "user-task-accumulators": _listed(shown(metrics.accumulators)),
        "serialized-user-task-accumulators": {},
    }


def of_vertex(vertex: VertexInfo, metrics: JobMetrics) -> dict[str, Any]:
    """Merged over the subtasks."""
    return {
        "id": vertex.vertex_id,
        "user-accumulators": _listed(metrics.of_vertices.get(JobVertexId(vertex.vertex_id), ())),
    }


def of_subtasks(job: ExecutionGraphInfo, vertex: VertexInfo, metrics: JobMetrics) -> dict[str, Any]:
    """The accumulators of each subtask's current attempt."""
    return {
        "id": vertex.vertex_id,
        "parallelism": len(vertex.subtasks),
        "subtasks": [
            {
                "subtask": each.index,
                "attempt": each.attempt,
                "endpoint": endpoint_of(each.location),
                "user-accumulators": _listed(
                    metrics.of_attempts.get(_attempt_id(job, vertex, each), ())
                ),
            }
            for each in vertex.subtasks
        ],
    }


def of_attempt(
    job: ExecutionGraphInfo, vertex: VertexInfo, attempt: SubtaskInfo, metrics: JobMetrics
) -> dict[str, Any]:
    attempt_id = _attempt_id(job, vertex, attempt)
    return {
        "subtask": attempt.index,
        "attempt": attempt.attempt,
        "id": f"{vertex.vertex_id}_{attempt.index}_{attempt.attempt}",
        "user-accumulators": _listed(metrics.of_attempts.get(attempt_id, ())),
    }


def _attempt_id(
    job: ExecutionGraphInfo, vertex: VertexInfo, attempt: SubtaskInfo
) -> ExecutionAttemptId:
    return ExecutionAttemptId(
        job.job_id, JobVertexId(vertex.vertex_id), attempt.index, attempt.attempt
    )


def _listed(accumulators: Shown) -> list[dict[str, str]]:
    return [{"name": each.name, "type": each.kind, "value": each.text} for each in accumulators]
