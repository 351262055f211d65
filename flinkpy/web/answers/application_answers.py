"""Jobs as Flink tells of applications."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flinkpy.actors.gateways import JobOverview
from flinkpy.core.lifecycles import JobState
from flinkpy.web.answers import job_answers
from flinkpy.web.answers.states import UNKNOWN

# An application has fewer states than a job
_STATUSES = {
    JobState.INITIALIZING: "CREATED",
    JobState.CREATED: "CREATED",
    JobState.RUNNING: "RUNNING",
    JobState.RESTARTING: "RUNNING",
    JobState.SUSPENDED: "RUNNING",
    JobState.FAILING: "FAILING",
    JobState.FAILED: "FAILED",
    JobState.CANCELLING: "CANCELING",
    JobState.CANCELED: "CANCELED",
    JobState.FINISHED: "FINISHED",
}


def overview(jobs: Iterable[JobOverview], now_ms: int) -> dict[str, Any]:
    return {
        "applications": [{**_summary(job, now_ms), "jobs": {job.state.name: 1}} for job in jobs]
    }


def details(job: JobOverview, now_ms: int) -> dict[str, Any]:
    """With its one job, as the overview of jobs has it."""
    return {**_summary(job, now_ms), "jobs": job_answers.overview([job], now_ms)["jobs"]}


def _summary(job: JobOverview, now_ms: int) -> dict[str, Any]:
    return {
        "id": job.job_id,
        "name": job.name,
        "status": _STATUSES[job.state],
        "start-time": job.start_ms,
        "end-time": UNKNOWN if job.end_ms is None else job.end_ms,
        "duration": (now_ms if job.end_ms is None else job.end_ms) - job.start_ms,
    }
