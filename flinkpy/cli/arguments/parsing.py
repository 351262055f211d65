"""How arguments are read: as Flink's command line reads them, so that its users' habits and scripts
hold.

``--par 2`` is ``--parallelism 2`` where no other option begins so. Long names with one dash
(``-pyfs``) are options of their own, and no ``-p`` with a value behind it. Options of Flink that
have no meaning here are declared hidden, and say what to write instead. Behind ``-py FILE`` or ``-m
MODULE`` the first option that is not known here, and all after it, belong to the program, as does
all after ``--``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

DEFINITIONS = "definitions by short flags"  # in the context: the options that short flags stand for
_YARN = (
    "-yid",
    "-yjm",
    "-ytm",
    "-ys",
    "-ynm",
    "-yq",
    "-yqu",
    "-yt",
    "-yat",
    "-yd",
    "-yh",
    "-yj",
    "-yn",
    "-ynl",
    "-yz",
    "-yD",
)
_NO_YARN = (
    "there is no YARN: -t ray-session shares a cluster on Ray, -t ray-application starts one; "
    "`flinkpy options` lists what -D sets"
)


class Command(click.Command):
    """A command whose options may be written as Flink's."""

    programs: tuple[str, ...] = ("script", "python", "module")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self.written_out(ctx, args))

    def written_out(self, ctx: click.Context, args: Sequence[str]) -> list[str]:
        """The arguments with options in full, up to the first that belongs to the program."""
        options = self._options(ctx)
        result: list[str] = []
        names_program, at = False, 0
        while at < len(args):
            arg = args[at]
            if not arg.startswith("-") or arg in ("-", "--"):
                if arg == "--" or not ctx.allow_interspersed_args:
                    break
                result.append(arg)
                at += 1
                continue
            name, equals, value = arg.partition("=")
            if name not in options:
                found = _with_prefix(name, options, ctx)
                if found is None and not _is_short(arg, options):
                    if names_program:
                        return [*result, "--", *args[at:]]
                    if arg.startswith(_YARN):
                        raise click.UsageError(f"{arg}: {_NO_YARN}", ctx)
                arg, name = (f"{found}{equals}{value}", found) if found else (arg, name)
            names_program = (
                names_program or getattr(options.get(name), "name", None) in self.programs
            )
            taken = 2 if _takes_next(arg, options) else 1
            result += [arg, *args[at + 1 : at + taken]]
            at += taken
        return [*result, *args[at:]]

    def _options(self, ctx: click.Context) -> dict[str, click.Option]:
        return {
            name: option
            for option in self.get_params(ctx)
            if isinstance(option, click.Option)
            for name in (*option.opts, *option.secondary_opts)
        }


class CheckpointFirst(Command):
    """Takes CHECKPOINT before the options, where people write it, as well as among them and behind
    them. What follows SCRIPT belongs to it."""

    def written_out(self, ctx: click.Context, args: Sequence[str]) -> list[str]:
        args = super().written_out(ctx, args)
        at = self._first_argument(args)
        is_followed_by_option = any(each.startswith("-") for each in args[at + 1 : at + 2])
        named = ["--checkpoint"] if at < len(args) and (at == 0 or is_followed_by_option) else []
        return [*args[:at], *named, *super().written_out(ctx, args[at:])] if named else args

    def _first_argument(self, args: list[str]) -> int:
        """The position of the first that is neither an option nor its value."""
        with_value = {
            name
            for each in self.params
            if isinstance(each, click.Option) and not each.is_flag
            for name in each.opts
        }
        at = 0
        while at < len(args) and args[at].startswith("-"):
            at += 2 if args[at] in with_value else 1
        return at


def stands_for(key: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """A callback that notes ``-D key=value`` for an option."""

    def note(ctx: click.Context, param: click.Parameter, value: object) -> None:
        if value is not None:
            ctx.meta.setdefault(DEFINITIONS, []).append(f"{key}={value}")

    return note


def noted(ctx: click.Context) -> tuple[str, ...]:
    """The definitions that were noted."""
    return tuple(ctx.meta.get(DEFINITIONS, ()))


def refused(*names: str, instead: str, is_flag: bool = False) -> Callable[[F], F]:
    """A hidden option of Flink's, which says what to write instead."""

    def refuse(ctx: click.Context, param: click.Parameter, value: object) -> None:
        if value and not ctx.resilient_parsing:
            raise click.UsageError(f"{names[0]}: {instead}", ctx)

    return click.option(*names, is_flag=is_flag, hidden=True, expose_value=False, callback=refuse)


def _with_prefix(name: str, options: Mapping[str, click.Option], ctx: click.Context) -> str | None:
    """The long option that begins so; None if there is none. Raises UsageError if there are
    several."""
    if not name.startswith("--") or len(name) == 2:
        return None
    found = {option: each for each, option in options.items() if each.startswith(name)}
    if len(found) > 1 and not ctx.resilient_parsing:
        raise click.UsageError(
            f"{name} may be {', '.join(sorted(found.values()))}: write more of it", ctx
        )
    return next(iter(found.values()), None)


def _is_short(arg: str, options: Mapping[str, click.Option]) -> bool:
    return not arg.startswith("--") and arg[:2] in options


def _takes_next(arg: str, options: Mapping[str, click.Option]) -> bool:
    """Whether the next argument is the value of this option, or of the last of these flags in one
    (``-dp 2``)."""
    name, equals, _ = arg.partition("=")
    option = options.get(name)
    if option is not None:
        return not equals and not (option.is_flag or option.count)
    if arg.startswith("--"):
        return False
    for position, letter in enumerate(arg[1:], start=2):
        option = options.get(f"-{letter}")
        if option is None:
            return False
        if not (option.is_flag or option.count):
            return position == len(arg)
    return False
