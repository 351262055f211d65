"""Applications, of which Flink's page from 2.3 on makes its lists: here each job is one, under the
job's id."""

from __future__ import annotations

from starlette.requests import Request
from starlette.routing import Route

from flinkpy.core.errors import ProgramError
from flinkpy.core.ids import JobId
from flinkpy.web.answers import application_answers, job_answers
from flinkpy.web.failed_requests import not_found
from flinkpy.web.json_response import JSONResponse
from flinkpy.web.requests import calls_of, number_of
from flinkpy.web.routes.job_routes import cancel_of


async def get_applications(request: Request) -> JSONResponse:
    calls = calls_of(request)
    return JSONResponse(application_answers.overview(await calls.jobs(), calls.clock.time_ms()))


async def get_application(request: Request) -> JSONResponse:
    calls, wanted = calls_of(request), request.path_params["applicationid"]
    for job in await calls.jobs():
        if job.job_id == wanted:
            return JSONResponse(application_answers.details(job, calls.clock.time_ms()))
    raise not_found(f"there is no application {wanted!r:.80}: each has the id of its job")


async def get_application_exceptions(request: Request) -> JSONResponse:
    try:
        job = await calls_of(request).execution_graph(JobId(request.path_params["applicationid"]))
    except ProgramError as error:
        raise not_found(str(error)) from None
    return JSONResponse(
        job_answers.exceptions(job, number_of(request, "maxExceptions", job_answers.EXCEPTIONS))
    )


async def cancel_application(request: Request) -> JSONResponse:
    return await cancel_of(request, JobId(request.path_params["applicationid"]))


ROUTES = [
    Route("/applications/overview", get_applications),
    Route("/applications/{applicationid}", get_application),
    Route("/applications/{applicationid}/exceptions", get_application_exceptions),
    Route("/applications/{applicationid}/cancel", cancel_application, methods=["POST"]),
]
