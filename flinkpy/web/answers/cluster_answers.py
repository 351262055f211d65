"""The cluster as a whole: what Flink's page asks first, and how many TaskExecutors, slots and jobs there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from flinkpy import __version__
from flinkpy.actors.gateways import ClusterOverview, JobOverview
from flinkpy.core.lifecycles import JOB, JobState

REFRESH_MS = 3000  # how often Flink's page asks


def config(now: datetime) -> dict[str, Any]:
    """``now`` is in the cluster's time zone."""
    offset = now.utcoffset()
    return {
        "refresh-interval": REFRESH_MS, "timezone-name": now.tzname() or "UTC",
        "timezone-offset": 0 if offset is None else round(offset.total_seconds() * 1000),
        "flink-version": __version__, "flink-revision": "flinkpy",
        "features": {"web-submit": False, "web-cancel": True, "web-rescale": False, "web-history": False},
    }


def overview(cluster: ClusterOverview, jobs: Iterable[JobOverview]) -> dict[str, Any]:
    states = Counter(job.state for job in jobs)
    return {
        "taskmanagers": cluster.task_executors, "slots-total": cluster.slots_total, "slots-available": cluster.slots_free,
        "jobs-running": sum(count for state, count in states.items() if not JOB.is_terminal(state)),
        "jobs-finished": states[JobState.FINISHED], "jobs-cancelled": states[JobState.CANCELED], "jobs-failed": states[JobState.FAILED],
        "flink-version": __version__, "flink-commit": "flinkpy",
    }
