"""What there is in the cluster."""

from __future__ import annotations

from datetime import datetime, timezone

from starlette.requests import Request
from starlette.routing import Route

from flinkpy.web.answers import cluster_answers
from flinkpy.web.json_response import JSONResponse
from flinkpy.web.requests import calls_of


async def get_config(request: Request) -> JSONResponse:
    now = datetime.fromtimestamp(calls_of(request).clock.time_ms() / 1000, timezone.utc)
    return JSONResponse(cluster_answers.config(now.astimezone()))


async def get_overview(request: Request) -> JSONResponse:
    calls = calls_of(request)
    return JSONResponse(cluster_answers.overview(await calls.cluster(), await calls.jobs()))


async def get_jars(request: Request) -> JSONResponse:
    return JSONResponse({"address": str(request.base_url), "files": []})


ROUTES = [Route("/config", get_config), Route("/overview", get_overview), Route("/jars", get_jars)]
