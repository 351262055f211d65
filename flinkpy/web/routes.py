"""Flink's v1 routes. Each is served with and without ``/v1`` in front."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from flinkpy.actors.gateways import SavepointRequest, SavepointStatus
from flinkpy.core.elements import SavepointFormatType, SnapshotType
from flinkpy.core.errors import ProgramError, SavepointError
from flinkpy.core.ids import IdFactory
from flinkpy.core.options.checkpointing import CheckpointSettings
from flinkpy.state.checkpoints.locations import absolute
from flinkpy.web.answers import checkpoint_answers, cluster_answers, job_answers, metric_answers, savepoint_answers, vertex_answers
from flinkpy.web.failed_requests import bad_request, not_found
from flinkpy.web.requests import body_of, calls_of, field, job_id_of, job_of, vertex_of
from flinkpy.web.shown_configuration import shown


def answer(content: Any, status: int = 200) -> JSONResponse:
    return JSONResponse(content, status)


# -- the cluster -------------------------------------------------------------------------------------------------------------------


async def get_config(request: Request) -> JSONResponse:
    now = datetime.fromtimestamp(calls_of(request).clock.time_ms() / 1000, timezone.utc)
    return answer(cluster_answers.config(now.astimezone()))


async def get_overview(request: Request) -> JSONResponse:
    calls = calls_of(request)
    return answer(cluster_answers.overview(await calls.cluster(), await calls.jobs()))


async def get_jars(request: Request) -> JSONResponse:
    return answer({"address": str(request.base_url), "files": []})


# -- jobs --------------------------------------------------------------------------------------------------------------------------


async def get_jobs(request: Request) -> JSONResponse:
    return answer(job_answers.ids_and_states(await calls_of(request).jobs()))


async def get_jobs_overview(request: Request) -> JSONResponse:
    calls = calls_of(request)
    return answer(job_answers.overview(await calls.jobs(), calls.clock.time_ms()))


async def get_job(request: Request) -> JSONResponse:
    return answer(job_answers.details(await job_of(request)))


async def get_job_status(request: Request) -> JSONResponse:
    return answer({"status": (await job_of(request)).state.name})


async def get_job_plan(request: Request) -> JSONResponse:
    return answer(job_answers.plan(await job_of(request)))


async def get_job_config(request: Request) -> JSONResponse:
    job = await job_of(request)
    return answer(job_answers.config(job, shown(job.configuration)))


async def get_job_exceptions(request: Request) -> JSONResponse:
    return answer(job_answers.exceptions(await job_of(request), _number(request, "maxExceptions", job_answers.EXCEPTIONS)))


async def get_job_accumulators(request: Request) -> JSONResponse:
    await job_of(request)
    return answer(job_answers.accumulators((await calls_of(request).metrics(job_id_of(request))).accumulators))


async def get_job_metrics(request: Request) -> JSONResponse:
    return answer(metric_answers.listed(metric_answers.of_job(await job_of(request)), request.query_params.get("get")))


async def get_checkpoints(request: Request) -> JSONResponse:
    return answer(checkpoint_answers.statistics(await job_of(request)))


async def get_checkpoint_config(request: Request) -> JSONResponse:
    return answer(checkpoint_answers.config(CheckpointSettings.of((await job_of(request)).configuration)))


async def cancel_job(request: Request) -> JSONResponse:
    mode = request.query_params.get("mode", "cancel")
    if mode != "cancel":
        raise bad_request(f"mode={mode}: only cancel is there; to stop a job with a savepoint: POST /jobs/{job_id_of(request)}/stop")
    await job_of(request)
    await calls_of(request).cancel(job_id_of(request))
    return answer({}, 202)


# -- vertices ----------------------------------------------------------------------------------------------------------------------


async def get_vertex(request: Request) -> JSONResponse:
    return answer(vertex_answers.details(*await vertex_of(request)))


async def get_subtask_times(request: Request) -> JSONResponse:
    return answer(vertex_answers.subtask_times(*await vertex_of(request)))


async def get_vertex_task_managers(request: Request) -> JSONResponse:
    return answer(vertex_answers.task_managers(*await vertex_of(request)))


async def get_back_pressure(request: Request) -> JSONResponse:
    return answer(vertex_answers.back_pressure(*await vertex_of(request)))


async def get_vertex_metrics(request: Request) -> JSONResponse:
    _, vertex = await vertex_of(request)
    return answer(metric_answers.listed(metric_answers.of_vertex(vertex), request.query_params.get("get")))


async def get_subtask_metrics(request: Request) -> JSONResponse:
    _, vertex = await vertex_of(request)
    try:
        return answer(metric_answers.aggregated(vertex, request.query_params.get("get"), request.query_params.get("agg")))
    except ValueError as error:
        raise bad_request(str(error)) from None


# -- savepoints and checkpoints that are asked for ---------------------------------------------------------------------------------


async def trigger_savepoint(request: Request) -> JSONResponse:
    body = await body_of(request)
    kind = SnapshotType.SUSPEND if field(body, bool, "cancel-job") else SnapshotType.SAVEPOINT
    return await _trigger(request, body, kind)


async def stop_job(request: Request) -> JSONResponse:
    body = await body_of(request)
    return await _trigger(request, body, SnapshotType.TERMINATE if field(body, bool, "drain") else SnapshotType.SUSPEND)


async def trigger_checkpoint(request: Request) -> JSONResponse:
    return await _trigger(request, await body_of(request), SnapshotType.CHECKPOINT)


async def _trigger(request: Request, body: dict[str, Any], kind: SnapshotType) -> JSONResponse:
    await job_of(request)
    trigger_id = field(body, str, "triggerId", "trigger-id") or IdFactory().hex()
    directory = field(body, str, "target-directory", "targetDirectory")
    form = field(body, str, "formatType") or SavepointFormatType.NATIVE.name
    if form.upper() not in SavepointFormatType.__members__:
        raise bad_request(f"formatType is NATIVE or CANONICAL, this is {form!r:.80}")
    wanted = SavepointRequest(trigger_id, kind, None if directory is None else absolute(directory), SavepointFormatType[form.upper()])
    await calls_of(request).savepoint(job_id_of(request), wanted)
    return answer(savepoint_answers.trigger(trigger_id), 202)


async def get_savepoint(request: Request) -> JSONResponse:
    job_id, trigger_id = job_id_of(request), request.path_params["triggerid"]
    wanted = calls_of(request).asked_savepoint(job_id, trigger_id)
    if wanted is None:
        raise not_found(f"nobody has asked for a savepoint {trigger_id} of job {job_id} here")
    try:
        return answer(savepoint_answers.status(await calls_of(request).savepoint(job_id, wanted)))
    except ProgramError as error:
        raise not_found(str(error)) from None
    except SavepointError as error:
        return answer(savepoint_answers.status(SavepointStatus(trigger_id, is_over=True, error=error)))


def _number(request: Request, name: str, default: int) -> int:
    value = request.query_params.get(name)
    if value is None:
        return default
    if not value.isdigit() or int(value) < 1:
        raise bad_request(f"{name} is a whole number from 1 on, this is {value!r:.80}")
    return int(value)


V1 = [
    Route("/config", get_config),
    Route("/overview", get_overview),
    Route("/jars", get_jars),
    Route("/jobs", get_jobs),
    Route("/jobs/overview", get_jobs_overview),
    Route("/jobs/{jobid}", get_job, methods=["GET"]),
    Route("/jobs/{jobid}", cancel_job, methods=["PATCH"]),
    Route("/jobs/{jobid}/status", get_job_status),
    Route("/jobs/{jobid}/plan", get_job_plan),
    Route("/jobs/{jobid}/config", get_job_config),
    Route("/jobs/{jobid}/exceptions", get_job_exceptions),
    Route("/jobs/{jobid}/accumulators", get_job_accumulators),
    Route("/jobs/{jobid}/metrics", get_job_metrics),
    Route("/jobs/{jobid}/checkpoints", get_checkpoints, methods=["GET"]),
    Route("/jobs/{jobid}/checkpoints", trigger_checkpoint, methods=["POST"]),
    Route("/jobs/{jobid}/checkpoints/config", get_checkpoint_config),
    Route("/jobs/{jobid}/checkpoints/{triggerid}", get_savepoint),
    Route("/jobs/{jobid}/savepoints", trigger_savepoint, methods=["POST"]),
    Route("/jobs/{jobid}/savepoints/{triggerid}", get_savepoint),
    Route("/jobs/{jobid}/stop", stop_job, methods=["POST"]),
    Route("/jobs/{jobid}/vertices/{vertexid}", get_vertex),
    Route("/jobs/{jobid}/vertices/{vertexid}/metrics", get_vertex_metrics),
    Route("/jobs/{jobid}/vertices/{vertexid}/subtasks/metrics", get_subtask_metrics),
    Route("/jobs/{jobid}/vertices/{vertexid}/subtasktimes", get_subtask_times),
    Route("/jobs/{jobid}/vertices/{vertexid}/taskmanagers", get_vertex_task_managers),
    Route("/jobs/{jobid}/vertices/{vertexid}/backpressure", get_back_pressure),
]
ROUTES = [Mount("/v1", routes=V1), *V1]
