"""Savepoints that are no longer wanted."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

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
from flinkpy.web.shared_answers import keep_latest


async def dispose(request: Request) -> JSONResponse:
    """Begins to delete the savepoint."""
    body = await body_of(request)
    check_fields(body, "savepoint-path")
    path = field(body, str, "savepoint-path")
    if not path:
        raise bad_request("savepoint-path names the savepoint's folder")
    trigger_id, location = IdFactory().hex(), absolute(path)
    disposals = _disposals(request)
    disposals[trigger_id] = asyncio.ensure_future(
        run_in_threadpool(lambda: dispose_savepoint(file_store_of(location), location))
    )
    keep_latest(disposals)
    return JSONResponse(savepoint_answers.trigger(trigger_id))


async def get_disposal(request: Request) -> JSONResponse:
    trigger_id = request.path_params["triggerid"]
    asked = _disposals(request).get(trigger_id)
    if asked is None:
        raise not_found(f"nobody has asked for a disposal {trigger_id} here")
    return JSONResponse(
        savepoint_answers.disposal_status(asked.done(), asked.exception() if asked.done() else None)
    )


def _disposals(request: Request) -> OrderedDict[str, asyncio.Future[None]]:
    """Those that were asked for here, by id."""
    state = request.app.state
    if not hasattr(state, "disposals"):
        state.disposals = OrderedDict()
    disposals: OrderedDict[str, asyncio.Future[None]] = state.disposals
    return disposals


ROUTES = [
    Route("/savepoint-disposal", dispose, methods=["POST"]),
    Route("/savepoint-disposal/{triggerid}", get_disposal),
]
