"""Cancellations of tasks whose functions do not return, noticed when their time
(``task.cancellation.timeout``) is over."""

from __future__ import annotations

from collections.abc import Iterable

from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.task_executor.worker_process import WorkerProcess
from flinkpy.core.ids import ExecutionAttemptId
from flinkpy.runtime.runner_port import TaskRunner


class Cancellations:
    """Cancels tasks of the TaskExecutor ``endpoint``, in whose main thread it lives. ``process``
    hears what hinders one that is past its time."""

    def __init__(self, endpoint: RpcEndpoint, runner: TaskRunner, process: WorkerProcess) -> None:
        self._endpoint = endpoint
        self._runner = runner
        self._process = process

    def cancel(self, attempt_ids: Iterable[ExecutionAttemptId]) -> None:
        patience_s = {self._runner.cancel(attempt_id) for attempt_id in attempt_ids}
        for seconds in patience_s - {0.0}:  # those of one job have the same
            self._endpoint.schedule_run_async(seconds, self.look_for_stuck)

    def look_for_stuck(self) -> None:
        overdue = self._runner.overdue()
        if overdue is not None:
            self._process.stuck(overdue)
