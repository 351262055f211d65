"""One vertex: its subtasks, their times, where they run, how busy they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo, SubtaskInfo, VertexInfo
from flinkpy.core.lifecycles import EXECUTION, ExecutionState
from flinkpy.web.answers.states import (
    UNKNOWN,
    counters,
    counts_by_state,
    endpoint_of,
    span,
    state_of,
    statistics_of,
    task_manager_of,
    times,
)

OK_BELOW, HIGH_ABOVE = 0.1, 0.5  # shares of time in back-pressure, as Flink's levels
_TIMED = tuple(
    state.name
    for state in (
        ExecutionState.CREATED,
        ExecutionState.SCHEDULED,
        ExecutionState.DEPLOYING,
        ExecutionState.INITIALIZING,
        ExecutionState.RUNNING,
    )
)


def details(job: ExecutionGraphInfo, vertex: VertexInfo) -> dict[str, Any]:
    return {
        "id": vertex.vertex_id,
        "name": vertex.name,
        "parallelism": len(vertex.subtasks),
        "maxParallelism": vertex.max_parallelism,
        "now": job.at_ms,
        "subtasks": [attempt(subtask, job.at_ms) for subtask in vertex.subtasks],
        "aggregated": _aggregated(vertex.subtasks, job.at_ms),
    }


def _aggregated(subtasks: Sequence[SubtaskInfo], at_ms: int) -> dict[str, Any]:
    """Statistics over the subtasks: of their counters, and of how long they were in the states in
    which they begin and run."""
    metrics = [counters([each]) for each in subtasks]
    durations = [_durations(each, at_ms) for each in subtasks]
    return {
        "metrics": {
            name: statistics_of([each[name] for each in metrics])
            for name in counters([])
            if not name.endswith("-complete")
        },
        "status-duration": {
            state: statistics_of([each[state] for each in durations if each[state] != UNKNOWN])
            for state in _TIMED
        },
    }


def attempt(subtask: SubtaskInfo, at_ms: int) -> dict[str, Any]:
    """One attempt of a subtask: the current one, or one that has ended before it."""
    times_of = span([subtask], at_ms)
    return {
        "subtask": subtask.index,
        "status": subtask.state.name,
        "attempt": subtask.attempt,
        "endpoint": endpoint_of(subtask.location),
        **times_of,
        "start_time": times_of["start-time"],
        "metrics": counters([subtask]),
        "taskmanager-id": task_manager_of(subtask.location),
        "status-duration": _durations(subtask, at_ms),
        "other-concurrent-attempts": [],
    }


def _durations(subtask: SubtaskInfo, at_ms: int) -> dict[str, int]:
    """How long it was in each state that it has passed, and is in; -1 for those in which it begins
    and runs, if it has not been there."""
    entered = sorted(subtask.entered_ms.items(), key=lambda each: each[1])
    until = [at for _, at in entered[1:]] + [
        entered[-1][1] if EXECUTION.is_terminal(subtask.state) else at_ms
    ]
    return {
        **dict.fromkeys(_TIMED, UNKNOWN),
        **{state.name: end - start for (state, start), end in zip(entered, until)},
    }


def subtask_times(job: ExecutionGraphInfo, vertex: VertexInfo) -> dict[str, Any]:
    return {
        "id": vertex.vertex_id,
        "name": vertex.name,
        "now": job.at_ms,
        "subtasks": [
            {
                "subtask": each.index,
                "endpoint": endpoint_of(each.location),
                "duration": span([each], job.at_ms)["duration"],
                "timestamps": times(ExecutionState, each.entered_ms),
            }
            for each in vertex.subtasks
        ],
    }


def attempts(job: ExecutionGraphInfo, vertex: VertexInfo) -> dict[str, Any]:
    """Each subtask's current attempt and the latest of those before it, the newest first: when each
    entered its states, and why it failed."""
    return {
        "id": vertex.vertex_id,
        "name": vertex.name,
        "now": job.at_ms,
        "subtasks": [
            {
                "subtask": each.index,
                "attempts": [_attempt_times(attempt) for attempt in (each, *each.earlier)],
            }
            for each in vertex.subtasks
        ],
    }


def _attempt_times(attempt: SubtaskInfo) -> dict[str, Any]:
    return {
        "attempt": attempt.attempt,
        "status": attempt.state.name,
        "endpoint": endpoint_of(attempt.location),
        "taskmanager-id": task_manager_of(attempt.location),
        "timestamps": times(ExecutionState, attempt.entered_ms),
        "failure": attempt.failure or None,
    }


def task_managers(job: ExecutionGraphInfo, vertex: VertexInfo) -> dict[str, Any]:
    """The subtasks of each TaskExecutor together."""
    found: dict[tuple[str, str], list[SubtaskInfo]] = {}
    for subtask in vertex.subtasks:
        found.setdefault(
            (task_manager_of(subtask.location), endpoint_of(subtask.location)), []
        ).append(subtask)
    return {
        "id": vertex.vertex_id,
        "name": vertex.name,
        "now": job.at_ms,
        "taskmanagers": [
            {
                "endpoint": endpoint,
                "taskmanager-id": resource_id,
                "status": state_of(subtasks).name,
                **span(subtasks, job.at_ms),
                "metrics": counters(subtasks),
                "status-counts": counts_by_state(each.state for each in subtasks),
                "aggregated": _aggregated(subtasks, job.at_ms),
            }
            for (resource_id, endpoint), subtasks in found.items()
        ],
    }


def back_pressure(job: ExecutionGraphInfo, vertex: VertexInfo) -> dict[str, Any]:
    """The shares of the last seconds in which subtasks were held up by those behind them, idle, and
    busy."""
    subtasks = [_pressure(subtask) for subtask in vertex.subtasks]
    worst = max((each["ratio"] for each in subtasks), default=0.0)
    return {
        "status": "ok",
        "backpressureLevel": _level(worst),
        "backpressure-level": _level(worst),
        "end-timestamp": job.at_ms,
        "subtasks": subtasks,
    }


def _pressure(subtask: SubtaskInfo) -> dict[str, Any]:
    busy, back_pressured, idle = subtask.shares
    ratio = back_pressured / 1000
    return {
        "subtask": subtask.index,
        "attempt-number": subtask.attempt,
        "backpressureLevel": _level(ratio),
        "backpressure-level": _level(ratio),
        "ratio": ratio,
        "idleRatio": idle / 1000,
        "busyRatio": busy / 1000,
        "other-concurrent-attempts": [],
    }


def _level(ratio: float) -> str:
    return "ok" if ratio <= OK_BELOW else "low" if ratio <= HIGH_ABOVE else "high"


def loads(job: ExecutionGraphInfo) -> dict[str, Any]:
    """How busy the busiest subtask of each vertex is, and how held up the one that is most: what a
    page draws the graph from, in one answer."""
    return {
        "jid": job.job_id,
        "now": job.at_ms,
        "vertices": [
            {
                "id": vertex.vertex_id,
                "busyTimeMsPerSecond": max(
                    (each.shares.busy for each in vertex.subtasks), default=0
                ),
                "backPressuredTimeMsPerSecond": max(
                    (each.shares.back_pressured for each in vertex.subtasks), default=0
                ),
            }
            for vertex in job.vertices
        ],
    }


def resource_requirements(job: ExecutionGraphInfo) -> dict[str, Any]:
    """How many subtasks each vertex may have: as many as it has."""
    return {
        vertex.vertex_id: {
            "parallelism": {"lowerBound": len(vertex.subtasks), "upperBound": len(vertex.subtasks)}
        }
        for vertex in job.vertices
    }
