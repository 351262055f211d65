"""The vertices of a job, and their subtasks."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route

from flinkpy.core.ids import JobVertexId, ResourceId
from flinkpy.web.answers import flame_graph_answers, vertex_answers
from flinkpy.web.failed_requests import bad_request, not_found
from flinkpy.web.json_response import JSONResponse
from flinkpy.web.requests import attempt_of, inspectors_of, job_of, subtask_of, vertex_of


async def get_loads(request: Request) -> JSONResponse:
    return JSONResponse(vertex_answers.loads(await job_of(request)))


async def get_vertex(request: Request) -> JSONResponse:
    return JSONResponse(vertex_answers.details(*await vertex_of(request)))


async def get_subtask(request: Request) -> JSONResponse:
    job, _, subtask = await subtask_of(request)
    return JSONResponse(vertex_answers.attempt(subtask, job.at_ms))


async def get_attempt(request: Request) -> JSONResponse:
    job, _, attempt = await attempt_of(request)
    return JSONResponse(vertex_answers.attempt(attempt, job.at_ms))


async def get_resource_requirements(request: Request) -> JSONResponse:
    return JSONResponse(vertex_answers.resource_requirements(await job_of(request)))


async def refuse_to_rescale(request: Request) -> JSONResponse:
    job = await job_of(request)
    raise HTTPException(
        501,
        "the parallelism of a running job cannot be changed: stop it (POST "
        f"/jobs/{job.job_id}/stop) and start it from its "
        "savepoint with another parallelism",
    )


async def get_subtask_times(request: Request) -> JSONResponse:
    return JSONResponse(vertex_answers.subtask_times(*await vertex_of(request)))


async def get_attempts(request: Request) -> JSONResponse:
    return JSONResponse(vertex_answers.attempts(*await vertex_of(request)))


async def get_vertex_task_managers(request: Request) -> JSONResponse:
    return JSONResponse(vertex_answers.task_managers(*await vertex_of(request)))


async def get_back_pressure(request: Request) -> JSONResponse:
    return JSONResponse(vertex_answers.back_pressure(*await vertex_of(request)))


async def get_flame_graph(request: Request) -> JSONResponse:
    job, vertex = await vertex_of(request)
    kind = request.query_params.get("type", "full").lower()
    only = request.query_params.get("subtaskindex")
    if kind not in flame_graph_answers.KINDS:
        raise bad_request(
            f"type is one of {', '.join(flame_graph_answers.KINDS)}, this is {kind!r:.80}"
        )
    wanted = [each for each in vertex.subtasks if only is None or str(each.index) == only]
    if not wanted:
        raise not_found(f"vertex {vertex.vertex_id} has no subtask {only!r:.80}")
    places: dict[ResourceId, list[int]] = {}
    for subtask in wanted:
        if subtask.location is not None:
            places.setdefault(subtask.location.resource_id, []).append(subtask.index)
    vertex_id = JobVertexId(vertex.vertex_id)
    found = await inspectors_of(request).ask_all(
        f"samples {job.job_id} {vertex_id}",
        lambda inspector: inspector.sample_vertex(job.job_id, vertex_id),
        places,
    )
    return JSONResponse(
        flame_graph_answers.graph(
            job.at_ms, kind, [(places[place], samples) for place, samples in found.items()]
        )
    )


ROUTES = [
    Route("/jobs/{jobid}/loads", get_loads),  # Flink has it not: its page asks for each vertex
    Route("/jobs/{jobid}/vertices/{vertexid}", get_vertex),
    Route("/jobs/{jobid}/resource-requirements", get_resource_requirements, methods=["GET"]),
    Route("/jobs/{jobid}/resource-requirements", refuse_to_rescale, methods=["PUT"]),
    Route("/jobs/{jobid}/rescaling", refuse_to_rescale, methods=["PATCH"]),
    Route("/jobs/{jobid}/vertices/{vertexid}/subtasks/{subtaskindex:int}", get_subtask),
    Route(
        "/jobs/{jobid}/vertices/{vertexid}/subtasks/{subtaskindex:int}/attempts/{attempt}",
        get_attempt,
    ),
    Route("/jobs/{jobid}/vertices/{vertexid}/subtasktimes", get_subtask_times),
    # Flink has it not: it tells of one attempt at a time
    Route("/jobs/{jobid}/vertices/{vertexid}/attempts", get_attempts),
    Route("/jobs/{jobid}/vertices/{vertexid}/taskmanagers", get_vertex_task_managers),
    Route("/jobs/{jobid}/vertices/{vertexid}/backpressure", get_back_pressure),
    Route("/jobs/{jobid}/vertices/{vertexid}/flamegraph", get_flame_graph),
]
