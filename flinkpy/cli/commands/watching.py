"""Commands that show the jobs of a session."""

from __future__ import annotations

from pathlib import Path

import click

from flinkpy.cli.arguments import shared
from flinkpy.cli.arguments.parsing import Command


@click.command("list", cls=Command, short_help="List jobs.")
@shared.session_target
@click.option("-a", "--all", "everything", is_flag=True, help="Also the jobs that have ended.")
@click.option("-r", "--running", is_flag=True, help="Only jobs that run.")
@click.option(
    "-s", "--scheduled", is_flag=True, help="Only jobs that do not run yet; with -r both."
)
@shared.definitions
@shared.conf
def list_jobs(
    target: str | None,
    everything: bool,
    running: bool,
    scheduled: bool,
    definitions: tuple[str, ...],
    conf: Path | None,
) -> None:
    """List the jobs of the session on Ray (-D cluster.id=NAME names one other than `default`).

    With -a and -D jobmanager.archive.fs.dir=FOLDER also the archived ones of clusters that are
    gone.

    \b
    flinkpy list -D cluster.id=nightly
    flinkpy list -a -D jobmanager.archive.fs.dir=s3://bucket/archive
    """
    from flinkpy.cli.jobs import WAITING, show_jobs
    from flinkpy.core.lifecycles import JOB, JobState

    wanted = {state for state in JobState if everything or not JOB.is_terminal(state)}
    if not everything and running != scheduled:
        wanted &= WAITING if scheduled else wanted - WAITING
    show_jobs(target, definitions, conf, everything, wanted)


@click.command("show", cls=Command, short_help="Show a job: vertices, failures, checkpoints.")
@shared.session_target
@shared.definitions
@shared.conf
@click.argument("job_id")
def show_job(
    target: str | None, definitions: tuple[str, ...], conf: Path | None, job_id: str
) -> None:
    """Show a job of the session on Ray: its vertices, the attempts of its subtasks, its failures
    and checkpoints; the first digits of its id are enough.

    \b
    flinkpy show 2f8a
    """
    from flinkpy.cli.shown.shown_job import show_job

    show_job(target, definitions, conf, job_id)


@click.command(cls=Command, short_help="Serve the archives of jobs that have ended.")
@shared.definitions
@shared.conf
def history(definitions: tuple[str, ...], conf: Path | None) -> None:
    """Serve the archives of jobs that have ended (-D historyserver.archive.fs.dir=FOLDER), until it
    is interrupted.

    Jobs are archived by clusters with the option jobmanager.archive.fs.dir. It answers the same
    REST requests as a cluster.

    \b
    flinkpy history -D historyserver.archive.fs.dir=s3://bucket/archive
    """
    from flinkpy.cli.shown.archived_jobs import serve_history

    serve_history(definitions, conf)


@click.command(cls=Command, short_help="Watch what jobs are busy with.")
@shared.session_target
@click.option(
    "-i",
    "--interval",
    type=click.FloatRange(min=0.1),
    default=2.0,
    metavar="SECONDS",
    help="Until the next picture (default: 2).",
)
@click.option(
    "-n",
    "--count",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many pictures (default: until Ctrl-C).",
)
@shared.definitions
@shared.conf
def top(
    target: str | None,
    interval: float,
    count: int | None,
    definitions: tuple[str, ...],
    conf: Path | None,
) -> None:
    """Watch what the jobs of the session on Ray are busy with: the busiest vertex first.

    \b
    flinkpy top -i 5
    """
    from flinkpy.cli.shown.top import show_top

    show_top(target, definitions, conf, interval, count)
