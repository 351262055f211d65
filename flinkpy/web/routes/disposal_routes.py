"""Savepoints that are no longer wanted."""

from __future__ import annotations

import asyncio

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import Route

from flinkpy.core.ids import IdFactory
from flinkpy.state.checkpoints.locations import absolute
from flinkpy.state.checkpoints.stored_checkpoints import dispose_savepoint
from flinkpy.state.checkpoints.stores_of_locations import file_store_of
from flinkpy.web.answers import savepoint_answers
from flinkpy.web.failed_requests import bad_request, not_found
from flinkpy.web.json_response import JSONResponse
from flinkpy.web.requests import body_of, check_fields, field
from flinkpy.web.rest_services import services_of
from flinkpy.web.shared_answers import keep_latest


async def dispose(request: Request) -> JSONResponse:
    """Begins to delete the savepoint."""
    body = await body_of(request)
    check_fields(body, "savepoint-path")
    path = field(body, str, "savepoint-path")
    if not path:
        raise bad_request("savepoint-path names the savepoint's folder")
    trigger_id, location = IdFactory().hex(), absolute(path)
    disposals = services_of(request).disposals
    disposals[trigger_id] = asyncio.ensure_future(
        run_in_threadpool(lambda: dispose_savepoint(file_store_of(location), location))
    )
    keep_latest(disposals)
    return JSONResponse(savepoint_answers.trigger(trigger_id))


async def get_disposal(request: Request) -> JSONResponse:
    trigger_id = request.path_params["triggerid"]
    asked = services_of(request).disposals.get(trigger_id)
    if asked is None:
        raise not_found(f"nobody has asked for a disposal {trigger_id} here")
    return JSONResponse(
        savepoint_answers.disposal_status(asked.done(), asked.exception() if asked.done() else None)
    )


ROUTES = [
    Route("/savepoint-disposal", dispose, methods=["POST"]),
    Route("/savepoint-disposal/{triggerid}", get_disposal),
]
