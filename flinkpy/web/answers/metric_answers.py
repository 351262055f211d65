"""Metrics under Flink's names. Without ``get`` a route lists the names, with it their values, as
Flink's do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from statistics import fmean
from typing import Any

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo, SubtaskInfo
from flinkpy.actors.gateways import ClusterOverview
from flinkpy.core.lifecycles import JOB, JobState
from flinkpy.metrics.readings import TaskReading, Value, flat
from flinkpy.web.answers.states import UNKNOWN


def skew(numbers: list[float]) -> float:
    """How unequal they are: the mean distance from their mean, in percent of that; at most 100.

    >>> skew([5, 5]), skew([0, 10])
    (0.0, 100.0)
    """
    mean = fmean(numbers)
    return (
        min(100.0, 100 * fmean(abs(number - mean) for number in numbers) / abs(mean))
        if mean
        else 0.0
    )


AGGREGATES: Mapping[str, Callable[[list[float]], float]] = {
    "min": min,
    "max": max,
    "sum": sum,
    "avg": fmean,
    "skew": skew,
}
_JAVA_ONLY = (
    "Status.JVM.Memory.Metaspace.Used",
    "Status.JVM.Memory.Metaspace.Max",
    "Status.JVM.Memory.NonHeap.Used",
    "Status.JVM.Memory.NonHeap.Committed",
    "Status.JVM.Memory.NonHeap.Max",
    "Status.JVM.Memory.Direct.Count",
    "Status.JVM.Memory.Direct.MemoryUsed",
    "Status.JVM.Memory.Direct.TotalCapacity",
    "Status.JVM.Memory.Mapped.Count",
    "Status.JVM.Memory.Mapped.MemoryUsed",
    "Status.JVM.Memory.Mapped.TotalCapacity",
    "Status.Flink.Memory.Managed.Used",
    "Status.Flink.Memory.Managed.Total",
)
# as Flink replaces it: commas divide the names of a request
_IN_NAME = str.maketrans({" ": "_", ":": "_", ",": "_", '"': None})
_IN_OPERATOR = _IN_NAME | str.maketrans({".": "_"})


def of_cluster(overview: ClusterOverview) -> dict[str, float]:
    return {
        "numRegisteredTaskManagers": overview.task_executors,
        "numRunningJobs": overview.jobs_running,
        "taskSlotsTotal": overview.slots_total,
        "taskSlotsAvailable": overview.slots_free,
    }


def as_of_java(values: Mapping[str, Value], physical_memory: int) -> dict[str, Value]:
    """The metrics of a process under the names of the Java machine, which Flink's page asks for:
    its memory is the heap. What only a Java machine has is 0. They are not among the names that are
    listed."""
    heap = values.get("Status.Python.Memory.RSS", 0)
    return {
        "Status.JVM.Memory.Heap.Used": heap,
        "Status.JVM.Memory.Heap.Committed": heap,
        "Status.JVM.Memory.Heap.Max": physical_memory,
        "Status.JVM.CPU.Time": values.get("Status.Python.CPU.Time", 0),
        "Status.JVM.Threads.Count": values.get("Status.Python.Threads.Count", 0),
        **dict.fromkeys(_JAVA_ONLY, 0),
        **values,
    }


def of_job(job: ExecutionGraphInfo) -> dict[str, float]:
    since = job.at_ms - job.entered_ms.get(job.state, job.start_ms)
    is_running, checkpoints = job.state is JobState.RUNNING, job.checkpoint_history
    uptime, latest = since if is_running else 0, checkpoints.latest_complete
    latest_id = job.checkpoints.latest_id if latest is None else latest.checkpoint_id
    return {
        "uptime": uptime,
        "runningTime": uptime,
        "downtime": 0 if is_running else -1 if JOB.is_terminal(job.state) else since,
        "numRestarts": job.restarts,
        "fullRestarts": job.restarts,
        "numberOfCompletedCheckpoints": checkpoints.completed,
        "numberOfFailedCheckpoints": checkpoints.failed,
        "numberOfInProgressCheckpoints": checkpoints.in_progress,
        "totalNumberOfCheckpoints": checkpoints.completed
        + checkpoints.failed
        + checkpoints.in_progress,
        "lastCompletedCheckpointId": UNKNOWN if latest_id is None else latest_id,
        "lastCheckpointDuration": UNKNOWN if latest is None else latest.duration_ms,
        "lastCheckpointSize": UNKNOWN if latest is None else latest.written,
        "lastCheckpointFullSize": UNKNOWN if latest is None else latest.state_size,
    }


def of_subtask(subtask: SubtaskInfo, *readings: TaskReading) -> dict[str, Value]:
    """Its own metrics, and behind the name of the operator those of its operators: of the first
    reading of its current attempt. Without one, as that is new, what the JobMaster knows of it."""
    for reading in readings:
        if reading.attempt_id.attempt == subtask.attempt:
            return {**reading.flat_values(), **_of_operators(reading)}
    busy, back_pressured, idle = subtask.shares
    return {
        "numRecordsIn": subtask.records_in,
        "numRecordsOut": subtask.records_out,
        "busyTimeMsPerSecond": busy,
        "backPressuredTimeMsPerSecond": back_pressured,
        "idleTimeMsPerSecond": idle,
        "accumulateBusyTimeMs": subtask.busy_ms,
        "accumulateBackPressuredTimeMs": subtask.back_pressured_ms,
        "accumulateIdleTimeMs": subtask.idle_ms,
    }


def _of_operators(reading: TaskReading) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for operator in reading.operators:
        prefix = operator.name.translate(_IN_OPERATOR)
        found |= {f"{prefix}.{name}": value for name, value in operator.values.items()}
        for own in operator.own:
            found |= {
                f"{prefix}.{told.translate(_IN_NAME)}": number
                for told, number in flat(own.name, own.kind, own.value)
            }
    return found


def of_vertex(each: Iterable[tuple[SubtaskInfo, Mapping[str, Value]]]) -> dict[str, Value]:
    """Those of each subtask, behind its number: ``0.numRecordsIn``."""
    return {
        f"{subtask.index}.{name}": value
        for subtask, values in each
        for name, value in values.items()
    }


def watermarks(each: Iterable[tuple[SubtaskInfo, Mapping[str, Value]]]) -> list[dict[str, str]]:
    """The input watermark of each subtask; none of sources."""
    name = "currentInputWatermark"
    return [
        {"id": f"{subtask.index}.{name}", "value": str(values[name])}
        for subtask, values in each
        if name in values
    ]


def lowest_watermarks(
    vertices: Iterable[tuple[str, Iterable[Mapping[str, Value]]]],
) -> list[dict[str, Any]]:
    """The watermark of each vertex: that of the subtask furthest behind, as it holds up all those
    after it. None for sources, and where no subtask has reported one."""
    name = "currentInputWatermark"
    found = []
    for vertex_id, subtasks in vertices:
        told = [values[name] for values in subtasks if isinstance(values.get(name), int)]
        found.append({"id": vertex_id, "lowest": min(told, default=None)})
    return found


def listed(values: Mapping[str, Any], get: str | None) -> list[dict[str, str]]:
    """The names, or the values of those that ``get`` names, with commas between; names that are not
    there are left out."""
    if get is None:
        return [{"id": name} for name in values]
    return [{"id": name, "value": str(values[name])} for name in get.split(",") if name in values]


def chosen(
    told: list[dict[str, Any]], get: str | None, aggregates: str | None = None
) -> list[dict[str, Any]]:
    """Picks some metrics out of an answer of ``listed`` or ``aggregated`` that has all of them."""
    if get is None:
        return [{"id": each["id"]} for each in told]
    known = {each["id"]: each for each in told}
    found = [known[name] for name in get.split(",") if name in known]
    if aggregates is None:
        return found
    return [
        {key: value for key, value in each.items() if key == "id" or key in aggregates.split(",")}
        for each in found
    ]


def aggregated(
    each: Iterable[Mapping[str, Value]], get: str | None, aggregates: str | None
) -> list[dict[str, Any]]:
    """Over several subtasks, TaskExecutors or jobs, as far as they have the metric; ``aggregates``
    are some of min, max, sum, avg and skew, all of them without it. Raises ValueError for another
    one."""
    wanted = list(AGGREGATES) if aggregates is None else aggregates.split(",")
    unknown = [name for name in wanted if name not in AGGREGATES]
    if unknown:
        raise ValueError(f"agg={','.join(unknown)} is not there: {', '.join(AGGREGATES)}")
    numbers: dict[str, list[float]] = {}
    for values in each:
        for name, value in values.items():
            if isinstance(value, (int, float)):
                numbers.setdefault(name, []).append(value)
    if get is None:
        return [{"id": name} for name in numbers]
    return [
        {"id": name, **{how: _aggregate(how, numbers[name]) for how in wanted}}
        for name in get.split(",")
        if name in numbers
    ]


def _aggregate(how: str, numbers: list[float]) -> float | None:
    """None where it is no number that JSON has, since one of them is NaN, infinite, or too
    large."""
    try:
        found = AGGREGATES[how](numbers)
        return found if isfinite(found) and all(isfinite(number) for number in numbers) else None
    except (OverflowError, ValueError):
        return None
