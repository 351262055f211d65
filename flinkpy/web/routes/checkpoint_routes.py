"""The checkpoints of a job."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from flinkpy.web.answers import checkpoint_answers
from flinkpy.web.requests import job_of


async def get_checkpoints(request: Request) -> JSONResponse:
    return JSONResponse(checkpoint_answers.statistics(await job_of(request)))


async def get_checkpoint_config(request: Request) -> JSONResponse:
    return JSONResponse(checkpoint_answers.config((await job_of(request)).configuration))


ROUTES = [
    Route("/jobs/{jobid}/checkpoints", get_checkpoints, methods=["GET"]),
    Route("/jobs/{jobid}/checkpoints/config", get_checkpoint_config),
]
