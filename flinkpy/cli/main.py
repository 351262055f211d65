"""``flinkpy``: the commands and their options. Each command is implemented in a module of its own."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Any

import click

from flinkpy import __version__
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


_NEEDS_SAVEPOINTS = ("stop", "savepoint", "checkpoint")  # Flink's commands for a job; a session is ended by `session stop`


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
            if args[0] in _NEEDS_SAVEPOINTS:
                raise click.UsageError(f"`flinkpy {args[0]}` needs savepoints, which come with the checkpoints milestone; "
                                       "`flinkpy cancel JOB` ends a job without one.", ctx)
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
@click.option("-d", "--detached", is_flag=True, help="Return when the job was submitted, and print its id (on ray).")
@click.option("-s", "--from-savepoint", "--fromSavepoint", metavar="PATH", help=(
    "Start from this checkpoint: its folder, or the folder of a job for its newest."))
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
    """List the jobs of the session on Ray (-D cluster.id=NAME names one other than `default`)."""
    from flinkpy.cli.jobs import show_jobs

    show_jobs(target, definitions, conf, everything)


@flinkpy.command()
@_target
@_definitions
@_conf
@click.argument("job_id")
def cancel(target: str | None, definitions: tuple[str, ...], conf: Path | None, job_id: str) -> None:
    """Cancel a job of the session on Ray; the first digits of its id are enough."""
    from flinkpy.cli.jobs import cancel_job

    cancel_job(target, definitions, conf, job_id)


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

        click.echo(describe(error, verbose="-v" in sys.argv or "--verbose" in sys.argv), err=True)
        sys.exit(1)
