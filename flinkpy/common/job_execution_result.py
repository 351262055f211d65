"""The result of a finished job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flinkpy.common.job_id import JobID
from flinkpy.metrics.reported import without_metrics


class JobExecutionResult:
    """The id, net run time and accumulators of a finished job."""

    def __init__(
        self, job_id: str, name: str, net_runtime_ms: int, accumulators: Mapping[str, Any]
    ) -> None:
        self._job_id = JobID(job_id)
        self.name = name
        self._net_runtime_ms = net_runtime_ms
        self._accumulators, self._metrics = without_metrics(accumulators)

    def get_job_id(self) -> JobID:
        return self._job_id

    def get_net_runtime(self) -> int:
        """The milliseconds from the job's start to its end; -1 if it was submitted detached."""
        return self._net_runtime_ms

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The accumulator's value; None if the job had none of that name."""
        return self._accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        return dict(self._accumulators)

    def get_metrics(self) -> dict[str, Any]:
        """The functions' metrics at the end of their tasks, by identifier: ``Map.0.late`` is that
        of the first subtask of Map."""
        return dict(self._metrics)

    def __repr__(self) -> str:
        return f"<JobExecutionResult {self.name!r} {self._job_id}: {self._net_runtime_ms} ms>"
