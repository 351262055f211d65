"""Savepoints and checkpoints that are asked for."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from flinkpy.actors.gateways import SavepointRequest, SavepointStatus
from flinkpy.core.elements import SavepointFormatType, SnapshotType
from flinkpy.core.errors import ProgramError, SavepointError
from flinkpy.core.ids import IdFactory
from flinkpy.state.checkpoints.locations import absolute
from flinkpy.web.answers import savepoint_answers
from flinkpy.web.failed_requests import bad_request, not_found
from flinkpy.web.json_response import JSONResponse
from flinkpy.web.requests import body_of, calls_of, check_fields, field, job_id_of, job_of

_ID = ("triggerId", "trigger-id")


async def trigger_savepoint(request: Request) -> JSONResponse:
    body = await body_of(request)
    check_fields(body, "target-directory", "cancel-job", "formatType", *_ID)
    kind = SnapshotType.SUSPEND if field(body, bool, "cancel-job") else SnapshotType.SAVEPOINT
    return await _trigger(request, body, kind)


async def stop_job(request: Request) -> JSONResponse:
    body = await body_of(request)
    check_fields(body, "targetDirectory", "drain", "formatType", *_ID)
    return await _trigger(
        request,
        body,
        SnapshotType.TERMINATE if field(body, bool, "drain") else SnapshotType.SUSPEND,
    )


async def trigger_checkpoint(request: Request) -> JSONResponse:
    body = await body_of(request)
    check_fields(body, "checkpointType", *_ID)
    return await _trigger(request, body, SnapshotType.CHECKPOINT)


async def _trigger(request: Request, body: dict[str, Any], kind: SnapshotType) -> JSONResponse:
    await job_of(request)
    trigger_id = field(body, str, *_ID) or IdFactory().hex()
    directory = field(body, str, "target-directory", "targetDirectory")
    form = field(body, str, "formatType") or SavepointFormatType.NATIVE.name
    if form.upper() not in SavepointFormatType.__members__:
        raise bad_request(f"formatType is NATIVE or CANONICAL, this is {form!r:.80}")
    wanted = SavepointRequest(
        trigger_id,
        kind,
        None if directory is None else absolute(directory),
        SavepointFormatType[form.upper()],
    )
    await calls_of(request).savepoint(job_id_of(request), wanted)
    return JSONResponse(savepoint_answers.trigger(trigger_id), 202)


async def get_savepoint(request: Request) -> JSONResponse:
    return JSONResponse(savepoint_answers.status(await _status(request)))


async def get_checkpoint(request: Request) -> JSONResponse:
    return JSONResponse(savepoint_answers.checkpoint_status(await _status(request)))


async def _status(request: Request) -> SavepointStatus:
    job_id, trigger_id = job_id_of(request), request.path_params["triggerid"]
    wanted = calls_of(request).asked_savepoint(job_id, trigger_id)
    if wanted is None:
        raise not_found(f"nobody has asked for a savepoint {trigger_id} of job {job_id} here")
    try:
        return await calls_of(request).savepoint(job_id, wanted)
    except ProgramError as error:
        raise not_found(str(error)) from None
    except SavepointError as error:
        return SavepointStatus(trigger_id, is_over=True, error=error)


ROUTES = [
    Route("/jobs/{jobid}/checkpoints", trigger_checkpoint, methods=["POST"]),
    Route("/jobs/{jobid}/checkpoints/{triggerid}", get_checkpoint),
    Route("/jobs/{jobid}/savepoints", trigger_savepoint, methods=["POST"]),
    Route("/jobs/{jobid}/savepoints/{triggerid}", get_savepoint),
    Route("/jobs/{jobid}/stop", stop_job, methods=["POST"]),
]
