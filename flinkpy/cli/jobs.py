"""``flinkpy list`` and ``cancel``: queries and commands to a session on Ray, from another
process."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import datetime
from pathlib import Path

from flinkpy.actors.gateways import JobOverview
from flinkpy.cli.run import gather
from flinkpy.cli.running_session import reach_session
from flinkpy.cli.shown.durations import duration
from flinkpy.cli.tell import tell
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.errors import FlinkpyError
from flinkpy.core.lifecycles import JOB, JobState
from flinkpy.core.options.history import ARCHIVE_FOLDER, HISTORY_FOLDERS
from flinkpy.core.options.schema import read

WAITING = frozenset({JobState.INITIALIZING, JobState.CREATED})
"""What a job is before it runs."""


def show_jobs(
    target: str | None,
    definitions: Sequence[str],
    conf: Path | None,
    everything: bool,
    wanted: Set[JobState],
) -> None:
    """Prints a table of jobs in these states; with ``everything`` also those that ended in clusters
    that are gone, if they are archived."""
    jobs = (
        _with_archived(target, definitions, conf)
        if everything
        else reach_session(target, definitions, conf).list_jobs()
    )
    shown = [job for job in jobs if job.state in wanted]
    if not shown:
        ended = sum(JOB.is_terminal(job.state) for job in jobs)
        tell(
            ("no jobs that wait" if wanted == WAITING else "no running jobs")
            + (f" ({ended} ended; -a shows them)" if ended else "")
        )
        return
    for line in job_table(shown, SYSTEM_CLOCK.time_ms()):
        tell(line)


def _with_archived(
    target: str | None, definitions: Sequence[str], conf: Path | None
) -> list[JobOverview]:
    settings = gather(conf, definitions, None, target)
    if read(settings, ARCHIVE_FOLDER) is None and read(settings, HISTORY_FOLDERS) is None:
        return reach_session(target, definitions, conf).list_jobs()
    from flinkpy.cli.shown.archived_jobs import archived_overviews

    archived = archived_overviews(settings)
    try:
        jobs = reach_session(target, definitions, conf).list_jobs()
    except FlinkpyError as error:
        tell(f"only archived jobs are shown: {error}", err=True)
        return archived
    known = {job.job_id for job in jobs}
    return [*jobs, *(job for job in archived if job.job_id not in known)]


def job_table(jobs: Sequence[JobOverview], now_ms: int) -> list[str]:
    """Returns a line for each job, under a heading."""
    rows = [("JOB ID", "STATE", "STARTED", "FOR", "TASKS", "NAME")]
    for job in jobs:
        started = datetime.fromtimestamp(job.start_ms / 1000).strftime("%Y-%m-%d %H:%M:%S")
        tasks = ", ".join(
            f"{count} {state.value.lower()}" for state, count in job.tasks.items() if count
        )
        rows.append(
            (
                job.job_id,
                job.state.value,
                started,
                duration((job.end_ms or now_ms) - job.start_ms),
                tasks,
                job.name,
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return [
        "  ".join([*(text.ljust(width) for text, width in zip(row, widths)), row[-1]])
        for row in rows
    ]


def cancel_job(
    target: str | None, definitions: Sequence[str], conf: Path | None, job_id: str
) -> None:
    """Cancels the job with that id, or the only one whose id begins with it."""
    session = reach_session(target, definitions, conf)
    job = session.find_job(job_id)
    if JOB.is_terminal(job.state):
        tell(f"{job.job_id} {job.name!r} has already ended: {job.state.value}")
        return
    session.job(job.job_id, job.name).cancel()
    tell(f"cancelling {job.job_id} {job.name!r}")
