"""The checkpoints of a job."""

from __future__ import annotations

from starlette.requests import Request
from starlette.routing import Route

from flinkpy.scheduler.checkpointing.checkpoint_statistics import CheckpointStatistics
from flinkpy.web.answers import checkpoint_answers
from flinkpy.web.failed_requests import bad_request, not_found
from flinkpy.web.json_response import JSONResponse
from flinkpy.web.requests import job_of


async def get_checkpoints(request: Request) -> JSONResponse:
    return JSONResponse(checkpoint_answers.statistics((await job_of(request)).checkpoint_history))


async def get_checkpoint_config(request: Request) -> JSONResponse:
    return JSONResponse(checkpoint_answers.config((await job_of(request)).configuration))


async def get_checkpoint(request: Request) -> JSONResponse:
    return JSONResponse(checkpoint_answers.details(await _checkpoint_of(request)))


async def get_checkpoint_of_vertex(request: Request) -> JSONResponse:
    checkpoint, vertex_id = await _checkpoint_of(request), request.path_params["vertexid"]
    for vertex in checkpoint.vertices:
        if vertex.vertex_id == vertex_id:
            return JSONResponse(checkpoint_answers.vertex_details(checkpoint, vertex))
    raise not_found(f"checkpoint {checkpoint.checkpoint_id} has no vertex {vertex_id}")


async def _checkpoint_of(request: Request) -> CheckpointStatistics:
    """The checkpoint that the path names."""
    job, number = await job_of(request), request.path_params["checkpointid"]
    if not number.isdecimal():
        raise bad_request(f"a checkpoint has a number, this is {number!r:.80}")
    found = job.checkpoint_history.find(int(number[:20]))
    if found is None:
        raise not_found(
            f"job {job.job_id} has no checkpoint {number[:20]}, or it is not among the latest "
            "any more (web.checkpoints.history)"
        )
    return found


ROUTES = [
    Route("/jobs/{jobid}/checkpoints", get_checkpoints, methods=["GET"]),
    Route("/jobs/{jobid}/checkpoints/config", get_checkpoint_config),
    Route("/jobs/{jobid}/checkpoints/details/{checkpointid}", get_checkpoint),
    Route(
        "/jobs/{jobid}/checkpoints/details/{checkpointid}/subtasks/{vertexid}",
        get_checkpoint_of_vertex,
    ),
]
