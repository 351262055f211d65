"""TaskExecutors, as Flink tells of its TaskManagers. Whatever only a Java machine has is 0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flinkpy.actors.inspector.inspector_gateway import ProcessFigures
from flinkpy.actors.task_executor_info import TaskExecutorInfo
from flinkpy.graph.deployment import SlotStatus
from flinkpy.graph.resources import ResourceProfile

MB = 1 << 20


def listed(executors: Iterable[TaskExecutorInfo]) -> dict[str, Any]:
    return {"taskmanagers": [_summary(executor) for executor in executors]}


def details(executor: TaskExecutorInfo, figures: ProcessFigures | None) -> dict[str, Any]:
    """Without ``figures`` the process has not answered."""
    taken = [slot for slot in executor.slots if slot.job_id is not None]
    return {
        **_summary(executor),
        "metrics": _memory(executor, figures),
        "allocatedSlots": [{"jobId": slot.job_id, "resource": _resources([slot]), "assignedTasks": 0} for slot in taken],
    }


def _summary(executor: TaskExecutorInfo) -> dict[str, Any]:
    process = executor.process
    free = [slot for slot in executor.slots if slot.job_id is None and slot.allocation_id is None]
    return {
        "id": executor.resource_id, "path": executor.address, "dataPort": executor.data_port, "jmxPort": -1,
        "timeSinceLastHeartbeat": executor.heartbeat_ms,  # a moment, in Flink too
        "slotsNumber": len(executor.slots), "freeSlots": len(free), "assignedTasks": 0,
        "totalResource": _resources(executor.slots), "freeResource": _resources(free),
        "hardware": {"cpuCores": process.cpu_cores, "physicalMemory": process.physical_memory, "freeMemory": 0, "managedMemory": 0},
        "memoryConfiguration": dict.fromkeys((
            "frameworkHeap", "taskHeap", "frameworkOffHeap", "taskOffHeap", "networkMemory", "managedMemory", "jvmMetaspace", "jvmOverhead",
            "totalFlinkMemory", "totalProcessMemory"), 0),
        "blocked": False,
        "host": executor.host or process.host, "pid": process.pid, "registered": executor.registered_ms,  # not in Flink
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
        "cpuCores": float(sum(profile.cpus for profile in profiles)), "taskHeapMemory": sum(profile.memory for profile in profiles) // MB,
        "taskOffHeapMemory": 0, "managedMemory": 0, "networkMemory": 0, "extendedResources": extended,
    }


def _memory(executor: TaskExecutorInfo, figures: ProcessFigures | None) -> dict[str, Any]:
    used = 0 if figures is None else figures.rss
    generations = () if figures is None else figures.collections
    return {
        "heapUsed": used, "heapCommitted": used, "heapMax": executor.process.physical_memory,
        **dict.fromkeys((
            "nonHeapUsed", "nonHeapCommitted", "nonHeapMax", "directCount", "directUsed", "directMax", "mappedCount", "mappedUsed", "mappedMax",
            "nettyShuffleMemorySegmentsAvailable", "nettyShuffleMemorySegmentsUsed",
            "nettyShuffleMemorySegmentsTotal", "nettyShuffleMemoryAvailable", "nettyShuffleMemoryUsed", "nettyShuffleMemoryTotal"), 0),
        "garbageCollectors": [{"name": f"generation {number}", "count": count, "time": 0} for number, count in enumerate(generations)],
        "python": None if figures is None else {"threads": figures.threads, "rss": figures.rss, "cpuSeconds": figures.cpu_s},  # not in Flink
    }
