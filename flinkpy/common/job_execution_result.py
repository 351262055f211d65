"""What a finished job leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flinkpy.common.job_id import JobID


class JobExecutionResult:
    """Id, net run time and accumulators of a job that finished."""

    def __init__(self, job_id: str, name: str, net_runtime_ms: int, accumulators: Mapping[str, Any]) -> None:
        self._job_id, self.name, self._net_runtime_ms, self._accumulators = JobID(job_id), name, net_runtime_ms, dict(accumulators)

    def get_job_id(self) -> JobID:
        return self._job_id

    def get_net_runtime(self) -> int:
        """Milliseconds from the start of the job to its end."""
        return self._net_runtime_ms

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The value of that accumulator; None when the job had none of that name."""
        return self._accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        return dict(self._accumulators)

    def __repr__(self) -> str:
        return f"<JobExecutionResult {self.name!r} {self._job_id}: {self._net_runtime_ms} ms>"
