"""Groups of commands, and the options that stand before a command."""

from __future__ import annotations

import difflib
from typing import Any

import click

from flinkpy import __version__
from flinkpy.cli.arguments.parsing import Command
from flinkpy.cli.tell import tell


class Commands(click.Group):
    """Suggests the nearest command for an unknown one. After Ctrl-C a command ends with a signal's
    exit code."""

    command_class = Command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            from flinkpy.core.program.exit_codes import INTERRUPTED

            ctx.exit(INTERRUPTED)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1, cutoff=0.4)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            hint = f" To run a program: flinkpy run {args[0]}" if args[0].endswith(".py") else hint
            hint = (
                " Write: flinkpy run -t ray-application" if args[0] == "run-application" else hint
            )
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


def tell_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from flinkpy.cluster.installation import commit

        of = commit()
        tell(f"flinkpy {__version__}" + (f", commit {of}" if of else ""))
        ctx.exit()
