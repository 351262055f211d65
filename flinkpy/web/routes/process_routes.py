"""The processes of the cluster: TaskExecutors and the JobManager, their threads and logs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo
from flinkpy.actors.inspector.inspector_gateway import LogFile, ProcessFigures
from flinkpy.core.errors import RpcError
from flinkpy.core.lifecycles import JOB
from flinkpy.web.answers import process_answers, task_manager_answers
from flinkpy.web.failed_requests import not_found
from flinkpy.web.json_response import JSONResponse
from flinkpy.web.log_stream import log_response
from flinkpy.web.requests import calls_of, inspectors_of, job_of, task_executor_of
from flinkpy.web.rest_services import services_of

AddressOf = Callable[[Request], Awaitable[str]]
"""The address of the inspector of the process that a request means."""


async def get_task_managers(request: Request) -> JSONResponse:
    executors = await inspectors_of(request).task_executors()
    return JSONResponse(
        task_manager_answers.listed(
            executors, task_manager_answers.tasks_of(await _running(request))
        )
    )


async def get_figures(request: Request) -> JSONResponse:
    told = await inspectors_of(request).ask_all(
        "figures", lambda inspector: inspector.request_figures()
    )
    return JSONResponse(task_manager_answers.figures(told))


async def _running(request: Request) -> list[ExecutionGraphInfo]:
    """The jobs that have tasks somewhere, as far as their JobMasters answer."""
    calls = calls_of(request)
    asked = [
        calls.execution_graph(job.job_id)
        for job in await calls.jobs()
        if not JOB.is_terminal(job.state)
    ]
    return [
        each
        for each in await asyncio.gather(*asked, return_exceptions=True)
        if isinstance(each, ExecutionGraphInfo)
    ]


async def get_task_manager(request: Request) -> JSONResponse:
    executor = await task_executor_of(request)
    figures: ProcessFigures | None = None
    try:
        figures = await inspectors_of(request).ask(
            executor.process.inspector, "figures", lambda inspector: inspector.request_figures()
        )
    except RpcError:
        pass  # what the ResourceManager knows is told all the same
    return JSONResponse(
        task_manager_answers.details(
            executor, figures, task_manager_answers.tasks_of(await _running(request))
        )
    )


async def get_configuration(request: Request) -> JSONResponse:
    return JSONResponse(process_answers.configuration(services_of(request).options))


async def get_environment(request: Request) -> JSONResponse:
    return JSONResponse(process_answers.environment())


async def get_configuration_of_job(request: Request) -> JSONResponse:
    """That of the JobManager that runs the job."""
    await job_of(request)
    return await get_configuration(request)


async def get_environment_of_job(request: Request) -> JSONResponse:
    await job_of(request)
    return await get_environment(request)


async def _address_of_task_manager(request: Request) -> str:
    return (await task_executor_of(request)).process.inspector


async def _address_of_job_manager(request: Request) -> str:
    return inspectors_of(request).job_manager


def _of_process(path: str, address_of: AddressOf) -> list[Route]:
    """The routes below ``path``, which are the same for every process."""

    async def logs_of(request: Request) -> tuple[str, tuple[LogFile, ...]]:
        address = await address_of(request)
        return address, await inspectors_of(request).ask(
            address, "logs", lambda inspector: inspector.list_logs()
        )

    async def get_thread_dump(request: Request) -> JSONResponse:
        address = await address_of(request)
        threads = await inspectors_of(request).ask(
            address, "threads", lambda inspector: inspector.request_thread_dump()
        )
        return JSONResponse(process_answers.thread_dump(threads))

    async def get_logs(request: Request) -> JSONResponse:
        return JSONResponse(process_answers.logs((await logs_of(request))[1]))

    async def get_named_log(request: Request) -> Response:
        address, files = await logs_of(request)
        name = request.path_params["filename"]
        for file in files:
            if file.name == name:
                return log_response(request, address, file)
        raise not_found(f"this process has no log {name!r:.80}")

    async def get_log(request: Request) -> Response:
        address, files = await logs_of(request)
        found = process_answers.main_log(files)
        if found is None:
            raise not_found(
                "this process logs into no file: its standard error is a terminal or a pipe, "
                "and no handler of logging has a file"
            )
        return log_response(request, address, found)

    async def get_output(request: Request) -> Response:
        address, files = await logs_of(request)
        found = process_answers.output(files)
        if found is None:
            raise not_found("the standard output of this process goes into no file")
        return log_response(request, address, found)

    return [
        Route(f"{path}/thread-dump", get_thread_dump),
        Route(f"{path}/logs", get_logs),
        Route(f"{path}/logs/{{filename}}", get_named_log),
        Route(f"{path}/log", get_log),
        Route(f"{path}/stdout", get_output),
    ]


ROUTES = [
    Route("/taskmanagers", get_task_managers),
    # Flink has it not; before the next one: it is no TaskManager
    Route("/taskmanagers/figures", get_figures),
    Route("/taskmanagers/{taskmanagerid}", get_task_manager),
    *_of_process("/taskmanagers/{taskmanagerid}", _address_of_task_manager),
    Route("/jobmanager/config", get_configuration),
    Route("/jobmanager/environment", get_environment),
    Route("/jobs/{jobid}/jobmanager/config", get_configuration_of_job),
    Route("/jobs/{jobid}/jobmanager/environment", get_environment_of_job),
    *_of_process("/jobmanager", _address_of_job_manager),
]
