"""What a request says: ids in its path, parameters, a JSON body. Each raises a 400 or 404 that says
what is wrong."""

from __future__ import annotations

import json
import re
from typing import Any

from starlette.requests import Request

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo, SubtaskInfo, VertexInfo
from flinkpy.actors.task_executor_info import TaskExecutorInfo
from flinkpy.core.errors import ProgramError
from flinkpy.core.ids import JobId
from flinkpy.web.dispatcher_calls import DispatcherCalls
from flinkpy.web.failed_requests import bad_request, not_found
from flinkpy.web.inspector_calls import InspectorCalls
from flinkpy.web.rest_services import services_of

_NUMBER = re.compile(r"[0-9]{1,18}")


def calls_of(request: Request) -> DispatcherCalls:
    return services_of(request).calls


def inspectors_of(request: Request) -> InspectorCalls:
    inspectors = services_of(request).inspectors
    if inspectors is None:
        raise not_found("there are no processes to look into here")
    return inspectors


async def task_executor_of(request: Request) -> TaskExecutorInfo:
    """The TaskExecutor that the path names."""
    wanted = request.path_params["taskmanagerid"]
    for found in await inspectors_of(request).task_executors():
        if found.resource_id == wanted:
            return found
    raise not_found(f"there is no TaskExecutor {wanted!r:.80} (any more)")


def job_id_of(request: Request) -> JobId:
    return JobId(request.path_params["jobid"])


async def job_of(request: Request) -> ExecutionGraphInfo:
    """The job that the path names."""
    try:
        return await calls_of(request).execution_graph(job_id_of(request))
    except ProgramError as error:
        raise not_found(str(error)) from None


async def vertex_of(request: Request) -> tuple[ExecutionGraphInfo, VertexInfo]:
    """The job and the vertex that the path names."""
    job, vertex_id = await job_of(request), request.path_params["vertexid"]
    for vertex in job.vertices:
        if vertex.vertex_id == vertex_id:
            return job, vertex
    raise not_found(f"job {job.job_id} has no vertex {vertex_id}")


async def subtask_of(request: Request) -> tuple[ExecutionGraphInfo, VertexInfo, SubtaskInfo]:
    """The job, the vertex, and the subtask that the path names."""
    job, vertex = await vertex_of(request)
    index = request.path_params["subtaskindex"]
    for subtask in vertex.subtasks:
        if subtask.index == index:
            return job, vertex, subtask
    raise not_found(f"vertex {vertex.vertex_id} has no subtask {index}: they are counted from 0")


async def attempt_of(request: Request) -> tuple[ExecutionGraphInfo, VertexInfo, SubtaskInfo]:
    """The same with the attempt that the path names."""
    job, vertex, subtask = await subtask_of(request)
    number = request.path_params["attempt"]
    for attempt in (subtask, *subtask.earlier):
        if str(attempt.attempt) == number:
            return job, vertex, attempt
    raise not_found(
        f"subtask {subtask.index} has no attempt {number:.20}, or it is too long ago "
        "(jobmanager.execution.attempts-history-size)"
    )


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object in the body; an empty body is an empty object."""
    data = await request.body()
    if not data.strip():
        return {}
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"the body is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise bad_request("the body is a JSON object")
    return found


def check_fields(body: dict[str, Any], *known: str) -> None:
    """A misspelt ``drain`` must not stop a job without draining it."""
    unknown = [name for name in body if name not in known]
    if unknown:
        raise bad_request(
            f"{unknown[0]!r:.80} is no field of this request; these are: {', '.join(known)}"
        )


def field(body: dict[str, Any], kind: type[Any], *names: str) -> Any:
    """The first of these fields that is there; null is as not there."""
    for name in names:
        value = body.get(name)
        if value is not None:
            if not isinstance(value, kind):
                raise bad_request(f"{name} is a {kind.__name__}, this is {value!r:.80}")
            return value
    return None


def number_of(request: Request, name: str, default: int) -> int:
    value = request.query_params.get(name)
    if value is None:
        return default
    if _NUMBER.fullmatch(value) is None or int(value) < 1:
        raise bad_request(f"{name} is a whole number from 1 on, this is {value!r:.80}")
    return int(value)
