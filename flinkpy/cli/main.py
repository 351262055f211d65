"""``flinkpy``: the commands and their options. Each command is implemented in a module of its own."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Any

import click

from flinkpy import __version__
from flinkpy.cli.tell import tell
from flinkpy.core.errors import FlinkpyError

_TARGETS = click.Choice(["embedded", "ray", "ray-session", "ray-application"])
_target = click.option("-t", "--target", type=_TARGETS, help=(
    "Where it runs: embedded (this process), ray-session (a cluster on Ray that is shared; -D cluster.id=NAME names it), ray-application (one of "
    "its own, that ends with the program), or ray: the latter in a Ray job, else a session."))
_definitions = click.option("-D", "definitions", multiple=True, metavar="KEY=VALUE", help="Set an option; repeatable. `flinkpy options` lists them.")
_conf = click.option("--conf", type=click.Path(path_type=Path), help="The configuration file, or its folder (default: $FLINKPY_CONF_DIR).")
_pyflink = click.option("--pyflink", is_flag=True, help="A program written for PyFlink: `import pyflink` means flinkpy.")
_verbose = click.option("-v", "--verbose", is_flag=True, help="On failure, show the full traceback.")
_SCRIPT = {"ignore_unknown_options": False, "allow_interspersed_args": False}  # arguments after the script belong to it


_TYPES = click.Choice(["canonical", "native"], case_sensitive=False)
_type = click.option("--type", "form", type=_TYPES, help="The form of the files: native (default), or canonical, Parquet that others read.")


class Commands(click.Group):
    """Suggests the nearest command for an unknown one. After Ctrl-C a command ends with a signal's exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            from flinkpy.core.program.exit_codes import INTERRUPTED

            ctx.exit(INTERRUPTED)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1, cutoff=0.4)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            hint = f" To run a program: flinkpy run {args[0]}" if args[0].endswith(".py") else hint
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="flinkpy", message="%(prog)s %(version)s")
def flinkpy() -> None:
    """Run and watch stream processing jobs."""


@flinkpy.command(context_settings=_SCRIPT)
@_target
@click.option("-p", "--parallelism", type=click.IntRange(min=1), help="Parallelism of operators that set none.")
@_definitions
@click.option("-d", "--detached", is_flag=True, help="Return when the job has initialised, and print its id (on ray).")
@click.option("-s", "--from-savepoint", "--fromSavepoint", metavar="PATH", help=(
    "Start from this savepoint or checkpoint: its folder, or the folder of a job for its newest checkpoint."))
@click.option("-n", "--allow-non-restored-state", "--allowNonRestoredState", is_flag=True, help=(
    "With -s: leave state behind that no operator asks for."))
@_pyflink
@_conf
@_verbose
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(target: str | None, parallelism: int | None, definitions: tuple[str, ...], detached: bool, from_savepoint: str | None,
        allow_non_restored_state: bool, pyflink: bool, conf: Path | None, verbose: bool, script: str, arguments: tuple[str, ...]) -> None:
    """Run the job in SCRIPT; what follows SCRIPT are its own arguments.

    Ctrl-C and SIGTERM cancel the job. On Ray, what its tasks print is shown here, with the task's name.
    """
    from flinkpy.cli.run import recovery, run_job

    definitions = (*definitions, *recovery(from_savepoint, allow_non_restored_state))
    sys.exit(run_job(script, arguments, target=target, parallelism=parallelism, definitions=definitions, detached=detached,
                     pyflink=pyflink, conf=conf, verbose=verbose))


@flinkpy.command(context_settings=_SCRIPT)
@click.option("-p", "--parallelism", type=click.IntRange(min=1), help="Parallelism of operators that set none.")
@_definitions
@_pyflink
@_conf
@_verbose
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def info(parallelism: int | None, definitions: tuple[str, ...], pyflink: bool, conf: Path | None, verbose: bool, script: str,
         arguments: tuple[str, ...]) -> None:
    """Draw the plan of the job in SCRIPT without running it."""
    from flinkpy.cli.info import show_plan

    sys.exit(show_plan(script, arguments, parallelism=parallelism, definitions=definitions, pyflink=pyflink, conf=conf, verbose=verbose))


class _CheckpointFirst(click.Command):
    """Takes CHECKPOINT before the options, where people write it, as well as among them and behind them. What follows SCRIPT belongs to it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = self._first_argument(args)
        is_followed_by_option = any(each.startswith("-") for each in args[at + 1 : at + 2])
        named = ["--checkpoint"] if at < len(args) and (at == 0 or is_followed_by_option) else []
        return super().parse_args(ctx, [*args[:at], *named, *args[at:]])

    def _first_argument(self, args: list[str]) -> int:
        """The position of the first that is neither an option nor its value."""
        with_value = {name for each in self.params if isinstance(each, click.Option) and not each.is_flag for name in each.opts}
        at = 0
        while at < len(args) and args[at].startswith("-"):
            at += 2 if args[at] in with_value else 1
        return at


@flinkpy.command(cls=_CheckpointFirst, context_settings=_SCRIPT, options_metavar="CHECKPOINT --operator NAME [OPTIONS]")
@click.option("--operator", required=True, metavar="NAME", help="The operator at whose function the debugger stops: its name or uid.")
@click.option("--key", metavar="KEY", help="Stop only for this key, as str() or repr() shows it.")
@click.option("--subtask", type=click.IntRange(min=0), help="Stop only in this subtask, counted from 0.")
@click.option("--only-errors", is_flag=True, help="Stop only where the function raises.")
@click.option("-p", "--parallelism", type=click.IntRange(min=1), help="Another parallelism than the checkpoint has.")
@click.option("-n", "--allow-non-restored-state", is_flag=True, help="Leave state behind that no operator asks for.")
@_definitions
@_pyflink
@_conf
@_verbose
@click.option("--checkpoint", hidden=True)
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def debug(operator: str, key: str | None, subtask: int | None, only_errors: bool, parallelism: int | None, allow_non_restored_state: bool,
          definitions: tuple[str, ...], pyflink: bool, conf: Path | None, verbose: bool, checkpoint: str | None, script: str,
          arguments: tuple[str, ...]) -> None:
    """Replay the job in SCRIPT from CHECKPOINT in this process, under Python's debugger.

    The job reads on from the checkpoint, with all its state. At each record of the operator the debugger stops, at the first line of its
    function. Nothing is written: sinks drop what they get.
    """
    if checkpoint is None:
        if not arguments:
            raise click.UsageError("name the checkpoint and the program: flinkpy debug CHECKPOINT --operator NAME job.py")
        checkpoint, script, arguments = script, arguments[0], arguments[1:]
    from flinkpy.cli.debug import debug_job
    from flinkpy.operators.debugging.debugged_operator import Stops

    sys.exit(debug_job(checkpoint, script, arguments, operator=operator, stops=Stops(key, subtask, only_errors), parallelism=parallelism,
                       definitions=definitions, allow_non_restored_state=allow_non_restored_state, pyflink=pyflink, conf=conf, verbose=verbose))


@flinkpy.command()
@_target
@click.option("-p", "--parallelism", type=click.IntRange(min=1), help="Parallelism of operators that set none.")
@_definitions
@_pyflink
@_conf
@click.option("--plain", is_flag=True, help="Python's own prompt, also where IPython is installed.")
def shell(target: str | None, parallelism: int | None, definitions: tuple[str, ...], pyflink: bool, conf: Path | None, plain: bool) -> None:
    """Open a prompt with an environment (env) and the common names."""
    from flinkpy.cli.shell import open_shell

    sys.exit(open_shell(target=target, parallelism=parallelism, definitions=definitions, pyflink=pyflink, conf=conf, plain=plain))


@flinkpy.command("list")
@_target
@click.option("-a", "--all", "everything", is_flag=True, help="Also the jobs that have ended.")
@_definitions
@_conf
def list_jobs(target: str | None, everything: bool, definitions: tuple[str, ...], conf: Path | None) -> None:
    """List the jobs of the session on Ray (-D cluster.id=NAME names one other than `default`).

    With -a and -D jobmanager.archive.fs.dir=FOLDER also the archived ones of clusters that are gone.
    """
    from flinkpy.cli.jobs import show_jobs

    show_jobs(target, definitions, conf, everything)


@flinkpy.command("show")
@_target
@_definitions
@_conf
@click.argument("job_id")
def show_job(target: str | None, definitions: tuple[str, ...], conf: Path | None, job_id: str) -> None:
    """Show a job of the session on Ray: its vertices, the attempts of its subtasks, its failures and checkpoints; the first digits of its id are
    enough."""
    from flinkpy.cli.shown.shown_job import show_job

    show_job(target, definitions, conf, job_id)


@flinkpy.command()
@_definitions
@_conf
def history(definitions: tuple[str, ...], conf: Path | None) -> None:
    """Serve the archives of jobs that have ended (-D historyserver.archive.fs.dir=FOLDER), until it is interrupted.

    Jobs are archived by clusters with the option jobmanager.archive.fs.dir. It answers the same REST requests as a cluster.
    """
    from flinkpy.cli.shown.archived_jobs import serve_history

    serve_history(definitions, conf)


@flinkpy.command()
@_target
@click.option("-i", "--interval", type=click.FloatRange(min=0.1), default=2.0, metavar="SECONDS", help="Until the next picture (default: 2).")
@click.option("-n", "--count", type=click.IntRange(min=1), help="How many pictures (default: until Ctrl-C).")
@_definitions
@_conf
def top(target: str | None, interval: float, count: int | None, definitions: tuple[str, ...], conf: Path | None) -> None:
    """Watch what the jobs of the session on Ray are busy with: the busiest vertex first."""
    from flinkpy.cli.shown.top import show_top

    show_top(target, definitions, conf, interval, count)


@flinkpy.command()
@_target
@_definitions
@_conf
@click.argument("job_id")
def cancel(target: str | None, definitions: tuple[str, ...], conf: Path | None, job_id: str) -> None:
    """Cancel a job of the session on Ray; the first digits of its id are enough."""
    from flinkpy.cli.jobs import cancel_job

    cancel_job(target, definitions, conf, job_id)


@flinkpy.command()
@_target
@click.option("-p", "--savepoint-path", "--savepointPath", "folder", metavar="FOLDER", help=(
    "Where the savepoint gets a folder of its own (default: execution.checkpointing.savepoint-dir)."))
@click.option("-d", "--drain", is_flag=True, help="End the sources first, so that windows and timers fire: for a job that is not to go on.")
@_type
@_definitions
@_conf
@click.argument("job_id")
def stop(target: str | None, folder: str | None, drain: bool, form: str | None, definitions: tuple[str, ...], conf: Path | None, job_id: str) -> None:
    """Stop a job of the session on Ray with a savepoint, from which it can go on (flinkpy run -s)."""
    from flinkpy.cli.savepoints import ask_for_snapshot
    from flinkpy.core.elements import SnapshotType

    ask_for_snapshot(target, definitions, conf, job_id, SnapshotType.TERMINATE if drain else SnapshotType.SUSPEND, folder, form)


@flinkpy.command()
@_target
@click.option("-d", "--dispose", metavar="PATH", help="Remove the savepoint in this folder; no job is asked.")
@_type
@_definitions
@_conf
@click.argument("job_id", required=False)
@click.argument("folder", required=False)
def savepoint(target: str | None, dispose: str | None, form: str | None, definitions: tuple[str, ...], conf: Path | None, job_id: str | None,
              folder: str | None) -> None:
    """Take a savepoint of a job of the session on Ray, which goes on; it gets a folder of its own in FOLDER (default:
    execution.checkpointing.savepoint-dir)."""
    from flinkpy.cli import savepoints
    from flinkpy.core.elements import SnapshotType

    if dispose is None and job_id is not None:
        savepoints.ask_for_snapshot(target, definitions, conf, job_id, SnapshotType.SAVEPOINT, folder, form)
    elif dispose is not None and job_id is None:
        savepoints.dispose(dispose)
    else:
        raise click.UsageError("name a job to take a savepoint of, or with --dispose a savepoint to remove")


@flinkpy.command()
@_target
@_definitions
@_conf
@click.argument("job_id")
def checkpoint(target: str | None, definitions: tuple[str, ...], conf: Path | None, job_id: str) -> None:
    """Take a checkpoint of a job of the session on Ray now, without waiting until it is due."""
    from flinkpy.cli.savepoints import ask_for_snapshot
    from flinkpy.core.elements import SnapshotType

    ask_for_snapshot(target, definitions, conf, job_id, SnapshotType.CHECKPOINT)


@flinkpy.group(cls=Commands)
def session() -> None:
    """Start, list and stop sessions on Ray.

    A session is a cluster that jobs of several programs share: its workers start with the jobs and end when idle, and it stays until it is stopped.
    Sessions of one Ray cluster do not see each other. A program uses the session named by -D cluster.id=NAME, without a name `default`, which starts
    by itself.
    """


_name = click.argument("name", required=False)


@session.command("start")
@_definitions
@_conf
@_name
def start_session(name: str | None, definitions: tuple[str, ...], conf: Path | None) -> None:
    """Start the session NAME (`default` without one) with the options given; it runs until it is stopped."""
    from flinkpy.cli.session_commands import start

    start(name, definitions, conf)


@session.command("list")
@_definitions
@_conf
def list_sessions(definitions: tuple[str, ...], conf: Path | None) -> None:
    """List the sessions on the Ray cluster, and the clusters that programs run for themselves."""
    from flinkpy.cli.session_commands import show_sessions

    show_sessions(definitions, conf)


@session.command("stop")
@_definitions
@_conf
@_name
def stop_session(name: str | None, definitions: tuple[str, ...], conf: Path | None) -> None:
    """Cancel all jobs of the session NAME (`default` without one) and end it. Ray itself keeps running."""
    from flinkpy.cli.session_commands import stop

    stop(name, definitions, conf)


@flinkpy.command("stop-cluster")
@_definitions
@_conf
def stop_cluster(definitions: tuple[str, ...], conf: Path | None) -> None:
    """The same as `session stop`."""
    from flinkpy.cli.session_commands import stop

    stop(None, definitions, conf)


@flinkpy.group(cls=Commands)
def checkpoints() -> None:
    """Look into checkpoints and savepoints on disk. No job or cluster is needed."""


@checkpoints.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-n", "--entries", type=click.IntRange(min=0), default=0, metavar="N", help="Also show the first N entries of each state.")
@click.option("--state", metavar="NAME", help="With -n: only of the states of this name.")
@click.argument("path")
def inspect(as_json: bool, entries: int, state: str | None, path: str) -> None:
    """List what a checkpoint or savepoint holds, and check its files.

    PATH is its folder, or the folder of a job, for the job's newest; a URL (s3://...) too. The exit code is 1 if a file is damaged.
    """
    from flinkpy.cli.checkpoint_commands import inspect

    sys.exit(inspect(path, as_json, entries, state))


@checkpoints.command()
@click.option("--format", "format_type", type=click.Choice(["canonical", "native"]), default="canonical", help=(
    "canonical: a Parquet file for each state, for pandas, Spark and DuckDB; native: flinkpy's own."))
@click.argument("path")
@click.argument("target")
def convert(format_type: str, path: str, target: str) -> None:
    """Write the checkpoint or savepoint PATH anew to the folder TARGET, in a form that other programs read.

    A job can start from both forms, with `run -s`. Run it where the program's own classes can be imported.
    """
    from flinkpy.cli.checkpoint_commands import convert

    convert(path, target, format_type)


@flinkpy.command()
@click.argument("pattern", default="")
def options(pattern: str) -> None:
    """List all options, or those that contain PATTERN."""
    from flinkpy.cli.options import show_options

    show_options(pattern)


def main(arguments: list[str] | None = None) -> Any:
    """The entry point. Prints an error of flinkpy as one message and exits with code 1."""
    try:
        return flinkpy(arguments, prog_name="flinkpy")
    except FlinkpyError as error:
        from flinkpy.cli.failures import describe

        tell(describe(error, verbose="-v" in sys.argv or "--verbose" in sys.argv), err=True)
        sys.exit(1)
