"""Jobs: what they are, how they stand, and their end."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route

from flinkpy.core.errors import ProgramError
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import JOB, JobState
from flinkpy.core.secrets.hidden_secrets import shown_options
from flinkpy.web.answers import job_answers
from flinkpy.web.failed_requests import bad_request, not_found
from flinkpy.web.guard import refuse_other_sites
from flinkpy.web.json_response import JSONResponse
from flinkpy.web.requests import calls_of, job_id_of, job_of, number_of


async def get_jobs(request: Request) -> JSONResponse:
    return JSONResponse(job_answers.ids_and_states(await calls_of(request).jobs()))


async def get_jobs_overview(request: Request) -> JSONResponse:
    calls = calls_of(request)
    return JSONResponse(job_answers.overview(await calls.jobs(), calls.clock.time_ms()))


async def get_job(request: Request) -> JSONResponse:
    return JSONResponse(job_answers.details(await job_of(request)))


async def get_job_status(request: Request) -> JSONResponse:
    return JSONResponse({"status": (await job_of(request)).state.name})


async def get_job_plan(request: Request) -> JSONResponse:
    return JSONResponse(job_answers.plan(await job_of(request)))


async def get_job_config(request: Request) -> JSONResponse:
    job = await job_of(request)
    return JSONResponse(job_answers.config(job, shown_options(job.configuration)))


async def get_job_exceptions(request: Request) -> JSONResponse:
    return JSONResponse(
        job_answers.exceptions(
            await job_of(request), number_of(request, "maxExceptions", job_answers.EXCEPTIONS)
        )
    )


async def get_execution_result(request: Request) -> JSONResponse:
    return JSONResponse(job_answers.execution_result(await job_of(request)))


async def cancel_job(request: Request) -> JSONResponse:
    mode = request.query_params.get("mode", "cancel")
    if mode != "cancel":
        raise bad_request(f"mode={mode}: only cancel is there; {_to_stop(request)}")
    return await cancel_of(request, job_id_of(request))


async def cancel_of(request: Request, job_id: JobId) -> JSONResponse:
    """Cancels the job."""
    try:
        job = await calls_of(request).execution_graph(job_id)
    except ProgramError as error:
        raise not_found(str(error)) from None
    if JOB.is_terminal(job.state) and job.state is not JobState.CANCELED:
        raise HTTPException(409, f"job {job.name!r} cannot be cancelled: it is {job.state.name}")
    await calls_of(request).cancel(job_id)
    return JSONResponse({}, 202)


async def cancel_by_get(request: Request) -> JSONResponse:
    """As Flink's page cancels, since proxies of YARN passed nothing but GET."""
    refuse_other_sites(request)
    return await cancel_of(request, job_id_of(request))


async def stop_by_get(request: Request) -> JSONResponse:
    """Flink has the route, too, and answers that it is no more."""
    refuse_other_sites(request)
    raise HTTPException(308, f"a job is stopped with a savepoint; {_to_stop(request)}")


def _to_stop(request: Request) -> str:
    return f"to stop a job with a savepoint: POST /jobs/{job_id_of(request)}/stop"


CHANGING_BY_GET = [  # whoever only reads, as what archives a job does, leaves these out
    Route("/jobs/{jobid}/yarn-cancel", cancel_by_get),
    Route("/jobs/{jobid}/yarn-stop", stop_by_get),
]
ROUTES = [
    Route("/jobs", get_jobs),
    Route("/jobs/overview", get_jobs_overview),
    Route("/jobs/{jobid}", get_job, methods=["GET"]),
    Route("/jobs/{jobid}", cancel_job, methods=["PATCH"]),
    Route("/jobs/{jobid}/status", get_job_status),
    Route("/jobs/{jobid}/plan", get_job_plan),
    Route("/jobs/{jobid}/config", get_job_config),
    Route("/jobs/{jobid}/exceptions", get_job_exceptions),
    Route("/jobs/{jobid}/execution-result", get_execution_result),
]
