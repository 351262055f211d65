"""Flink's REST routes, as Flink 2.3 describes and reads them: method, path, parameters, and the
fields of the answer with their types.

A shape is one of: a type; a pattern or a set of texts; ``[shape]``, a list of these; a dict, an
object with exactly these fields; ``AnyKey``, an object whose keys are data; ``Maybe``, what may be
null or left out; ``AnyOf``, one of several objects; None: the answer is no JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

ID = re.compile("[0-9a-f]{32}")  # of a job, a vertex, a request


@dataclass(frozen=True)
class Maybe:
    shape: Any


@dataclass(frozen=True)
class AnyKey:
    shape: Any


@dataclass(frozen=True)
class AnyOf:
    shapes: tuple[Any, ...]


class Described(NamedTuple):
    answer: Any
    query: tuple[str, ...] = ()
    status: int = 200
    body: tuple[str, ...] = ()  # the fields of what is sent


JOB_STATE = {
    "INITIALIZING",
    "CREATED",
    "RUNNING",
    "FAILING",
    "FAILED",
    "CANCELLING",
    "CANCELED",
    "FINISHED",
    "RESTARTING",
    "SUSPENDED",
    "RECONCILING",
}
TASK_STATE = {
    "CREATED",
    "SCHEDULED",
    "DEPLOYING",
    "INITIALIZING",
    "RUNNING",
    "FINISHED",
    "CANCELING",
    "CANCELED",
    "FAILED",
    "RECONCILING",
}
JOB_TYPE, SCHEDULER = {"BATCH", "STREAMING"}, {"Default", "Adaptive", "AdaptiveBatch"}
LEVEL = {"ok", "low", "high"}
NOTHING: dict[str, Any] = {}

CONFIGURATION = [{"key": str, "value": str}]
LOGS = {"logs": [{"name": str, "size": int, "mtime": int}]}
THREADS = {"threadInfos": [{"threadName": str, "stringifiedThreadInfo": str}]}
METRICS = [{"id": str, "value": Maybe(str)}]
AGGREGATES = ("min", "max", "avg", "sum", "skew")
AGGREGATED_METRICS = [{"id": str, **dict.fromkeys(AGGREGATES, Maybe(float))}]
ACCUMULATORS = [{"name": str, "type": str, "value": str}]
SPAN = {"start-time": int, "end-time": int, "duration": int}
IO_METRICS = {
    "read-bytes": int,
    "read-bytes-complete": bool,
    "write-bytes": int,
    "write-bytes-complete": bool,
    "read-records": int,
    "read-records-complete": bool,
    "write-records": int,
    "write-records-complete": bool,
    "accumulated-backpressured-time": int,
    "accumulated-idle-time": int,
    "accumulated-busy-time": float,
}
OVER_SUBTASKS = AnyKey(
    dict.fromkeys(("min", "max", "avg", "sum", "median", "p25", "p75", "p95"), int)
)
AGGREGATED = {"metrics": OVER_SUBTASKS, "status-duration": OVER_SUBTASKS}
ATTEMPT: dict[str, Any] = {
    "subtask": int,
    "status": TASK_STATE,
    "attempt": int,
    "endpoint": str,
    **SPAN,
    "start_time": int,
    "metrics": IO_METRICS,
    "taskmanager-id": str,
    "status-duration": AnyKey(int),
}
ATTEMPT["other-concurrent-attempts"] = Maybe([ATTEMPT])
PLAN = {
    "jid": ID,
    "name": str,
    "type": str,
    "nodes": [
        {
            "id": ID,
            "operator": str,
            "parallelism": int,
            "operator_strategy": str,
            "description": str,
            "optimizer_properties": AnyKey(object),
            "inputs": Maybe(
                [
                    {
                        "id": ID,
                        "num": int,
                        "exchange": str,
                        "ship_strategy": Maybe(str),
                        "local_strategy": Maybe(str),
                        "caching": Maybe(str),
                    }
                ]
            ),
        }
    ],
}
EXCEPTION: dict[str, Any] = {
    "exceptionName": str,
    "stacktrace": str,
    "timestamp": int,
    "failureLabels": AnyKey(str),
    "taskName": Maybe(str),
    "endpoint": Maybe(str),
    "taskManagerId": Maybe(str),
}
BACK_PRESSURE: dict[str, Any] = {
    "subtask": int,
    "attempt-number": Maybe(int),
    "backpressureLevel": LEVEL,
    "backpressure-level": LEVEL,
    "ratio": float,
    "idleRatio": float,
    "busyRatio": float,
}
BACK_PRESSURE["other-concurrent-attempts"] = Maybe([BACK_PRESSURE])
FRAME: dict[str, Any] = {"name": str, "value": int}
FRAME["children"] = [FRAME]

QUEUED = {"id": {"IN_PROGRESS", "COMPLETED"}}
FAILURE = Maybe({"class": str, "stack-trace": str, "serialized-throwable": str})
TRIGGERED = {"request-id": ID}

SPREAD = {
    "min": int,
    "max": int,
    "avg": int,
    **dict.fromkeys(("p50", "p90", "p95", "p99", "p999"), float),
}
SNAPSHOT_TOTALS = {
    "id": int,
    "status": {"IN_PROGRESS", "COMPLETED", "FAILED"},
    "latest_ack_timestamp": int,
    "checkpointed_size": int,
    "state_size": int,
    "end_to_end_duration": int,
    "alignment_buffered": int,
    "processed_data": int,
    "persisted_data": int,
    "num_subtasks": int,
    "num_acknowledged_subtasks": int,
}
SNAPSHOT = {
    **SNAPSHOT_TOTALS,
    "is_savepoint": bool,
    "savepointFormat": Maybe(str),
    "trigger_timestamp": int,
    "checkpoint_type": {"CHECKPOINT", "UNALIGNED_CHECKPOINT", "SAVEPOINT", "SYNC_SAVEPOINT"},
    "tasks": AnyKey(SNAPSHOT_TOTALS),
}
PENDING_CHECKPOINT = {**SNAPSHOT, "className": {"in_progress"}}
COMPLETED_CHECKPOINT = {
    **SNAPSHOT,
    "className": {"completed"},
    "external_path": Maybe(str),
    "discarded": bool,
}
FAILED_CHECKPOINT = {
    **SNAPSHOT,
    "className": {"failed"},
    "failure_timestamp": int,
    "failure_message": Maybe(str),
}
CHECKPOINT = AnyOf((PENDING_CHECKPOINT, COMPLETED_CHECKPOINT, FAILED_CHECKPOINT))
SUBTASK_SNAPSHOT = AnyOf(
    (
        {"className": {"pending"}, "index": int, "status": str},
        {
            "className": {"completed"},
            "index": int,
            "status": str,
            "ack_timestamp": int,
            "end_to_end_duration": int,
            "checkpointed_size": int,
            "state_size": int,
            "checkpoint": {"sync": int, "async": int},
            "start_delay": int,
            "unaligned_checkpoint": bool,
            "aborted": bool,
            "alignment": {"buffered": int, "processed": int, "persisted": int, "duration": int},
        },
    )
)

RESOURCE = {
    "cpuCores": float,
    "taskHeapMemory": int,
    "taskOffHeapMemory": int,
    "managedMemory": int,
    "networkMemory": int,
    "extendedResources": AnyKey(float),
}
TASK_MANAGER = {
    "id": str,
    "path": str,
    "dataPort": int,
    "jmxPort": int,
    "timeSinceLastHeartbeat": int,
    "slotsNumber": int,
    "freeSlots": int,
    "assignedTasks": int,
    "totalResource": RESOURCE,
    "freeResource": RESOURCE,
    "blocked": Maybe(bool),
    "hardware": {"cpuCores": int, "physicalMemory": int, "freeMemory": int, "managedMemory": int},
    "memoryConfiguration": dict.fromkeys(
        (
            "frameworkHeap",
            "taskHeap",
            "frameworkOffHeap",
            "taskOffHeap",
            "networkMemory",
            "managedMemory",
            "jvmMetaspace",
            "jvmOverhead",
            "totalFlinkMemory",
            "totalProcessMemory",
        ),
        Maybe(int),
    ),
}
PROCESS_METRICS = {
    **dict.fromkeys(
        (
            "heapUsed",
            "heapCommitted",
            "heapMax",
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
        int,
    ),
    "garbageCollectors": [{"name": str, "count": int, "time": int}],
}

JOB = "/jobs/:jobid"
VERTEX = "/jobs/:jobid/vertices/:vertexid"
SUBTASK = "/jobs/:jobid/vertices/:vertexid/subtasks/:subtaskindex"
TM = "/taskmanagers/:taskmanagerid"

READ: Mapping[str, Described] = {
    "/config": Described(
        {
            "refresh-interval": int,
            "timezone-name": str,
            "timezone-offset": int,
            "flink-version": str,
            "flink-revision": str,
            "features": {
                "web-submit": bool,
                "web-cancel": bool,
                "web-rescale": bool,
                "web-history": bool,
            },
        }
    ),
    "/overview": Described(
        {
            "taskmanagers": int,
            "slots-total": int,
            "slots-available": int,
            "taskmanagers-blocked": Maybe(int),
            "slots-free-and-blocked": Maybe(int),
            "jobs-running": int,
            "jobs-finished": int,
            "jobs-cancelled": int,
            "jobs-failed": int,
            "flink-version": str,
            "flink-commit": str,
        }
    ),
    "/jars": Described({"address": str, "files": [NOTHING]}),
    "/jobs": Described({"jobs": [{"id": ID, "status": JOB_STATE}]}),
    "/jobs/overview": Described(
        {
            "jobs": [
                {
                    "jid": ID,
                    "name": str,
                    "jobType": Maybe(JOB_TYPE),
                    "schedulerType": Maybe(SCHEDULER),
                    **SPAN,
                    "state": JOB_STATE,
                    "last-modification": int,
                    "tasks": AnyKey(int),
                    "pending-operators": int,
                }
            ]
        }
    ),
    "/jobs/metrics": Described(AGGREGATED_METRICS, ("get", "agg", "jobs")),
    JOB: Described(
        {
            "jid": ID,
            "application-id": Maybe(ID),
            "name": str,
            "isStoppable": bool,
            "state": JOB_STATE,
            "job-type": JOB_TYPE,
            "schedulerType": Maybe(SCHEDULER),
            **SPAN,
            "maxParallelism": int,
            "now": int,
            "timestamps": AnyKey(int),
            "vertices": [
                {
                    "id": ID,
                    "slotSharingGroupId": ID,
                    "name": str,
                    "maxParallelism": int,
                    "parallelism": int,
                    "status": TASK_STATE,
                    **SPAN,
                    "tasks": AnyKey(int),
                    "metrics": IO_METRICS,
                }
            ],
            "status-counts": AnyKey(int),
            "plan": PLAN,
            "stream-graph": Maybe(AnyKey(object)),
            "pending-operators": int,
        }
    ),
    f"{JOB}/status": Described({"status": JOB_STATE}),
    f"{JOB}/plan": Described({"plan": PLAN}),
    f"{JOB}/config": Described(
        {
            "jid": ID,
            "name": str,
            "execution-config": Maybe(
                {
                    "restart-strategy": str,
                    "job-parallelism": int,
                    "object-reuse-mode": bool,
                    "user-config": AnyKey(str),
                }
            ),
        }
    ),
    f"{JOB}/exceptions": Described(
        {
            "exceptionHistory": {
                "entries": [{**EXCEPTION, "concurrentExceptions": [EXCEPTION]}],
                "truncated": bool,
            }
        },
        ("maxExceptions", "failureLabelFilter"),
    ),
    f"{JOB}/accumulators": Described(
        {
            "job-accumulators": [NOTHING],
            "user-task-accumulators": ACCUMULATORS,
            "serialized-user-task-accumulators": AnyKey(str),
        },
        ("includeSerializedValue",),
    ),
    f"{JOB}/metrics": Described(METRICS, ("get",)),
    f"{JOB}/execution-result": Described(
        {"status": QUEUED, "job-execution-result": Maybe(AnyKey(object))}
    ),
    f"{JOB}/resource-requirements": Described(
        AnyKey({"parallelism": {"lowerBound": int, "upperBound": int}})
    ),
    f"{JOB}/jobmanager/config": Described(CONFIGURATION),
    f"{JOB}/jobmanager/environment": Described(
        {"jvm": {"version": str, "arch": str, "options": [str]}, "classpath": [str]}
    ),
    f"{JOB}/jobmanager/log-url": Described({"url": str}),
    f"{JOB}/taskmanagers/:taskmanagerid/log-url": Described({"url": str}),
    f"{JOB}/checkpoints": Described(
        {
            "counts": {
                "restored": int,
                "total": int,
                "in_progress": int,
                "completed": int,
                "failed": int,
            },
            "summary": dict.fromkeys(
                (
                    "checkpointed_size",
                    "state_size",
                    "end_to_end_duration",
                    "alignment_buffered",
                    "processed_data",
                    "persisted_data",
                ),
                SPREAD,
            ),
            "latest": {
                "completed": Maybe(COMPLETED_CHECKPOINT),
                "savepoint": Maybe(COMPLETED_CHECKPOINT),
                "failed": Maybe(FAILED_CHECKPOINT),
                "restored": Maybe(
                    {
                        "id": int,
                        "restore_timestamp": int,
                        "is_savepoint": bool,
                        "external_path": Maybe(str),
                    }
                ),
            },
            "history": [CHECKPOINT],
        }
    ),
    f"{JOB}/checkpoints/config": Described(
        {
            "mode": {"exactly_once", "at_least_once"},
            "interval": int,
            "timeout": int,
            "min_pause": int,
            "max_concurrent": int,
            "externalization": {"enabled": bool, "delete_on_cancellation": bool},
            "state_backend": str,
            "checkpoint_storage": str,
            "unaligned_checkpoints": bool,
            "tolerable_failed_checkpoints": int,
            "aligned_checkpoint_timeout": int,
            "checkpoints_after_tasks_finish": bool,
            "state_changelog_enabled": bool,
            "changelog_periodic_materialization_interval": int,
            "changelog_storage": Maybe(str),
        }
    ),
    f"{JOB}/checkpoints/details/:checkpointid": Described(CHECKPOINT),
    f"{JOB}/checkpoints/details/:checkpointid/subtasks/:vertexid": Described(
        {
            **SNAPSHOT_TOTALS,
            "subtasks": [SUBTASK_SNAPSHOT],
            "summary": {
                "checkpointed_size": SPREAD,
                "state_size": SPREAD,
                "end_to_end_duration": SPREAD,
                "start_delay": SPREAD,
                "checkpoint_duration": {"sync": SPREAD, "async": SPREAD},
                "alignment": dict.fromkeys(
                    ("buffered", "processed", "persisted", "duration"), SPREAD
                ),
            },
        }
    ),
    f"{JOB}/checkpoints/:triggerid": Described(
        {
            "status": QUEUED,
            "operation": Maybe({"checkpointId": Maybe(int), "failureCause": FAILURE}),
        }
    ),
    f"{JOB}/savepoints/:triggerid": Described(
        {"status": QUEUED, "operation": Maybe({"location": Maybe(str), "failure-cause": FAILURE})}
    ),
    f"{JOB}/rescaling/:triggerid": Described(
        {"status": QUEUED, "operation": Maybe({"failure-cause": FAILURE})}
    ),
    "/savepoint-disposal/:triggerid": Described(
        {"status": QUEUED, "operation": Maybe({"failure-cause": FAILURE})}
    ),
    VERTEX: Described(
        {
            "id": ID,
            "name": str,
            "parallelism": int,
            "maxParallelism": int,
            "now": int,
            "subtasks": [ATTEMPT],
            "aggregated": AGGREGATED,
        }
    ),
    f"{VERTEX}/accumulators": Described({"id": ID, "user-accumulators": ACCUMULATORS}),
    f"{VERTEX}/backpressure": Described(
        {
            "status": {"ok", "deprecated"},
            "backpressureLevel": Maybe(LEVEL),
            "backpressure-level": Maybe(LEVEL),
            "end-timestamp": Maybe(int),
            "subtasks": Maybe([BACK_PRESSURE]),
        }
    ),
    f"{VERTEX}/flamegraph": Described(
        {"endTimestamp": int, "data": Maybe(FRAME)}, ("type", "subtaskindex")
    ),
    f"{VERTEX}/jm-operator-metrics": Described(METRICS, ("get",)),
    f"{VERTEX}/metrics": Described(METRICS, ("get",)),
    f"{VERTEX}/subtasks/accumulators": Described(
        {
            "id": ID,
            "parallelism": int,
            "subtasks": [
                {"subtask": int, "attempt": int, "endpoint": str, "user-accumulators": ACCUMULATORS}
            ],
        }
    ),
    f"{VERTEX}/subtasks/metrics": Described(AGGREGATED_METRICS, ("get", "agg", "subtasks")),
    f"{VERTEX}/subtasktimes": Described(
        {
            "id": ID,
            "name": str,
            "now": int,
            "subtasks": [
                {"subtask": int, "endpoint": str, "duration": int, "timestamps": AnyKey(int)}
            ],
        }
    ),
    f"{VERTEX}/taskmanagers": Described(
        {
            "id": ID,
            "name": str,
            "now": int,
            "taskmanagers": [
                {
                    "endpoint": str,
                    "status": TASK_STATE,
                    **SPAN,
                    "metrics": IO_METRICS,
                    "status-counts": AnyKey(int),
                    "taskmanager-id": str,
                    "aggregated": AGGREGATED,
                }
            ],
        }
    ),
    f"{VERTEX}/watermarks": Described(METRICS),
    SUBTASK: Described(ATTEMPT),
    f"{SUBTASK}/metrics": Described(METRICS, ("get",)),
    f"{SUBTASK}/attempts/:attempt": Described(ATTEMPT),
    f"{SUBTASK}/attempts/:attempt/accumulators": Described(
        {"subtask": int, "attempt": int, "id": str, "user-accumulators": ACCUMULATORS}
    ),
    "/jobmanager/config": Described(CONFIGURATION),
    "/jobmanager/environment": Described(
        {"jvm": {"version": str, "arch": str, "options": [str]}, "classpath": [str]}
    ),
    "/jobmanager/log": Described(None),
    "/jobmanager/logs": Described(LOGS),
    "/jobmanager/logs/:filename": Described(None),
    "/jobmanager/metrics": Described(METRICS, ("get",)),
    "/jobmanager/stdout": Described(None),
    "/jobmanager/thread-dump": Described(THREADS),
    "/taskmanagers": Described({"taskmanagers": [TASK_MANAGER]}),
    "/taskmanagers/metrics": Described(AGGREGATED_METRICS, ("get", "agg", "taskmanagers")),
    TM: Described(
        {
            **TASK_MANAGER,
            "allocatedSlots": [{"jobId": ID, "resource": RESOURCE, "assignedTasks": int}],
            "metrics": PROCESS_METRICS,
        }
    ),
    f"{TM}/log": Described(None),
    f"{TM}/logs": Described(LOGS),
    f"{TM}/logs/:filename": Described(None),
    f"{TM}/metrics": Described(METRICS, ("get",)),
    f"{TM}/stdout": Described(None),
    f"{TM}/thread-dump": Described(THREADS),
}
CHANGE: Mapping[tuple[str, str], Described] = {
    ("PATCH", JOB): Described(NOTHING, ("mode",), 202),
    ("POST", f"{JOB}/checkpoints"): Described(TRIGGERED, (), 202, ("checkpointType", "triggerId")),
    ("POST", f"{JOB}/savepoints"): Described(
        TRIGGERED, (), 202, ("target-directory", "cancel-job", "formatType", "triggerId")
    ),
    ("POST", f"{JOB}/stop"): Described(
        TRIGGERED, (), 202, ("targetDirectory", "drain", "formatType", "triggerId")
    ),
    ("PATCH", f"{JOB}/rescaling"): Described(TRIGGERED, ("parallelism",)),
    ("PUT", f"{JOB}/resource-requirements"): Described(NOTHING),
    ("POST", "/savepoint-disposal"): Described(TRIGGERED, (), 200, ("savepoint-path",)),
    ("DELETE", "/cluster"): Described(NOTHING),
}
# What is there for programs of the JVM alone, or beyond what flinkpy is to do: jars, datasets,
# programs that run as applications, the submission of jobs, coordinators of operators, JVM
# profilers, the history of rescaling.
OUT_OF_SCOPE = (
    "/jars/",
    "/datasets",
    "/run-application",
    "/coordinators/",
    "/profiler",
    "/rescales",
    "/clientHeartbeat",
)
