"""``flinkpy session start | list | stop``, and ``stop-cluster``: the clusters on Ray that outlive
programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flinkpy.cli.run import gather
from flinkpy.cli.tell import tell
from flinkpy.core.options.engine import CLUSTER_NAME, Target
from flinkpy.core.options.rest import REST_ENABLED
from flinkpy.core.options.schema import read

if TYPE_CHECKING:
    from flinkpy.cluster.ray.ray_sessions import RunningCluster


def start(name: str | None, definitions: Sequence[str], conf: Path | None) -> None:
    """Starts the session and prints how to use it."""
    from flinkpy.cluster.ray.ray_sessions import running_clusters, start_session

    settings = _settings(name, definitions, conf)
    fresh = start_session(settings)
    cluster_id = read(settings, CLUSTER_NAME)
    use = (
        "-t ray-session"
        if cluster_id == CLUSTER_NAME.default
        else f"-t ray-session -D {CLUSTER_NAME.key}={cluster_id}"
    )
    tell(
        f"{'started' if fresh else 'there is already'} the flinkpy session {cluster_id!r}; "
        f"`flinkpy run {use} JOB.py` uses it"
    )
    if read(settings, REST_ENABLED):
        _show_rest(
            [cluster for cluster in running_clusters(settings) if cluster.name == cluster_id]
        )


def stop(name: str | None, definitions: Sequence[str], conf: Path | None) -> None:
    """Ends the session and its workers."""
    from flinkpy.cluster.ray.ray_sessions import stop_session

    settings = _settings(name, definitions, conf)
    stopped = stop_session(settings)
    cluster_id = read(settings, CLUSTER_NAME)
    tell(
        f"stopped the flinkpy session {cluster_id!r}; Ray keeps running (`ray stop` ends it)"
        if stopped
        else f"there is no flinkpy session {cluster_id!r}"
    )


def show_sessions(definitions: Sequence[str], conf: Path | None) -> None:
    """Prints a table of the sessions."""
    from flinkpy.cluster.ray.ray_sessions import running_clusters

    found = running_clusters(_settings(None, definitions, conf))
    if not found:
        tell("no flinkpy sessions on this Ray cluster")
    else:
        for line in session_table(found):
            tell(line)
        _show_rest(found)


def _show_rest(clusters: Sequence[RunningCluster]) -> None:
    for cluster in clusters:
        if cluster.info is not None and cluster.info.rest:
            tell(f"{cluster.name} in the browser: {cluster.info.rest}")


def session_table(clusters: Sequence[RunningCluster]) -> list[str]:
    """Returns a line for each session, under a heading."""
    rows: list[tuple[str, ...]] = [("NAME", "KIND", "JOBS", "WORKERS", "SLOTS", "FREE", "VERSION")]
    for cluster in clusters:
        kind = (
            "?"
            if cluster.info is None
            else "application"
            if cluster.info.is_application
            else "session"
        )
        view = cluster.overview
        numbers = (
            (view.jobs_running, view.task_executors, view.slots_total, view.slots_free)
            if view is not None
            else ("?",) * 4
        )
        rows.append(
            (
                cluster.name,
                kind,
                *map(str, numbers),
                cluster.info.version if cluster.info is not None else "does not answer",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows
    ]


def _settings(name: str | None, definitions: Sequence[str], conf: Path | None) -> dict[str, Any]:
    settings = gather(conf, definitions, None, Target.RAY.value)
    if name is not None:
        settings[CLUSTER_NAME.key] = name
    return settings
