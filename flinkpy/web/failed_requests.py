"""What went wrong with a request, as Flink writes it: a status, and JSON with the errors."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from flinkpy.core.errors import FlinkpyError, ProgramError, RpcError, SavepointError
from flinkpy.web.json_response import JSONResponse


def failed(status: int, message: str) -> JSONResponse:
    return JSONResponse({"errors": [message]}, status)


def not_found(message: str) -> HTTPException:
    return HTTPException(404, message)


def bad_request(message: str) -> HTTPException:
    return HTTPException(400, message)


async def on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = (
        f"{request.scope['path']} is not there"
        if error.status_code == 404 and error.detail == "Not Found"
        else error.detail
    )
    response = failed(error.status_code, message)
    response.headers.update(error.headers or {})
    return response


async def on_error(request: Request, error: Exception) -> Response:
    """An error of the cluster in its own words; a fault of this endpoint without its inside."""
    if isinstance(error, (ProgramError, SavepointError)):
        return failed(409, str(error))
    if isinstance(error, RpcError):
        return failed(503, f"the cluster does not answer: {error}")
    if isinstance(error, FlinkpyError):
        return failed(500, str(error))
    return failed(
        500, f"{type(error).__name__} in the REST endpoint; the JobManager's log has more"
    )


HANDLERS: Any = {HTTPException: on_http_error, FlinkpyError: on_error, Exception: on_error}
