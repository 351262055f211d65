"""The accumulators of the program's functions."""

from __future__ import annotations

from starlette.requests import Request
from starlette.routing import Route

from flinkpy.web.answers import accumulator_answers
from flinkpy.web.json_response import JSONResponse
from flinkpy.web.requests import attempt_of, calls_of, job_id_of, job_of, vertex_of


async def get_job_accumulators(request: Request) -> JSONResponse:
    await job_of(request)
    return JSONResponse(
        accumulator_answers.of_job(await calls_of(request).metrics(job_id_of(request)))
    )


async def get_vertex_accumulators(request: Request) -> JSONResponse:
    _, vertex = await vertex_of(request)
    return JSONResponse(
        accumulator_answers.of_vertex(vertex, await calls_of(request).metrics(job_id_of(request)))
    )


async def get_accumulators_of_subtasks(request: Request) -> JSONResponse:
    metrics = await calls_of(request).metrics(job_id_of(request))
    return JSONResponse(accumulator_answers.of_subtasks(*await vertex_of(request), metrics))


async def get_attempt_accumulators(request: Request) -> JSONResponse:
    job, vertex, attempt = await attempt_of(request)
    return JSONResponse(
        accumulator_answers.of_attempt(
            job, vertex, attempt, await calls_of(request).metrics(job_id_of(request))
        )
    )


_VERTEX = "/jobs/{jobid}/vertices/{vertexid}"
ROUTES = [
    Route("/jobs/{jobid}/accumulators", get_job_accumulators),
    Route(f"{_VERTEX}/accumulators", get_vertex_accumulators),
    Route(f"{_VERTEX}/subtasks/accumulators", get_accumulators_of_subtasks),
    Route(
        f"{_VERTEX}/subtasks/{{subtaskindex:int}}/attempts/{{attempt}}/accumulators",
        get_attempt_accumulators,
    ),
]
