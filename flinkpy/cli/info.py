"""``flinkpy info``: runs the program up to its first ``execute``, and draws what it would have executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from flinkpy.cli.run import gather, guarded, pyflink_names
from flinkpy.cli.script import run_script
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.launch_context import ProgramAborted, set_launch_context


def show_plan(script: str, arguments: Sequence[str], *, parallelism: int | None, definitions: Sequence[str], pyflink: bool = False,
              conf: Path | None, verbose: bool) -> int:
    """Draws the plan; returns the exit code."""

    drawn: list[Any] = []

    def draw(stream_graph: Any, configuration: Mapping[str, Any]) -> None:
        from flinkpy.graph.plan import draw_plan

        drawn.append(stream_graph)
        click.echo(draw_plan(stream_graph))

    def run(path: Path) -> None:
        settings = gather(conf, definitions, parallelism, None, pyflink=pyflink)
        set_launch_context(settings, draw)
        try:
            with pyflink_names(settings):
                run_script(path, arguments)
        except ProgramAborted:
            return
        if not drawn:  # the program may have caught the exception, or called execute() in a thread of its own
            raise ProgramError(f"{script} never called execute(), so there is no plan to draw")

    return guarded(script, run, verbose)
