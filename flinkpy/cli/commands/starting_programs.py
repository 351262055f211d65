"""Commands that run a program, or a part of one."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from flinkpy.cli.arguments import shared
from flinkpy.cli.arguments.parsing import CheckpointFirst, Command, noted
from flinkpy.cli.arguments.program_options import chosen_program, claim_mode, program_options
from flinkpy.core.program.garbage import collect_rarely

# arguments after the script belong to it
_SCRIPT = {"ignore_unknown_options": False, "allow_interspersed_args": False}


@click.command(
    cls=Command, context_settings=_SCRIPT, short_help="Run the job in a file or a module."
)
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


@click.command(
    cls=Command, context_settings=_SCRIPT, short_help="Draw the plan of a job without running it."
)
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


@click.command(
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


@click.command(cls=Command, short_help="Open a prompt with an environment.")
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


@click.command(cls=Command, short_help="Run SQL: a script, statements, or a prompt.")
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
    collect_rarely(200_000)  # more than a small query makes, most of it modules, which stay
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
