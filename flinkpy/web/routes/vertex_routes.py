"""The vertices of a job, and their subtasks."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from flinkpy.web.answers import metric_answers, vertex_answers
from flinkpy.web.failed_requests import bad_request, not_found
from flinkpy.web.requests import job_of, subtask_of, vertex_of


async def get_vertex(request: Request) -> JSONResponse:
    return JSONResponse(vertex_answers.details(*await vertex_of(request)))


async def get_subtask(request: Request) -> JSONResponse:
    job, subtask = await subtask_of(request)
    return JSONResponse(vertex_answers.attempt(subtask, job.at_ms))


async def get_attempt(request: Request) -> JSONResponse:
    job, subtask = await subtask_of(request)
    number = request.path_params["attempt"]
    for attempt in (subtask, *subtask.earlier):
        if str(attempt.attempt) == number:
            return JSONResponse(vertex_answers.attempt(attempt, job.at_ms))
    raise not_found(f"subtask {subtask.index} has no attempt {number:.20}, or it is too long ago (jobmanager.execution.attempts-history-size)")


async def get_resource_requirements(request: Request) -> JSONResponse:
    return JSONResponse(vertex_answers.resource_requirements(await job_of(request)))


async def refuse_to_rescale(request: Request) -> JSONResponse:
    job = await job_of(request)
    raise HTTPException(501, f"the parallelism of a running job cannot be changed: stop it (POST /jobs/{job.job_id}/stop) and start it from its "
                             "savepoint with another parallelism")


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
    Route("/jobs/{jobid}/resource-requirements", get_resource_requirements, methods=["GET"]),
    Route("/jobs/{jobid}/resource-requirements", refuse_to_rescale, methods=["PUT"]),
    Route("/jobs/{jobid}/rescaling", refuse_to_rescale, methods=["PATCH"]),
    Route("/jobs/{jobid}/vertices/{vertexid}/subtasks/{subtaskindex:int}", get_subtask),
    Route("/jobs/{jobid}/vertices/{vertexid}/subtasks/{subtaskindex:int}/attempts/{attempt}", get_attempt),
    Route("/jobs/{jobid}/vertices/{vertexid}/metrics", get_vertex_metrics),
    Route("/jobs/{jobid}/vertices/{vertexid}/subtasks/metrics", get_subtask_metrics),
    Route("/jobs/{jobid}/vertices/{vertexid}/subtasktimes", get_subtask_times),
    Route("/jobs/{jobid}/vertices/{vertexid}/taskmanagers", get_vertex_task_managers),
    Route("/jobs/{jobid}/vertices/{vertexid}/backpressure", get_back_pressure),
]
