"""Archives a job that has ended: its REST routes are asked as a browser would ask them, and their
answers are kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Message

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo
from flinkpy.actors.gateways import JobMetrics, JobOverview
from flinkpy.actors.job_store import ArchivedJob
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.ids import JobId
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.web.dispatcher_calls import DispatcherCalls
from flinkpy.web.failed_requests import HANDLERS
from flinkpy.web.history.archive_files import is_archived, write_archive
from flinkpy.web.metric_fetcher import MetricFetcher
from flinkpy.web.rest_services import RestServices, offer
from flinkpy.web.routes import V1

OVERVIEW = "/jobs/overview"
KNOWN = {"jobid", "vertexid", "subtaskindex", "attempt", "checkpointid"}  # what paths may name


def archive(
    store: FileStore, folder: str, job: ArchivedJob, options: Mapping[str, Any] | None = None
) -> None:
    """Keeps the job's archive in the folder, unless it is there. ``options`` are those of its
    cluster. Blocks. Raises OSError, and ProgramError for a job of which nothing is known."""
    if not is_archived(store, folder, job.result.job_id):
        write_archive(store, folder, job.result.job_id, archived_answers(job, options or {}))


def archived_answers(job: ArchivedJob, options: Mapping[str, Any]) -> dict[str, str]:
    """What the routes answer that tell of an ended job, by path; of metrics all that there are,
    with their values."""
    app = Starlette(routes=V1, exception_handlers=HANDLERS)
    calls = cast(DispatcherCalls, _OneJob(job))
    offer(app, RestServices(calls, MetricFetcher(calls, None, 0.0, ""), options=options))
    return asyncio.run(_answers(app, [OVERVIEW, *dict.fromkeys(_paths(job.graph))]))


class _OneJob:
    """What handlers ask of :class:`DispatcherCalls`, where there is this job only, which has
    ended."""

    clock = SYSTEM_CLOCK

    def __init__(self, job: ArchivedJob) -> None:
        self._job = job

    async def jobs(self) -> list[JobOverview]:
        return [self._job.details.overview]

    async def execution_graph(self, job_id: JobId) -> ExecutionGraphInfo:
        return self._job.graph

    async def metrics(self, job_id: JobId) -> JobMetrics:
        return self._job.metrics


def _paths(job: ExecutionGraphInfo) -> Iterator[str]:
    """The paths of all routes about the job, with each of its vertices, subtasks, attempts and
    checkpoints."""
    for route in V1:
        if not isinstance(route, Route) or "GET" not in (route.methods or ()):
            continue
        named = set(route.param_convertors)
        if "jobid" not in named or not named <= KNOWN:
            continue
        for vertex in job.vertices if "vertexid" in named else [None]:
            for checkpoint in job.checkpoint_history.known() if "checkpointid" in named else [None]:
                for subtask in (
                    vertex.subtasks if vertex is not None and "subtaskindex" in named else [None]
                ):
                    for attempt in (
                        (subtask, *subtask.earlier)
                        if subtask is not None and "attempt" in named
                        else [None]
                    ):
                        yield route.url_path_for(
                            route.name,
                            **{
                                name: value
                                for name, value in (
                                    ("jobid", job.job_id),
                                    ("vertexid", vertex and vertex.vertex_id),
                                    ("checkpointid", checkpoint and str(checkpoint.checkpoint_id)),
                                    ("subtaskindex", subtask and subtask.index),
                                    ("attempt", attempt and str(attempt.attempt)),
                                )
                                if name in named
                            },
                        )


async def _answers(app: Starlette, paths: list[str]) -> dict[str, str]:
    """The answers of these paths; a route that needs a running job has none."""
    found = {}
    for path in paths:
        status, body = await _ask(app, path)
        if status == 200 and has_metrics(path):
            status, body = await _ask(
                app, path, "get=" + quote(",".join(each["id"] for each in json.loads(body)))
            )
        if status == 200:
            found[path] = json.dumps(json.loads(body), separators=(",", ":"))
    return found


def has_metrics(path: str) -> bool:
    """Whether the route lists metrics, and tells values of those that it is asked for."""
    return path.endswith("/metrics")


async def _ask(app: Starlette, path: str, query: str = "") -> tuple[int, bytes]:
    status, body = 500, b""

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal status, body
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            body += message.get("body", b"")

    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [],
        "server": ("localhost", 80),
        "client": None,
    }
    try:
        await app(scope, receive, send)
    except Exception:
        return 500, b""  # it asks what only a running cluster knows
    return status, body
