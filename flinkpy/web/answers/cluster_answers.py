"""The cluster as a whole: what Flink's page asks first, and how many TaskExecutors, slots and jobs
there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from flinkpy import __version__
from flinkpy.actors.gateways import ClusterOverview, JobOverview
from flinkpy.core.lifecycles import JOB, JobState

REFRESH_MS = 3000  # how often Flink's page asks


def config(now: datetime, *, is_history: bool = False) -> dict[str, Any]:
    """``now`` is in the cluster's time zone. ``is_history``: there is no cluster any more."""
    offset = now.utcoffset()
    return {
        "refresh-interval": REFRESH_MS,
        "timezone-name": now.tzname() or "UTC",
        "timezone-offset": 0 if offset is None else round(offset.total_seconds() * 1000),
        "flink-version": __version__,
        "flink-revision": "flinkpy",
        "features": {
            "web-submit": False,
            "web-cancel": not is_history,
            "web-rescale": False,
            "web-history": is_history,
        },
    }


def overview(cluster: ClusterOverview, jobs: Iterable[JobOverview]) -> dict[str, Any]:
    return _overview(cluster, Counter(job.state for job in jobs))


def overview_of_ended(states: Iterable[str]) -> dict[str, Any]:
    """The overview of a cluster that has gone, whose jobs ended in these states."""
    return _overview(ClusterOverview(0, 0, 0, 0), Counter(map(JobState.__getitem__, states)))


def _overview(cluster: ClusterOverview, states: Counter[JobState]) -> dict[str, Any]:
    return {
        "taskmanagers": cluster.task_executors,
        "slots-total": cluster.slots_total,
        "slots-available": cluster.slots_free,
        "jobs-running": sum(count for state, count in states.items() if not JOB.is_terminal(state)),
        "jobs-finished": states[JobState.FINISHED],
        "jobs-cancelled": states[JobState.CANCELED],
        "jobs-failed": states[JobState.FAILED],
        "flink-version": __version__,
        "flink-commit": "flinkpy",
    }
