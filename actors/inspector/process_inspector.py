"""ProcessInspector: answers what people want to know of one process. It has a thread of its own, so neither a TaskExecutor nor a JobMaster is
held up by those who watch, and it answers while they are busy. It reads, and changes nothing.
"""

from __future__ import annotations

from flinkpy.actors.inspector.inspector_gateway import INSPECTOR, ProcessFigures, ProcessInspectorGateway
from flinkpy.actors.inspector.process_figures import process_figures
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.service import RpcService
from flinkpy.runtime.runner_port import TaskRunner


class ProcessInspector(RpcEndpoint):
    """Flink's MetricQueryService is its likeness. ``runner`` runs the tasks of this process's TaskExecutor; None in a JobManager's process."""

    gateway = ProcessInspectorGateway

    def __init__(self, service: RpcService, runner: TaskRunner | None = None) -> None:
        super().__init__(service, INSPECTOR)
        self._runner = runner

    def request_figures(self) -> ProcessFigures:
        return process_figures(self.service.clock.time_ms())
