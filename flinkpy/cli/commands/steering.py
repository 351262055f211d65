"""Commands that stop a running job or take a snapshot of it."""

from __future__ import annotations

from pathlib import Path

import click

from flinkpy.cli.arguments import shared
from flinkpy.cli.arguments.parsing import Command, refused


@click.command(cls=Command, short_help="Cancel a job.")
@shared.session_target
@click.option(
    "-s",
    "--with-savepoint",
    "--withSavepoint",
    "folder",
    is_flag=False,
    flag_value="",
    metavar="[FOLDER]",
    hidden=True,
)
@shared.definitions
@shared.conf
@click.argument("job_id", required=False)
def cancel(
    target: str | None,
    folder: str | None,
    definitions: tuple[str, ...],
    conf: Path | None,
    job_id: str | None,
) -> None:
    """Cancel a job of the session on Ray; the first digits of its id are enough.

    \b
    flinkpy cancel 2f8a
    flinkpy stop 2f8a           (with a savepoint, to go on from)
    """
    if folder is not None and job_id is None:  # as Flink's: what stands alone behind -s is the job
        folder, job_id = None, folder
    elif folder is None:
        from flinkpy.cli.jobs import cancel_job

        cancel_job(target, definitions, conf, _job(job_id))
        return
    from flinkpy.cli.savepoints import ask_for_snapshot
    from flinkpy.core.elements import SnapshotType

    ask_for_snapshot(target, definitions, conf, _job(job_id), SnapshotType.SUSPEND, folder or None)


def _job(job_id: str | None) -> str:
    if not job_id:
        raise click.UsageError("Missing argument 'JOB_ID'.")
    return job_id


@click.command(cls=Command, short_help="Stop a job with a savepoint.")
@shared.session_target
@click.option(
    "-p",
    "--savepoint-path",
    "--savepointPath",
    "folder",
    metavar="FOLDER",
    help=(
        "Where the savepoint gets a folder of its own (default: "
        "execution.checkpointing.savepoint-dir)."
    ),
)
@click.option(
    "-d",
    "--drain",
    is_flag=True,
    help="End the sources first, so that windows and timers fire: for a job that is not to go on.",
)
@shared.form
@shared.detached
@shared.definitions
@shared.conf
@click.argument("job_id")
def stop(
    target: str | None,
    folder: str | None,
    drain: bool,
    form: str | None,
    detached: bool,
    definitions: tuple[str, ...],
    conf: Path | None,
    job_id: str,
) -> None:
    """Stop a job of the session on Ray with a savepoint, from which it can go on (flinkpy run -s).

    \b
    flinkpy stop -p s3://bucket/savepoints 2f8a
    flinkpy run -s s3://bucket/savepoints/savepoint-2f8a01-c97e33 job.py
    """
    from flinkpy.cli.savepoints import ask_for_snapshot
    from flinkpy.core.elements import SnapshotType

    ask_for_snapshot(
        target,
        definitions,
        conf,
        job_id,
        SnapshotType.TERMINATE if drain else SnapshotType.SUSPEND,
        folder,
        form,
        detached,
    )


@click.command(cls=Command, short_help="Take or remove a savepoint.")
@shared.session_target
@click.option(
    "-d", "--dispose", metavar="PATH", help="Remove the savepoint in this folder; no job is asked."
)
@shared.form
@shared.detached
@shared.definitions
@shared.conf
@click.argument("job_id", required=False)
@click.argument("folder", required=False)
def savepoint(
    target: str | None,
    dispose: str | None,
    form: str | None,
    detached: bool,
    definitions: tuple[str, ...],
    conf: Path | None,
    job_id: str | None,
    folder: str | None,
) -> None:
    """Take a savepoint of a job of the session on Ray, which goes on; it gets a folder of its own
    in FOLDER (default: execution.checkpointing.savepoint-dir).

    \b
    flinkpy savepoint 2f8a s3://bucket/savepoints
    flinkpy savepoint --dispose s3://bucket/savepoints/savepoint-2f8a01-c97e33
    """
    from flinkpy.cli import savepoints
    from flinkpy.core.elements import SnapshotType

    if dispose is None and job_id is not None:
        savepoints.ask_for_snapshot(
            target, definitions, conf, job_id, SnapshotType.SAVEPOINT, folder, form, detached
        )
    elif dispose is not None and job_id is None:
        savepoints.dispose(dispose)
    else:
        raise click.UsageError(
            "name a job to take a savepoint of, or with --dispose a savepoint to remove"
        )


@click.command(cls=Command, short_help="Take a checkpoint now.")
@shared.session_target
@refused(
    "-full",
    "--full",
    is_flag=True,
    instead=(
        "a checkpoint shares files with those before it where they are incremental; one with "
        "files of its own is a savepoint: flinkpy savepoint JOB"
    ),
)
@click.option(
    "-inc", "-incremental", "--incremental", is_flag=True, hidden=True, expose_value=False
)
@shared.definitions
@shared.conf
@click.argument("job_id")
def checkpoint(
    target: str | None, definitions: tuple[str, ...], conf: Path | None, job_id: str
) -> None:
    """Take a checkpoint of a job of the session on Ray now, without waiting until it is due.

    \b
    flinkpy checkpoint 2f8a
    """
    from flinkpy.cli.savepoints import ask_for_snapshot
    from flinkpy.core.elements import SnapshotType

    ask_for_snapshot(target, definitions, conf, job_id, SnapshotType.CHECKPOINT)
