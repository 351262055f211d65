"""ProcessInspector: answers what people want to know of one process. It has a thread of its own, so neither a TaskExecutor nor a JobMaster is
held up by those who watch, and it answers while they are busy. It reads, and changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from flinkpy.actors.inspector.inspector_gateway import INSPECTOR, ProcessFigures, ProcessInspectorGateway
from flinkpy.actors.inspector.process_figures import process_figures
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.service import RpcService
from flinkpy.core.futures import Future
from flinkpy.metrics.readings import ProcessReading
from flinkpy.runtime.runner_port import TaskRunner

FUNCTIONS_S = 0.5  # how long the metrics of functions are waited for, as a function may not return for long


class ProcessInspector(RpcEndpoint):
    """Flink's MetricQueryService is its likeness. ``runner`` runs the tasks of this process's TaskExecutor; None in a JobManager's process."""

    gateway = ProcessInspectorGateway

    def __init__(self, service: RpcService, runner: TaskRunner | None = None) -> None:
        super().__init__(service, INSPECTOR)
        self._runner = runner

    def request_figures(self) -> ProcessFigures:
        return process_figures(self.service.clock.time_ms())

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
        "Status.Python.Threads.Count": figures.threads, "Status.Python.Memory.RSS": figures.rss, "Status.Python.CPU.Time": figures.cpu_s,
        "Status.Python.GarbageCollector.Count": sum(figures.collections), "Status.Python.GarbageCollector.Collected": sum(figures.collected),
    }
