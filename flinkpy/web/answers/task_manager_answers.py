"""TaskExecutors, as Flink shows its TaskManagers. Whatever only a Java machine has is 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo
from flinkpy.actors.inspector.inspector_gateway import ProcessFigures
from flinkpy.actors.task_executor_info import TaskExecutorInfo
from flinkpy.core.ids import JobId, ResourceId
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.core.options.process_memory import WorkerMemory
from flinkpy.graph.deployment import SlotStatus
from flinkpy.graph.resources import ResourceProfile
from flinkpy.runtime.memory.memory_report import MemoryReport
from flinkpy.web.answers.states import UNKNOWN

MB = 1 << 20
_THERE = (
    ExecutionState.DEPLOYING,
    ExecutionState.INITIALIZING,
    ExecutionState.RUNNING,
    ExecutionState.CANCELING,
)


Tasks: TypeAlias = Mapping[tuple[ResourceId, JobId], int]
"""How many tasks of a job run at a TaskExecutor."""


def tasks_of(jobs: Iterable[ExecutionGraphInfo]) -> Tasks:
    """As the jobs tell."""
    return Counter(
        (subtask.location.resource_id, job.job_id)
        for job in jobs
        for vertex in job.vertices
        for subtask in vertex.subtasks
        if subtask.location is not None and subtask.state in _THERE
    )


def listed(executors: Iterable[TaskExecutorInfo], tasks: Tasks) -> dict[str, Any]:
    return {"taskmanagers": [_summary(executor, tasks) for executor in executors]}


def details(
    executor: TaskExecutorInfo, figures: ProcessFigures | None, tasks: Tasks
) -> dict[str, Any]:
    """Without ``figures`` the process has not answered. Where a job has several slots here, nobody
    knows which of its tasks are in which."""
    taken = [slot for slot in executor.slots if slot.job_id is not None]
    slots = Counter(slot.job_id for slot in taken)
    return {
        **_summary(executor, tasks),
        "metrics": _memory(executor, figures),
        # not in Flink
        "memory": None if figures is None else _used_memory(figures.memory),
        "allocatedSlots": [
            {
                "jobId": slot.job_id,
                "resource": _resources([slot]),
                "assignedTasks": tasks.get((executor.resource_id, slot.job_id), 0)
                if slot.job_id and slots[slot.job_id] == 1
                else UNKNOWN,
            }
            for slot in taken
        ],
    }


def figures(told: Mapping[ResourceId, ProcessFigures]) -> dict[str, Any]:
    """What the processes use, of those that have answered. Flink has no such route."""
    return {
        "taskmanagers": [
            {
                "id": resource_id,
                "at": each.at_ms,
                "rss": each.rss,
                "memoryLimit": each.memory.limit if each.memory else None,
                "cpuSeconds": each.cpu_s,
                "threads": each.threads,
            }
            for resource_id, each in told.items()
        ]
    }


def _summary(executor: TaskExecutorInfo, tasks: Tasks) -> dict[str, Any]:
    process = executor.process
    free = [slot for slot in executor.slots if slot.job_id is None and slot.allocation_id is None]
    return {
        "id": executor.resource_id,
        "path": executor.address,
        "dataPort": executor.data_port,
        "jmxPort": -1,
        "timeSinceLastHeartbeat": executor.heartbeat_ms,  # a moment, in Flink too
        "slotsNumber": len(executor.slots),
        "freeSlots": len(free),
        "assignedTasks": sum(
            count for (place, _), count in tasks.items() if place == executor.resource_id
        ),
        "totalResource": _resources(executor.slots),
        "freeResource": _resources(free),
        "hardware": {
            "cpuCores": process.cpu_cores,
            "physicalMemory": process.physical_memory,
            "freeMemory": process.memory.task_heap + process.memory.framework_heap,
            "managedMemory": process.memory.managed,
        },
        "memoryConfiguration": _parts(process.memory),
        "blocked": False,
        "host": executor.host or process.host,
        "pid": process.pid,
        "registered": executor.registered_ms,
        # these are not in Flink
        "jobs": sorted({slot.job_id for slot in executor.slots if slot.job_id is not None}),
    }


def _parts(memory: WorkerMemory) -> dict[str, int]:
    """The parts of a TaskExecutor's memory under the names that Flink's page knows."""
    return {
        "frameworkHeap": memory.framework_heap,
        "taskHeap": memory.task_heap,
        "frameworkOffHeap": memory.framework_off_heap,
        "taskOffHeap": memory.task_off_heap,
        "networkMemory": memory.network,
        "managedMemory": memory.managed,
        "jvmMetaspace": memory.interpreter,
        "jvmOverhead": memory.overhead,
        "totalFlinkMemory": memory.flink,
        "totalProcessMemory": memory.process,
    }


def _used_memory(memory: MemoryReport | None) -> dict[str, Any] | None:
    """What a process has of its memory, and who has it."""
    if memory is None:
        return None
    return {
        "used": memory.used,
        "limit": memory.limit,
        "sourcesRest": memory.sources_rest,
        "managedReserved": memory.managed_reserved,
        "managedTotal": memory.managed_total,
        "owners": [
            {"owner": each.owner, "what": each.what, "size": each.size, "option": each.option}
            for each in memory.largest()
        ],
    }


def _resources(slots: Iterable[SlotStatus]) -> dict[str, Any]:
    """What these slots have together; memory in megabytes."""
    profiles: list[ResourceProfile] = [slot.profile for slot in slots]
    extended: dict[str, float] = {}
    for profile in profiles:
        for name, amount in (("gpu", profile.gpus), *profile.extended):
            if amount:
                extended[name] = extended.get(name, 0.0) + amount
    return {
        "cpuCores": float(sum(profile.cpus for profile in profiles)),
        "taskHeapMemory": sum(profile.memory for profile in profiles) // MB,
        "taskOffHeapMemory": 0,
        "managedMemory": 0,
        "networkMemory": 0,
        "extendedResources": extended,
    }


def _memory(executor: TaskExecutorInfo, figures: ProcessFigures | None) -> dict[str, Any]:
    used = 0 if figures is None else figures.rss
    generations = () if figures is None else figures.collections
    return {
        "heapUsed": used,
        "heapCommitted": used,
        "heapMax": executor.process.physical_memory,
        **dict.fromkeys(
            (
                "nonHeapUsed",
                "nonHeapCommitted",
                "nonHeapMax",
                "directCount",
                "directUsed",
                "directMax",
                "mappedCount",
                "mappedUsed",
                "mappedMax",
                "nettyShuffleMemorySegmentsAvailable",
                "nettyShuffleMemorySegmentsUsed",
                "nettyShuffleMemorySegmentsTotal",
                "nettyShuffleMemoryAvailable",
                "nettyShuffleMemoryUsed",
                "nettyShuffleMemoryTotal",
            ),
            0,
        ),
        "garbageCollectors": [
            {"name": f"generation {number}", "count": count, "time": 0}
            for number, count in enumerate(generations)
        ],
        # not in Flink
        "python": None
        if figures is None
        else {"threads": figures.threads, "rss": figures.rss, "cpuSeconds": figures.cpu_s},
    }
