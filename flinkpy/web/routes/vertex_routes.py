"""The vertices of a job, and their subtasks."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from flinkpy.web.answers import metric_answers, vertex_answers
from flinkpy.web.failed_requests import bad_request
from flinkpy.web.requests import vertex_of


async def get_vertex(request: Request) -> JSONResponse:
    return JSONResponse(vertex_answers.details(*await vertex_of(request)))


async def get_subtask_times(request: Request) -> JSONResponse:
    return JSONResponse(vertex_answers.subtask_times(*await vertex_of(request)))


async def get_vertex_task_managers(request: Request) -> JSONResponse:
    return JSONResponse(vertex_answers.task_managers(*await vertex_of(request)))


async def get_back_pressure(request: Request) -> JSONResponse:
    return JSONResponse(vertex_answers.back_pressure(*await vertex_of(request)))


async def get_vertex_metrics(request: Request) -> JSONResponse:
    _, vertex = await vertex_of(request)
    return JSONResponse(metric_answers.listed(metric_answers.of_vertex(vertex), request.query_params.get("get")))


async def get_subtask_metrics(request: Request) -> JSONResponse:
    _, vertex = await vertex_of(request)
    try:
        return JSONResponse(metric_answers.aggregated(vertex, request.query_params.get("get"), request.query_params.get("agg")))
    except ValueError as error:
        raise bad_request(str(error)) from None


ROUTES = [
    Route("/jobs/{jobid}/vertices/{vertexid}", get_vertex),
    Route("/jobs/{jobid}/vertices/{vertexid}/metrics", get_vertex_metrics),
    Route("/jobs/{jobid}/vertices/{vertexid}/subtasks/metrics", get_subtask_metrics),
    Route("/jobs/{jobid}/vertices/{vertexid}/subtasktimes", get_subtask_times),
    Route("/jobs/{jobid}/vertices/{vertexid}/taskmanagers", get_vertex_task_managers),
    Route("/jobs/{jobid}/vertices/{vertexid}/backpressure", get_back_pressure),
]
