"""``flinkpy info``: runs the program up to its first ``execute``, and draws what it would have
executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flinkpy.cli.run import gather, guarded, program_of, run_until_execute
from flinkpy.cli.tell import tell
from flinkpy.core.errors import ProgramError


def show_plan(
    script: str,
    arguments: Sequence[str],
    *,
    is_module: bool = False,
    parallelism: int | None,
    definitions: Sequence[str],
    pyflink: bool = False,
    conf: Path | None,
    verbose: bool,
) -> int:
    """Draws the plan; returns the exit code."""

    drawn: list[Any] = []

    def draw(stream_graph: Any, configuration: Mapping[str, Any]) -> None:
        from flinkpy.graph.plan import draw_operators, draw_plan

        drawn.append(stream_graph)
        tell(draw_plan(stream_graph))
        operators = draw_operators(stream_graph)
        if operators:
            tell(f"\n{operators}")

    def run(path: Path) -> None:
        settings = gather(conf, definitions, parallelism, None, pyflink=pyflink)
        run_until_execute(path, arguments, settings, draw, script if is_module else None)
        # the program may have caught the exception, or called execute() in a thread of its own
        if not drawn:
            raise ProgramError(f"{script} never called execute(), so there is no plan to draw")

    return guarded(program_of(script, is_module, conf, definitions), run, verbose)
