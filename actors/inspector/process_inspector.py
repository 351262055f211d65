"""ProcessInspector: answers what people want to know of one process. It has a thread of its own, so
neither a TaskExecutor nor a JobMaster is held up by those who watch, and it answers while they are
busy. It reads, and changes nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from flinkpy.actors.inspector.frame_sampler import FrameSampler
from flinkpy.actors.inspector.inspector_gateway import (
    INSPECTOR,
    LogFile,
    ProcessFigures,
    ProcessInspectorGateway,
    StackSample,
    ThreadInfo,
)
from flinkpy.actors.inspector.log_files import FindLogs, LogFiles, logs_of_this_process
from flinkpy.actors.inspector.process_figures import process_figures
from flinkpy.actors.inspector.thread_dump import thread_dump
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.service import RpcService
from flinkpy.core.futures import Future
from flinkpy.core.ids import JobId, JobVertexId
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.metrics.readings import ProcessReading
from flinkpy.runtime.runner_port import TaskRunner

# how long the metrics of functions are waited for, as a function may not return for long
FUNCTIONS_S = 0.5

log = engine_logger("flinkpy.inspector")


class ProcessInspector(RpcEndpoint):
    """Answers for the metrics, threads and logs of its process, as Flink's MetricQueryService does
    for metrics. ``runner`` runs the tasks of this process's TaskExecutor; None in a JobManager's
    process."""

    gateway = ProcessInspectorGateway

    def __init__(
        self,
        service: RpcService,
        runner: TaskRunner | None = None,
        find_logs: FindLogs = logs_of_this_process,
    ) -> None:
        super().__init__(service, INSPECTOR)
        self._runner, self._logs = runner, LogFiles(find_logs)
        self._sampler = None if runner is None else FrameSampler(runner.glance, service.clock)

    def on_stop(self) -> None:
        if self._sampler is not None:
            self._sampler.stop()

    def on_uncaught_error(self, error: Exception) -> bool:
        """Figures that cannot be had must not end the process."""
        log.error("%s could not tell something", self.address, exc_info=error)
        return True

    def request_figures(self) -> ProcessFigures:
        figures = process_figures(self.service.clock.time_ms())
        return figures if self._runner is None else replace(figures, memory=self._runner.memory())

    def request_thread_dump(self) -> tuple[ThreadInfo, ...]:
        return thread_dump()

    def list_logs(self) -> Future[tuple[LogFile, ...]]:
        return self.service.run_in_background(self, self._logs.listed)

    def read_log(self, name: str, offset: int, size: int) -> Future[bytes]:
        return self.service.run_in_background(self, partial(self._logs.read, name, offset, size))

    def sample_vertex(self, job_id: JobId, vertex_id: JobVertexId) -> tuple[StackSample, ...]:
        return () if self._sampler is None else self._sampler.samples_of(job_id, vertex_id)

    def request_metrics(self) -> Future[ProcessReading]:
        answer: Future[ProcessReading] = Future()
        if self._runner is None:
            answer.complete(self._reading())
            return answer

        def tell() -> None:
            if not answer.done:
                answer.complete(self._reading())

        patience = self.schedule_run_async(FUNCTIONS_S, tell)
        self._runner.read_functions(lambda: self.run_async(tell))
        answer.add_done_callback(lambda _: patience.cancel())
        return answer

    def _reading(self) -> ProcessReading:
        reading = ProcessReading() if self._runner is None else self._runner.reading()
        return replace(reading, values={**reading.values, **python_values(self.request_figures())})


def python_values(figures: ProcessFigures) -> dict[str, float]:
    """The figures as metrics."""
    return {
        "Status.Python.Threads.Count": figures.threads,
        "Status.Python.Memory.RSS": figures.rss,
        "Status.Python.CPU.Time": figures.cpu_s,
        "Status.Python.GarbageCollector.Count": sum(figures.collections),
        "Status.Python.GarbageCollector.Collected": sum(figures.collected),
    }
