"""The history server: the same routes and JSON as of a cluster, for jobs whose cluster is gone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, Router

from flinkpy.core.clock import Clock
from flinkpy.core.options.history import HistoryConfig
from flinkpy.web.answers import cluster_answers
from flinkpy.web.answers.metric_answers import chosen
from flinkpy.web.failed_requests import not_found
from flinkpy.web.history.archives import Archives
from flinkpy.web.history.archiving import has_metrics
from flinkpy.web.json_response import JSONResponse
from flinkpy.web.rest_server import RestServer


def history_server(config: HistoryConfig, clock: Clock) -> RestServer:
    """Serves from now on, until it is stopped. Raises ConfigurationError if it cannot have its
    port."""
    server = RestServer(config.rest, clock, routes=ROUTES)
    archives = Archives(config.folders, clock, config.refresh_s, config.retained)
    server.begin(HistoryServices(archives, clock))
    return server


@dataclass(frozen=True)
class HistoryServices:
    """What the handlers here ask."""

    archives: Archives
    clock: Clock


def services_of_history(request: Request) -> HistoryServices:
    services: HistoryServices = request.app.state.services
    return services


async def _overviews(request: Request) -> list[dict[str, Any]]:
    return await run_in_threadpool(services_of_history(request).archives.overviews)


async def get_config(request: Request) -> JSONResponse:
    now_ms = services_of_history(request).clock.time_ms()
    now = datetime.fromtimestamp(now_ms / 1000, timezone.utc)
    return JSONResponse(cluster_answers.config(now.astimezone(), is_history=True))


async def get_overview(request: Request) -> JSONResponse:
    return JSONResponse(
        cluster_answers.overview_of_ended([each["state"] for each in await _overviews(request)])
    )


async def get_jobs(request: Request) -> JSONResponse:
    return JSONResponse(
        {
            "jobs": [
                {"id": each["jid"], "status": each["state"]} for each in await _overviews(request)
            ]
        }
    )


async def get_jobs_overview(request: Request) -> JSONResponse:
    return JSONResponse({"jobs": await _overviews(request)})


async def get_archived(request: Request) -> Response:
    """What the route answered when the job had ended."""
    archives = services_of_history(request).archives
    path = "/jobs/" + request.path_params["path"]
    try:
        answer = await run_in_threadpool(archives.answer, path)
    except (OSError, ValueError):  # gone, or damaged since it was listed
        answer = None
    if answer is None:
        raise not_found(f"{path} is not in the history")
    if has_metrics(path):
        try:
            return JSONResponse(
                chosen(
                    json.loads(answer),
                    request.query_params.get("get"),
                    request.query_params.get("agg"),
                )
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise not_found(f"{path} is damaged in the history") from None
    return Response(answer, media_type="application/json")


_ROUTES = [
    Route("/config", get_config),
    Route("/overview", get_overview),
    Route("/jobs", get_jobs),
    Route("/jobs/overview", get_jobs_overview),
    Route("/jobs/{path:path}", get_archived),
]
ROUTES = [Mount("/v1", Router(_ROUTES, redirect_slashes=False)), *_ROUTES]
