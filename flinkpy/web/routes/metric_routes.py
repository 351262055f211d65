"""Metrics: of jobs, vertices, subtasks, TaskExecutors and the JobManager, one by one and
aggregated; and all of them for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from flinkpy.actors.execution_graph_info import SubtaskInfo
from flinkpy.actors.task_executor_info import ProcessDescription
from flinkpy.core.errors import ProgramError
from flinkpy.core.ids import ExecutionVertexId, JobId, JobVertexId
from flinkpy.core.lifecycles import EXECUTION
from flinkpy.core.options.metrics import PROMETHEUS, REPORTERS
from flinkpy.metrics.readings import TaskReading, Value
from flinkpy.web.answers import metric_answers
from flinkpy.web.failed_requests import bad_request, not_found
from flinkpy.web.json_response import JSONResponse
from flinkpy.web.metric_fetcher import MetricFetcher
from flinkpy.web.requests import calls_of, job_of, task_executor_of, vertex_of
from flinkpy.web.rest_services import services_of


def fetcher_of(request: Request) -> MetricFetcher:
    return services_of(request).metrics


def _listed(request: Request, values: Mapping[str, Any]) -> JSONResponse:
    return JSONResponse(metric_answers.listed(values, request.query_params.get("get")))


def _listed_of_process(
    request: Request, values: Mapping[str, Value], physical_memory: int
) -> JSONResponse:
    """Those who name metrics may name them as Flink's."""
    is_named = "get" in request.query_params and bool(values)
    return _listed(
        request, metric_answers.as_of_java(values, physical_memory) if is_named else values
    )


def _aggregated(request: Request, each: Iterable[Mapping[str, Value]]) -> JSONResponse:
    try:
        return JSONResponse(
            metric_answers.aggregated(
                each, request.query_params.get("get"), request.query_params.get("agg")
            )
        )
    except ValueError as error:
        raise bad_request(str(error)) from None


def _chosen(request: Request, parameter: str) -> set[str] | None:
    """Those that a parameter names, with commas between; None: all."""
    named = request.query_params.get(parameter)
    return None if named is None else set(named.split(","))


async def _of_subtasks(request: Request) -> list[tuple[SubtaskInfo, dict[str, Value]]]:
    """Each subtask of the vertex with its metrics: as its TaskExecutor reports them now, or, for a
    subtask that has ended, as it reported them last."""
    job, vertex = await vertex_of(request)
    tasks = (await fetcher_of(request).reading()).tasks
    found: dict[ExecutionVertexId, TaskReading] = {}
    if any(EXECUTION.is_terminal(each.state) for each in vertex.subtasks):
        found = {
            last.attempt_id.vertex: last
            for last in (await calls_of(request).metrics(job.job_id)).last
        }
    ids = [ExecutionVertexId(JobVertexId(vertex.vertex_id), each.index) for each in vertex.subtasks]
    return [
        (
            each,
            metric_answers.of_subtask(
                each,
                *(
                    told
                    for told in (tasks.get((job.job_id, one)), found.get(one))
                    if told is not None
                ),
            ),
        )
        for each, one in zip(vertex.subtasks, ids)
    ]


async def get_metrics_of_jobs(request: Request) -> JSONResponse:
    chosen, calls = _chosen(request, "jobs"), calls_of(request)
    found = []
    for job in await calls.jobs():
        if chosen is None or job.job_id in chosen:
            try:
                found.append(metric_answers.of_job(await calls.execution_graph(JobId(job.job_id))))
            except ProgramError:  # forgotten meanwhile
                continue
    return _aggregated(request, found)


async def get_job_metrics(request: Request) -> JSONResponse:
    return _listed(request, metric_answers.of_job(await job_of(request)))


async def get_vertex_metrics(request: Request) -> JSONResponse:
    return _listed(request, metric_answers.of_vertex(await _of_subtasks(request)))


async def get_metrics_of_subtasks(request: Request) -> JSONResponse:
    return _aggregated(request, [values for _, values in await _of_subtasks(request)])


async def get_subtask_metrics(request: Request) -> JSONResponse:
    wanted = request.path_params["subtaskindex"]
    for subtask, values in await _of_subtasks(request):
        if subtask.index == wanted:
            return _listed(request, values)
    raise not_found(f"vertex {request.path_params['vertexid']} has no subtask {wanted}")


async def get_watermarks(request: Request) -> JSONResponse:
    return JSONResponse(metric_answers.watermarks(await _of_subtasks(request)))


async def get_lowest_watermarks(request: Request) -> JSONResponse:
    """The loads of all vertices in one answer, from the tasks that run."""
    job, tasks = await job_of(request), (await fetcher_of(request).reading()).tasks
    vertices = []
    for vertex in job.vertices:
        ids = [
            ExecutionVertexId(JobVertexId(vertex.vertex_id), each.index) for each in vertex.subtasks
        ]
        told = [tasks[job.job_id, one].flat_values() for one in ids if (job.job_id, one) in tasks]
        vertices.append((vertex.vertex_id, told))
    return JSONResponse({"vertices": metric_answers.lowest_watermarks(vertices)})


async def get_coordinator_metrics(request: Request) -> JSONResponse:
    """None: enumerators have no metrics."""
    await vertex_of(request)
    return _listed(request, {})


async def get_metrics_of_task_managers(request: Request) -> JSONResponse:
    chosen, reading = _chosen(request, "taskmanagers"), await fetcher_of(request).reading()
    return _aggregated(
        request,
        [
            each.values
            for name, each in reading.task_managers.items()
            if chosen is None or name in chosen
        ],
    )


async def get_task_manager_metrics(request: Request) -> JSONResponse:
    executor = await task_executor_of(request)
    reading = (await fetcher_of(request).reading()).task_managers.get(executor.resource_id)
    return _listed_of_process(
        request, {} if reading is None else reading.values, executor.process.physical_memory
    )


async def get_job_manager_metrics(request: Request) -> JSONResponse:
    overview, reading = await calls_of(request).cluster(), await fetcher_of(request).reading()
    values = {**metric_answers.of_cluster(overview), **reading.job_manager.values}
    return _listed_of_process(
        request, values, ProcessDescription.of_this_process("").physical_memory
    )


async def get_prometheus(request: Request) -> Response:
    if PROMETHEUS not in services_of(request).reporters:
        raise not_found(
            f"/metrics is there for Prometheus, with the option {REPORTERS.key}: {PROMETHEUS}"
        )
    from flinkpy.metrics.prometheus import CONTENT_TYPE, exposition

    return Response(exposition(await fetcher_of(request).samples()), media_type=CONTENT_TYPE)


PROMETHEUS_ROUTES = [Route("/metrics", get_prometheus)]
ROUTES = [
    Route("/jobs/metrics", get_metrics_of_jobs),
    Route("/jobs/{jobid}/metrics", get_job_metrics),
    # Flink has it not: its page asks for each vertex
    Route("/jobs/{jobid}/watermarks", get_lowest_watermarks),
    Route("/jobs/{jobid}/vertices/{vertexid}/metrics", get_vertex_metrics),
    Route("/jobs/{jobid}/vertices/{vertexid}/subtasks/metrics", get_metrics_of_subtasks),
    Route(
        "/jobs/{jobid}/vertices/{vertexid}/subtasks/{subtaskindex:int}/metrics", get_subtask_metrics
    ),
    Route("/jobs/{jobid}/vertices/{vertexid}/watermarks", get_watermarks),
    Route("/jobs/{jobid}/vertices/{vertexid}/jm-operator-metrics", get_coordinator_metrics),
    Route("/taskmanagers/metrics", get_metrics_of_task_managers),
    Route("/taskmanagers/{taskmanagerid}/metrics", get_task_manager_metrics),
    Route("/jobmanager/metrics", get_job_manager_metrics),
]
