"""``flinkpy checkpoints ...``: snapshots on disk."""

from __future__ import annotations

import sys

import click

from flinkpy.cli.arguments.groups import Commands


@click.group(cls=Commands)
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
