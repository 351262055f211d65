"""Metrics under Flink's names. Without ``get`` a route lists the names, with it their values, as Flink's do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo, SubtaskInfo, VertexInfo
from flinkpy.core.lifecycles import JobState

AGGREGATES: Mapping[str, Callable[[list[float]], float]] = {"min": min, "max": max, "sum": sum, "avg": fmean}


def of_job(job: ExecutionGraphInfo) -> dict[str, Any]:
    since = job.entered_ms.get(job.state, job.start_ms)
    checkpoints = job.checkpoints
    return {
        "uptime": job.at_ms - since if job.state is JobState.RUNNING else 0, "numRestarts": job.restarts, "fullRestarts": job.restarts,
        "numberOfCompletedCheckpoints": checkpoints.completed, "numberOfFailedCheckpoints": checkpoints.failed,
        "numberOfInProgressCheckpoints": checkpoints.in_progress, "lastCheckpointDuration": round(checkpoints.latest_duration_s * 1000),
        "lastCheckpointSize": checkpoints.latest_size,
    }


def of_subtask(subtask: SubtaskInfo) -> dict[str, float]:
    busy, back_pressured, idle = subtask.shares
    return {
        "numRecordsIn": subtask.records_in, "numRecordsOut": subtask.records_out, "busyTimeMsPerSecond": busy,
        "backPressuredTimeMsPerSecond": back_pressured, "idleTimeMsPerSecond": idle, "accumulateBusyTimeMs": subtask.busy_ms,
        "accumulateBackPressuredTimeMs": subtask.back_pressured_ms, "accumulateIdleTimeMs": subtask.idle_ms,
    }


def of_vertex(vertex: VertexInfo) -> dict[str, float]:
    """Those of each subtask, behind its number: ``0.numRecordsIn``."""
    return {f"{subtask.index}.{name}": value for subtask in vertex.subtasks for name, value in of_subtask(subtask).items()}


def listed(values: Mapping[str, Any], get: str | None) -> list[dict[str, str]]:
    """The names, or the values of those that ``get`` names, with commas between; names that are not there are left out."""
    if get is None:
        return [{"id": name} for name in values]
    return [{"id": name, "value": str(values[name])} for name in get.split(",") if name in values]


def aggregated(vertex: VertexInfo, get: str | None, aggregates: str | None) -> list[dict[str, Any]]:
    """Over the subtasks of a vertex; ``aggregates`` are some of min, max, sum and avg, all of them without it. Raises ValueError for another one."""
    each = [of_subtask(subtask) for subtask in vertex.subtasks]
    names = list(each[0]) if each else []
    if get is None:
        return [{"id": name} for name in names]
    wanted = list(AGGREGATES) if aggregates is None else aggregates.split(",")
    unknown = [name for name in wanted if name not in AGGREGATES]
    if unknown:
        raise ValueError(f"agg={','.join(unknown)} is not there: min, max, sum, avg")
    return [{"id": name, **{how: AGGREGATES[how]([values[name] for values in each]) for how in wanted}} for name in get.split(",") if name in names]
