"""A REST endpoint with made-up answers in Flink's form: as many jobs and vertices as one wishes,
and routes that a real cluster answers only after a while."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from flinkpy.core.lifecycles import ExecutionState
from flinkpy.web.routes.page_routes import ROUTES
from tests.ports import free_port
from tests.waiting import eventually

START_MS = 1_790_000_000_000
TASKS = {state.name: 0 for state in ExecutionState}


def overview(jobs: int) -> dict[str, Any]:
    states = ("RUNNING", "FINISHED", "FAILED", "CANCELED")
    return {
        "jobs": [
            {
                "jid": f"{number:032x}",
                "name": f"job {number}",
                "state": states[number % 4],
                "start-time": START_MS + number,
                "end-time": -1,
                "duration": number * 1000,
                "last-modification": START_MS,
                "tasks": {
                    "total": 4,
                    **{name.lower(): 4 if name == "RUNNING" else 0 for name in TASKS},
                },
            }
            for number in range(jobs)
        ]
    }


def job(vertices: int, asked: int) -> dict[str, Any]:
    """A graph of ``vertices`` in layers of five, each vertex with two producers. What has been read
    grows with each answer."""

    def counted(number: int) -> dict[str, Any]:
        return {
            "read-records": asked * 1000,
            "write-records": asked * 900,
            "read-bytes": asked * 10_000,
            "read-bytes-complete": True,
            "write-bytes": asked * 9_000,
            "write-bytes-complete": True,
            "accumulated-busy-time": 10.0,
            "accumulated-backpressured-time": 5,
            "accumulated-idle-time": 1,
        }

    inputs = {
        number: sorted({number - 5, number - 4 if number % 5 < 4 else number - 9})
        if number >= 5
        else []
        for number in range(vertices)
    }
    return {
        "jid": "a" * 32,
        "name": "many vertices",
        "state": "RUNNING",
        "job-type": "STREAMING",
        "start-time": START_MS,
        "end-time": -1,
        "duration": asked * 2000,
        "now": START_MS + asked * 2000,
        "timestamps": {},
        "maxParallelism": 128,
        "status-counts": TASKS,
        "vertices": [
            {
                "id": f"v{number}",
                "name": f"Source: numbers {number} -> Map"
                if number < 5
                else f"operator {number} -> Filter -> Map -> Sink: Writer",
                "parallelism": 2,
                "maxParallelism": 128,
                "status": "RUNNING",
                "start-time": START_MS,
                "end-time": -1,
                "duration": asked * 2000,
                "tasks": {**TASKS, "RUNNING": 2},
                "metrics": counted(number),
            }
            for number in range(vertices)
        ],
        "plan": {
            "jid": "a" * 32,
            "name": "many vertices",
            "type": "STREAMING",
            "nodes": [
                {
                    "id": f"v{number}",
                    "parallelism": 2,
                    "description": f"Source: numbers {number} -> Map"
                    if number < 5
                    else f"operator {number} -> Filter -> Map -> Sink: Writer",
                    "inputs": [
                        {
                            "num": index,
                            "id": f"v{producer}",
                            "ship_strategy": "HASH",
                            "exchange": "pipelined",
                        }
                        for index, producer in enumerate(inputs[number])
                    ],
                }
                for number in range(vertices)
            ],
        },
    }


def loads(vertices: int, asked: int) -> dict[str, Any]:
    return {
        "vertices": [
            {
                "id": f"v{number}",
                "busyTimeMsPerSecond": (number * 37 + asked * 13) % 1000,
                "backPressuredTimeMsPerSecond": (number * 53 + asked * 7) % 1000,
            }
            for number in range(vertices)
        ]
    }


def checkpoint(number: int) -> dict[str, Any]:
    return {
        "className": "completed",
        "id": number,
        "status": "COMPLETED",
        "is_savepoint": number % 3 == 0,
        "savepointFormat": None,
        "trigger_timestamp": START_MS + number * 10_000,
        "latest_ack_timestamp": START_MS + number * 10_000 + 300,
        "checkpointed_size": 4096 * number,
        "state_size": 1 << 20,
        "end_to_end_duration": 300 + number,
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": 4,
        "num_acknowledged_subtasks": 4,
        "checkpoint_type": "CHECKPOINT",
        "tasks": {},
        "external_path": f"file:/checkpoints/chk-{number}",
        "discarded": False,
    }


def checkpoints() -> dict[str, Any]:
    figures = dict.fromkeys(("min", "max", "avg", "p50", "p90", "p95", "p99", "p999"), 1000)
    return {
        "counts": {"restored": 1, "total": 9, "in_progress": 0, "completed": 8, "failed": 1},
        "summary": dict.fromkeys(
            (
                "checkpointed_size",
                "state_size",
                "end_to_end_duration",
                "processed_data",
                "persisted_data",
            ),
            figures,
        ),
        "latest": {
            "completed": checkpoint(8),
            "savepoint": checkpoint(6),
            "failed": None,
            "restored": None,
        },
        "history": [checkpoint(n) for n in range(8, 0, -1)],
    }


def _of_vertex() -> dict[str, Any]:
    return {
        "id": "v0",
        "status": "COMPLETED",
        "latest_ack_timestamp": START_MS,
        "checkpointed_size": 4096,
        "state_size": 4096,
        "end_to_end_duration": 250,
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": 2,
        "num_acknowledged_subtasks": 2,
    }


def _subtask(index: int) -> dict[str, Any]:
    return {
        "index": index,
        "status": "completed",
        "ack_timestamp": START_MS,
        "end_to_end_duration": 240,
        "checkpointed_size": 2048,
        "state_size": 2048,
        "checkpoint": {"sync": 12, "async": 90},
        "alignment": {"buffered": 0, "processed": 0, "persisted": 0, "duration": 33},
        "start_delay": 44,
        "unaligned_checkpoint": False,
        "aborted": False,
    }


FLAMES = {
    "endTimestamp": START_MS,
    "data": {
        "name": "root",
        "value": 100,
        "children": [
            {
                "name": "enrich (job.py:12)",
                "value": 70,
                "children": [{"name": "loads (json/__init__.py:299)", "value": 50, "children": []}],
            },
            {"name": "write (sink.py:40)", "value": 30, "children": []},
        ],
    },
}
OF_OPERATORS = [  # the page takes the names, then the sums
    {"id": f"Join.{name}", "sum": number}
    for name, number in {
        "numRecordsIn": 30,
        "numRecordsOut": 20,
        "numDeleteRecordsIn": 4,
        "numUpdateAfterRecordsOut": 20,
        "numKeyValueStateEntries": 26,
        "stateBytes": 5 << 20,
    }.items()
]
TASK_EXECUTOR = {
    "id": "worker-1",
    "path": "ray://worker-1",
    "dataPort": 4000,
    "jmxPort": -1,
    "timeSinceLastHeartbeat": START_MS,
    "slotsNumber": 4,
    "freeSlots": 1,
    "hardware": {
        "cpuCores": 8,
        "physicalMemory": 16 << 30,
        "freeMemory": 4 << 30,
        "managedMemory": 0,
    },
    "memoryConfiguration": {
        "taskHeap": 1400 << 20,
        "managedMemory": 1300 << 20,
        "networkMemory": 340 << 20,
        "jvmMetaspace": 256 << 20,
        "totalProcessMemory": 4 << 30,
    },
    "memory": {
        "used": 3800 << 20,
        "limit": 4 << 30,
        "sourcesRest": True,
        "managedReserved": 800 << 20,
        "managedTotal": 1300 << 20,
        "owners": [
            {
                "owner": "count (1/2)",
                "what": "state in memory",
                "size": 2 << 30,
                "option": "state.backend.type: rocksdb",
            }
        ],
    },
    "metrics": {"heapUsed": 300 << 20, "nonHeapUsed": 0},
}


class MadeUp:
    """``asked`` counts what was asked for, by path."""

    def __init__(self, jobs: int = 3, vertices: int = 7, refresh_ms: int = 2000) -> None:
        self.jobs = jobs
        self.vertices = vertices
        self.refresh_ms = refresh_ms
        self.asked: Counter[str] = Counter()

    async def answer(self, request: Request) -> Response:
        path = request.url.path
        self.asked[path] += 1
        found = self._answers(path)
        if found is None:
            return JSONResponse({"errors": [f"{path} is not there"]}, 404)
        return PlainTextResponse(found) if isinstance(found, str) else JSONResponse(found)

    def _answers(self, path: str) -> Any:
        here = "/jobs/" + "a" * 32
        known: dict[str, Callable[[], Any]] = {
            "/config": lambda: {"refresh-interval": self.refresh_ms, "flink-version": "1.2.3"},
            "/overview": lambda: {
                "taskmanagers": 2,
                "slots-total": 8,
                "slots-available": 1,
                "jobs-running": 4,
                "jobs-finished": 3,
                "jobs-cancelled": 2,
                "jobs-failed": 1,
            },
            "/jobs/overview": lambda: overview(self.jobs),
            here: lambda: job(self.vertices, self.asked[here]),
            f"{here}/loads": lambda: loads(self.vertices, self.asked[here]),
            f"{here}/checkpoints": checkpoints,
            f"{here}/checkpoints/details/8": lambda: {
                **checkpoint(8),
                "tasks": {"v0": _of_vertex()},
            },
            f"{here}/checkpoints/details/8/subtasks/v0": lambda: {
                **_of_vertex(),
                "subtasks": [_subtask(0), _subtask(1)],
            },
            f"{here}/vertices/v0/flamegraph": lambda: FLAMES,
            f"{here}/vertices/v0/watermarks": lambda: [
                {"id": f"{each}.currentInputWatermark", "value": str(START_MS + each * 5000)}
                for each in range(2)
            ],
            f"{here}/vertices/v0/subtasks/metrics": lambda: OF_OPERATORS,
            f"{here}/vertices/v0/accumulators": lambda: {
                "id": "v0",
                "user-accumulators": [{"name": "late", "type": "IntCounter", "value": "7"}],
            },
            "/taskmanagers": lambda: {"taskmanagers": [TASK_EXECUTOR]},
            "/taskmanagers/worker-1": lambda: TASK_EXECUTOR,
            "/taskmanagers/worker-1/logs": lambda: {
                "logs": [{"name": "worker.log", "size": 2048, "mtime": START_MS}]
            },
            "/taskmanagers/worker-1/logs/worker.log": lambda: (
                "first line\nsecond line\nthe last line"
            ),
            "/taskmanagers/worker-1/thread-dump": lambda: {
                "threadInfos": [
                    {"threadName": "MainThread", "stringifiedThreadInfo": '"MainThread"\n  at run'}
                ]
            },
            "/jobmanager/config": lambda: [{"key": "rest.port", "value": "8081"}],
            "/jobmanager/environment": lambda: {
                "jvm": {"version": "Python 3.11", "arch": "x86_64", "options": []},
                "classpath": ["/site-packages"],
            },
        }
        return known[path]() if path in known else None


@contextmanager
def serving(answers: MadeUp) -> Iterator[str]:
    """Its address."""
    app = Starlette(routes=[*ROUTES])
    app.add_route("/{path:path}", answers.answer)
    port = free_port()
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            port=port,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    eventually(lambda: server.started)
    yield f"http://localhost:{port}"
    server.should_exit = True
    thread.join(10)
