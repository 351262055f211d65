"""``flinkpy``: the commands and their options. Each command is implemented in a module of its
own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from flinkpy.cli.arguments import shared
from flinkpy.cli.arguments.groups import Commands, tell_version
from flinkpy.cli.arguments.parsing import CheckpointFirst, noted, refused
from flinkpy.cli.arguments.program_options import chosen_program, claim_mode, program_options
from flinkpy.cli.tell import tell
from flinkpy.core.errors import FlinkpyError
from flinkpy.core.program.garbage import collect_rarely

# arguments after the script belong to it
_SCRIPT = {"ignore_unknown_options": False, "allow_interspersed_args": False}


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`flinkpy COMMAND -h` tells more, with examples.",
)
@click.option(
    "-v",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=tell_version,
    help="Tell the version and the commit.",
)
def flinkpy() -> None:
    """Run and watch stream processing jobs."""


@flinkpy.command(context_settings=_SCRIPT, short_help="Run the job in a file or a module.")
@shared.target
@shared.parallelism
@shared.definitions
@click.option(
    "-d",
    "--detached",
    is_flag=True,
    help="Return when the job has initialised, and print its id (on ray).",
)
@click.option(
    "-s",
    "--from-savepoint",
    "--fromSavepoint",
    metavar="PATH",
    help=(
        "Start from this savepoint or checkpoint: its folder, or the folder of a job for its "
        "newest checkpoint."
    ),
)
@click.option(
    "-n",
    "--allow-non-restored-state",
    "--allowNonRestoredState",
    is_flag=True,
    help=("With -s: leave state behind that no operator asks for."),
)
@claim_mode
@program_options
@click.option("-sae", "--shutdownOnAttachedExit", "ends_with_program", is_flag=True, hidden=True)
@shared.pyflink
@shared.conf
@shared.verbose
@click.argument("script", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def run(
    ctx: click.Context,
    target: str | None,
    parallelism: int | None,
    definitions: tuple[str, ...],
    detached: bool,
    from_savepoint: str | None,
    allow_non_restored_state: bool,
    module: str | None,
    python: str | None,
    ends_with_program: bool,
    pyflink: bool,
    conf: Path | None,
    verbose: bool,
    script: str | None,
    arguments: tuple[str, ...],
) -> None:
    """Run the job in SCRIPT; what follows SCRIPT are its own arguments.

    SCRIPT is a Python file, or a folder with a __main__.py. Ctrl-C and SIGTERM cancel the job. On
    Ray, what its tasks print is shown here, with the task's name. Flink's names of these options
    (-py, --pyModule ...) are taken too.

    \b
    flinkpy run -p 4 job.py --input data.csv
    flinkpy run -pyfs lib -m jobs.words -- -p 3          (-p 3 is the program's)
    flinkpy run -t ray-session -D cluster.id=nightly -d job.py
    flinkpy run -s /checkpoints/2f8a01c97e33 job.py
    """
    from flinkpy.cli.run import recovery, run_job

    program, arguments = chosen_program(script, arguments, module, python)
    definitions = (*definitions, *noted(ctx), *recovery(from_savepoint, allow_non_restored_state))
    sys.exit(
        run_job(
            program,
            arguments,
            is_module=module is not None,
            target=target,
            parallelism=parallelism,
            definitions=definitions,
            detached=detached,
            ends_with_program=ends_with_program,
            pyflink=pyflink,
            conf=conf,
            verbose=verbose,
        )
    )


@flinkpy.command(context_settings=_SCRIPT, short_help="Draw the plan of a job without running it.")
@shared.parallelism
@shared.definitions
@program_options
@shared.pyflink
@shared.conf
@shared.verbose
@click.argument("script", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def info(
    ctx: click.Context,
    parallelism: int | None,
    definitions: tuple[str, ...],
    module: str | None,
    python: str | None,
    pyflink: bool,
    conf: Path | None,
    verbose: bool,
    script: str | None,
    arguments: tuple[str, ...],
) -> None:
    """Draw the plan of the job in SCRIPT without running it.

    \b
    flinkpy info -p 4 job.py --input data.csv
    """
    from flinkpy.cli.info import show_plan

    program, arguments = chosen_program(script, arguments, module, python)
    sys.exit(
        show_plan(
            program,
            arguments,
            is_module=module is not None,
            parallelism=parallelism,
            definitions=(*definitions, *noted(ctx)),
            pyflink=pyflink,
            conf=conf,
            verbose=verbose,
        )
    )


@flinkpy.command(
    cls=CheckpointFirst,
    short_help="Replay a job from a checkpoint in a debugger.",
    context_settings=_SCRIPT,
    options_metavar="CHECKPOINT --operator NAME [OPTIONS]",
)
@click.option(
    "--operator",
    required=True,
    metavar="NAME",
    help="The operator at whose function the debugger stops: its name or uid.",
)
@click.option("--key", metavar="KEY", help="Stop only for this key, as str() or repr() shows it.")
@click.option(
    "--subtask",
    type=click.IntRange(min=0),
    metavar="N",
    help="Stop only in this subtask, counted from 0.",
)
@click.option("--only-errors", is_flag=True, help="Stop only where the function raises.")
@click.option(
    "-p",
    "--parallelism",
    type=click.IntRange(min=1),
    metavar="N",
    help="Another parallelism than the checkpoint has.",
)
@click.option(
    "-n",
    "--allow-non-restored-state",
    is_flag=True,
    help="Leave state behind that no operator asks for.",
)
@shared.definitions
@shared.pyflink
@shared.conf
@shared.verbose
@click.option("--checkpoint", hidden=True)
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def debug(
    operator: str,
    key: str | None,
    subtask: int | None,
    only_errors: bool,
    parallelism: int | None,
    allow_non_restored_state: bool,
    definitions: tuple[str, ...],
    pyflink: bool,
    conf: Path | None,
    verbose: bool,
    checkpoint: str | None,
    script: str,
    arguments: tuple[str, ...],
) -> None:
    """Replay the job in SCRIPT from CHECKPOINT in this process, under Python's debugger.

    The job reads on from the checkpoint, with all its state. At each record of the operator the
    debugger stops, at the first line of its function. Nothing is written: sinks drop what they get.

    \b
    flinkpy debug /checkpoints/2f8a01 --operator Score --key oslo job.py
    """
    if checkpoint is None:
        if not arguments:
            raise click.UsageError(
                "name the checkpoint and the program: flinkpy debug CHECKPOINT --operator "
                "NAME job.py"
            )
        checkpoint, script, arguments = script, arguments[0], arguments[1:]
    from flinkpy.cli.debug import debug_job
    from flinkpy.operators.debugging.debugged_operator import Stops

    sys.exit(
        debug_job(
            checkpoint,
            script,
            arguments,
            operator=operator,
            stops=Stops(key, subtask, only_errors),
            parallelism=parallelism,
            definitions=definitions,
            allow_non_restored_state=allow_non_restored_state,
            pyflink=pyflink,
            conf=conf,
            verbose=verbose,
        )
    )


@flinkpy.command(short_help="Open a prompt with an environment.")
@shared.target
@shared.parallelism
@shared.definitions
@shared.pyflink
@shared.conf
@click.option("--plain", is_flag=True, help="Python's own prompt, also where IPython is installed.")
def shell(
    target: str | None,
    parallelism: int | None,
    definitions: tuple[str, ...],
    pyflink: bool,
    conf: Path | None,
    plain: bool,
) -> None:
    """Open a prompt with an environment (env) and the common names.

    \b
    flinkpy shell
    flinkpy shell -t ray-session -p 4
    """
    from flinkpy.cli.shell import open_shell

    sys.exit(
        open_shell(
            target=target,
            parallelism=parallelism,
            definitions=definitions,
            pyflink=pyflink,
            conf=conf,
            plain=plain,
        )
    )


@flinkpy.command(short_help="Run SQL: a script, statements, or a prompt.")
@shared.target
@shared.parallelism
@shared.definitions
@shared.conf
@click.option("-e", "--execute", "statements", metavar="SQL", help="Run these statements.")
@click.option("-f", "--file", "script", metavar="FILE", help="Run the statements of a file.")
@click.option("-i", "--init", "first", metavar="FILE", help="Run these statements before.")
def sql(
    target: str | None,
    parallelism: int | None,
    definitions: tuple[str, ...],
    conf: Path | None,
    statements: str | None,
    script: str | None,
    first: str | None,
) -> None:
    """Run SQL from a file, the command line, or a prompt.

    Tables are bounded (BATCH) unless execution.runtime-mode says STREAMING. An error ends a script
    with exit code 1 and the line of its statement.

    \b
    flinkpy sql -e "SELECT 1 + 1"
    flinkpy sql -i tables.sql -f report.sql
    flinkpy sql -D execution.runtime-mode=STREAMING
    """
    collect_rarely()
    from flinkpy.cli.sql_client.sql_command import run_sql

    sys.exit(
        run_sql(
            statements=statements,
            script=script,
            first=first,
            target=target,
            parallelism=parallelism,
            definitions=definitions,
            conf=conf,
        )
    )


@flinkpy.command("list", short_help="List jobs.")
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


@flinkpy.command("show", short_help="Show a job: vertices, failures, checkpoints.")
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


@flinkpy.command(short_help="Serve the archives of jobs that have ended.")
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


@flinkpy.command(short_help="Watch what jobs are busy with.")
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


@flinkpy.command(short_help="Cancel a job.")
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


@flinkpy.command(short_help="Stop a job with a savepoint.")
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


@flinkpy.command(short_help="Take or remove a savepoint.")
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


@flinkpy.command(short_help="Take a checkpoint now.")
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


@flinkpy.group(cls=Commands)
def session() -> None:
    """Start, list and stop sessions on Ray.

    A session is a cluster that jobs of several programs share: its workers start with the jobs and
    end when idle, and it stays until it is stopped. Sessions of one Ray cluster do not see each
    other. A program uses the session named by -D cluster.id=NAME, without a name `default`, which
    starts by itself."""


@session.command("start", short_help="Start a session.")
@shared.definitions
@shared.conf
@shared.session_name
def start_session(name: str | None, definitions: tuple[str, ...], conf: Path | None) -> None:
    """Start the session NAME (`default` without one) with the options given; it runs until it is
    stopped.

    \b
    flinkpy session start nightly -D taskmanager.numberOfTaskSlots=4
    """
    from flinkpy.cli.session_commands import start

    start(name, definitions, conf)


@session.command("list", short_help="List sessions and programs' own clusters.")
@shared.definitions
@shared.conf
def list_sessions(definitions: tuple[str, ...], conf: Path | None) -> None:
    """List the sessions on the Ray cluster, and the clusters that programs run for themselves."""
    from flinkpy.cli.session_commands import show_sessions

    show_sessions(definitions, conf)


@session.command("stop", short_help="Cancel a session's jobs and end it.")
@shared.definitions
@shared.conf
@shared.session_name
def stop_session(name: str | None, definitions: tuple[str, ...], conf: Path | None) -> None:
    """Cancel all jobs of the session NAME (`default` without one) and end it. Ray itself keeps
    running.

    \b
    flinkpy session stop nightly
    """
    from flinkpy.cli.session_commands import stop

    stop(name, definitions, conf)


@flinkpy.command("stop-cluster")
@shared.definitions
@shared.conf
def stop_cluster(definitions: tuple[str, ...], conf: Path | None) -> None:
    """The same as `session stop`."""
    from flinkpy.cli.session_commands import stop

    stop(None, definitions, conf)


@flinkpy.group(cls=Commands)
def checkpoints() -> None:
    """Look into checkpoints and savepoints on disk. No job or cluster is needed."""


@checkpoints.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "-n",
    "--entries",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Also show the first N entries of each state.",
)
@click.option("--state", metavar="NAME", help="With -n: only of the states of this name.")
@click.argument("path")
def inspect(as_json: bool, entries: int, state: str | None, path: str) -> None:
    """List what a checkpoint or savepoint holds, and check its files.

    PATH is its folder, or the folder of a job, for the job's newest; a URL (s3://...) too. The exit
    code is 1 if a file is damaged.

    \b
    flinkpy checkpoints inspect -n 3 /checkpoints/2f8a01
    """
    from flinkpy.cli.checkpoint_commands import inspect

    sys.exit(inspect(path, as_json, entries, state))


@checkpoints.command()
@click.option(
    "--format",
    "format_type",
    type=click.Choice(["canonical", "native"]),
    default="canonical",
    help=(
        "canonical: a Parquet file for each state, for pandas, Spark and DuckDB; native: "
        "flinkpy's own."
    ),
)
@click.argument("path")
@click.argument("target")
def convert(format_type: str, path: str, target: str) -> None:
    """Write the checkpoint or savepoint PATH anew to the folder TARGET, in a form that other
    programs read.

    A job can start from both forms, with `run -s`. Run it where the program's own classes can be
    imported.

    \b
    flinkpy checkpoints convert /savepoints/savepoint-2f8a01 /tmp/as-parquet
    """
    from flinkpy.cli.checkpoint_commands import convert

    convert(path, target, format_type)


@flinkpy.command()
@click.argument("pattern", default="")
def options(pattern: str) -> None:
    """List all options, or those that contain PATTERN.

    \b
    flinkpy options checkpointing
    """
    from flinkpy.cli.options import show_options

    show_options(pattern)


@flinkpy.command()
@shared.definitions
@shared.conf
def memory(definitions: tuple[str, ...], conf: Path | None) -> None:
    """Show the parts of a process's memory.

    \b
    flinkpy memory -D taskmanager.memory.process.size=4g
    """
    from flinkpy.cli.shown.memory_parts import show_memory

    show_memory(definitions, conf)


def main(arguments: list[str] | None = None) -> Any:
    """The entry point. Prints an error of flinkpy as one message and exits with code 1."""
    try:
        return flinkpy(arguments, prog_name="flinkpy")
    except FlinkpyError as error:
        from flinkpy.cli.failures import describe

        tell(describe(error, verbose="-v" in sys.argv or "--verbose" in sys.argv), err=True)
        sys.exit(1)
