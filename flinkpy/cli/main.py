"""``flinkpy``: its commands, and how an error of one is told."""

from __future__ import annotations

import sys
from typing import Any

import click

from flinkpy.cli.arguments.groups import Commands, tell_version
from flinkpy.cli.commands import (
    checkpoint_files,
    sessions,
    settings,
    starting_programs,
    steering,
    watching,
)
from flinkpy.cli.tell import tell
from flinkpy.core.errors import FlinkpyError


@click.group(
    "flinkpy",
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
def commands() -> None:
    """Run and watch stream processing jobs."""


for command in (
    starting_programs.run,
    starting_programs.info,
    starting_programs.debug,
    starting_programs.shell,
    starting_programs.sql,
    watching.list_jobs,
    watching.show_job,
    watching.history,
    watching.top,
    steering.cancel,
    steering.stop,
    steering.savepoint,
    steering.checkpoint,
    sessions.session,
    sessions.stop_cluster,
    checkpoint_files.checkpoints,
    settings.options,
    settings.memory,
):
    commands.add_command(command)


def main(arguments: list[str] | None = None) -> Any:
    """The entry point. Prints an error of flinkpy, and of a file that cannot be read or written,
    as one message and exits with code 1."""
    try:
        return commands(arguments, prog_name="flinkpy")
    except FlinkpyError as error:
        from flinkpy.cli.failures import describe

        tell(describe(error, verbose="-v" in sys.argv or "--verbose" in sys.argv), err=True)
        sys.exit(1)
    except OSError as error:  # what a command reads or writes; programs' own are told by `run`
        if error.filename is None or "--verbose" in sys.argv:
            raise
        tell(f"{error.filename}: {error.strerror}", err=True)
        sys.exit(1)
