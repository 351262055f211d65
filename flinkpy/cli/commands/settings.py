"""Commands that show what can be configured."""

from __future__ import annotations

from pathlib import Path

import click

from flinkpy.cli.arguments import shared
from flinkpy.cli.arguments.parsing import Command


@click.command(cls=Command)
@click.argument("pattern", default="")
def options(pattern: str) -> None:
    """List all options, or those that contain PATTERN.

    \b
    flinkpy options checkpointing
    """
    from flinkpy.cli.options import show_options

    show_options(pattern)


@click.command(cls=Command)
@shared.definitions
@shared.conf
def memory(definitions: tuple[str, ...], conf: Path | None) -> None:
    """Show the parts of a process's memory.

    \b
    flinkpy memory -D taskmanager.memory.process.size=4g
    """
    from flinkpy.cli.shown.memory_parts import show_memory

    show_memory(definitions, conf)
