"""Jobs: the overview, one job, its plan, its exceptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import md5
from typing import Any

from flinkpy.actors.execution_graph_info import (
    ExecutionGraphInfo,
    FailureInfo,
    VertexInfo,
    summary_of,
)
from flinkpy.actors.gateways import JobOverview
from flinkpy.core.lifecycles import JOB, JobState
from flinkpy.core.options.engine import OBJECT_REUSE, RUNTIME_MODE, RuntimeMode
from flinkpy.core.options.schema import read
from flinkpy.scheduler.restart import SchedulerConfig
from flinkpy.web.answers.java_exceptions import failure_cause
from flinkpy.web.answers.states import (
    UNKNOWN,
    counters,
    counts_by_state,
    endpoint_of,
    span,
    state_of,
    times,
)

SCHEDULER = "Default"  # Flink has this one, Adaptive and AdaptiveBatch
_RESULTS = {
    JobState.FINISHED: "SUCCEEDED",
    JobState.FAILED: "FAILED",
    JobState.CANCELED: "CANCELED",
}
EXCEPTIONS = 20  # shown of a job, unless more are asked for


def overview(jobs: Iterable[JobOverview], now_ms: int) -> dict[str, Any]:
    return {"jobs": [_overview(job, now_ms) for job in jobs]}


def _overview(job: JobOverview, now_ms: int) -> dict[str, Any]:
    end_ms = UNKNOWN if job.end_ms is None else job.end_ms
    return {
        "jid": job.job_id,
        "name": job.name,
        "state": job.state.name,
        "start-time": job.start_ms,
        "end-time": end_ms,
        "duration": (now_ms if job.end_ms is None else job.end_ms) - job.start_ms,
        "last-modification": job.start_ms if job.end_ms is None else job.end_ms,
        "tasks": counts_by_state(job.tasks, with_total=True),
        "schedulerType": SCHEDULER,
        "pending-operators": 0,
        # these two are not in Flink
        "restarts": job.restarts,
        "last-failure": _last_failure(job.failed_ms, job.failure),
    }


def _last_failure(at_ms: int | None, summary: str) -> dict[str, Any] | None:
    return None if at_ms is None else {"timestamp": at_ms, "summary": summary}


def ids_and_states(jobs: Iterable[JobOverview]) -> dict[str, Any]:
    return {"jobs": [{"id": job.job_id, "status": job.state.name} for job in jobs]}


def details(job: ExecutionGraphInfo) -> dict[str, Any]:
    end_ms = UNKNOWN if job.end_ms is None else job.end_ms
    return {
        "jid": job.job_id,
        "name": job.name,
        "isStoppable": not JOB.is_terminal(job.state),
        "state": job.state.name,
        "job-type": _type(job),
        "schedulerType": SCHEDULER,
        "start-time": job.start_ms,
        "end-time": end_ms,
        "duration": (job.at_ms if job.end_ms is None else job.end_ms) - job.start_ms,
        "maxParallelism": max((vertex.max_parallelism for vertex in job.vertices), default=UNKNOWN),
        "now": job.at_ms,
        "timestamps": times(JobState, job.entered_ms),
        "vertices": [_vertex(vertex, job.at_ms) for vertex in job.vertices],
        "status-counts": counts_by_state(state_of(vertex.subtasks) for vertex in job.vertices),
        "plan": _plan(job),
        "pending-operators": 0,
        "restarts": job.restarts,  # this and the next one are not in Flink
        "last-failure": _last_failure(last.at_ms, summary_of(last.error_class, last.message))
        if (last := _last(job))
        else None,
    }


def _last(job: ExecutionGraphInfo) -> FailureInfo | None:
    return job.failures[-1] if job.failures else None


def _vertex(vertex: VertexInfo, at_ms: int) -> dict[str, Any]:
    return {
        "id": vertex.vertex_id,
        "slotSharingGroupId": _group_id(vertex),
        "name": vertex.name,
        "maxParallelism": vertex.max_parallelism,
        "parallelism": len(vertex.subtasks),
        "status": state_of(vertex.subtasks).name,
        **span(vertex.subtasks, at_ms),
        "tasks": counts_by_state(subtask.state for subtask in vertex.subtasks),
        "metrics": counters(vertex.subtasks),
    }


def _group_id(vertex: VertexInfo) -> str:
    """Flink's groups have ids of 32 digits, ours have names."""
    return md5(vertex.slot_sharing_group.encode(), usedforsecurity=False).hexdigest()


def _type(job: ExecutionGraphInfo) -> str:
    """STREAMING or BATCH."""
    mode: RuntimeMode = read(job.configuration, RUNTIME_MODE)
    return mode.value


def plan(job: ExecutionGraphInfo) -> dict[str, Any]:
    return {"plan": _plan(job)}


def _plan(job: ExecutionGraphInfo) -> dict[str, Any]:
    return {
        "jid": job.job_id,
        "name": job.name,
        "type": _type(job),
        "nodes": [
            {
                "id": vertex.vertex_id,
                "parallelism": len(vertex.subtasks),
                "operator": "",
                "operator_strategy": "",
                "description": vertex.name,
                "inputs": [
                    {
                        "num": number,
                        "id": each.producer,
                        "ship_strategy": each.ship_strategy,
                        "exchange": each.exchange.lower(),
                    }
                    for number, each in enumerate(vertex.inputs)
                ],
                "optimizer_properties": {},
            }
            for vertex in job.vertices
        ],
    }


def config(job: ExecutionGraphInfo, shown: Mapping[str, str]) -> dict[str, Any]:
    """``shown`` is the job's configuration without secrets."""
    return {
        "jid": job.job_id,
        "name": job.name,
        "execution-config": {
            "restart-strategy": SchedulerConfig.of(job.configuration).restart_in_words(),
            "job-parallelism": max((len(vertex.subtasks) for vertex in job.vertices), default=1),
            "object-reuse-mode": bool(read(job.configuration, OBJECT_REUSE)),
            "user-config": dict(shown),
        },
    }


def exceptions(job: ExecutionGraphInfo, most: int = EXCEPTIONS) -> dict[str, Any]:
    """The newest first; and, which Flink does not tell, what the job's scheduler was given last and
    what it decided, oldest first."""
    failures = list(reversed(job.failures))
    entries = [
        {**_failure(each), "concurrentExceptions": [_failure(other) for other in each.concurrent]}
        for each in failures[:most]
    ]
    return {
        "exceptionHistory": {"entries": entries, "truncated": len(failures) > most},
        "scheduler-events": [
            {
                "timestamp": each.at_ms,
                "event": each.kind,
                "details": each.details,
                "commands": list(each.commands),
            }
            for each in job.scheduler_events
        ],
    }


def _failure(failure: FailureInfo) -> dict[str, Any]:
    return {
        "exceptionName": failure.error_class,
        "stacktrace": _text(failure),
        "timestamp": failure.at_ms,
        "taskName": failure.subtask or None,
        "endpoint": None if failure.location is None else endpoint_of(failure.location),
        "taskManagerId": None if failure.location is None else failure.location.resource_id,
        "failureLabels": {},
    }


def _text(failure: FailureInfo) -> str:
    return f"{failure.error_class}: {failure.message}"


def execution_result(job: ExecutionGraphInfo) -> dict[str, Any]:
    """How the job ended, once it has. Its accumulators have a route of their own: here Flink writes
    them in a form of Java's."""
    if job.end_ms is None:
        return {"status": {"id": "IN_PROGRESS"}}
    result: dict[str, Any] = {
        "id": job.job_id,
        "application-status": _RESULTS.get(job.state, "UNKNOWN"),
        "accumulator-results": {},
        "net-runtime": job.end_ms - job.start_ms,
    }
    if job.state is JobState.FAILED and job.failures:
        result["failure-cause"] = failure_cause(
            job.failures[-1].error_class, job.failures[-1].message
        )
    return {"status": {"id": "COMPLETED"}, "job-execution-result": result}
