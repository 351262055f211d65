"""Options that several commands have, and the values that they take."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    _Text = click.ParamType[str]
    _Choice = click.Choice[str]
else:  # generic from click 8.2 on
    _Text, _Choice = click.ParamType, click.Choice


class _Definitions(_Text):
    """``KEY=VALUE``. A shell completes the keys."""

    name = "KEY=VALUE"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from flinkpy.core.options.schema import SCHEMA

        key, equals, _ = incomplete.partition("=")
        if equals:
            option = SCHEMA.get(key) if key in SCHEMA else None
            return [
                CompletionItem(f"{key}={value}")
                for value in _values_of(option)
                if f"{key}={value}".startswith(incomplete)
            ]
        return [
            CompletionItem(f"{option.key}=", help=option.doc)
            for option in SCHEMA
            if option.key.startswith(incomplete)
        ]


def _values_of(option: Any) -> list[str]:
    if option is None:
        return []
    if option.kind is bool:
        return ["true", "false"]
    return [str(member.value) for member in option.kind] if issubclass(option.kind, Enum) else []


DEFINITION = _Definitions()


class Target(_Choice):
    """Where a job runs. Names of Flink's targets say which of ours to write."""

    _FLINKS: Mapping[str, str] = {
        "local": "embedded",
        "remote": "ray-session",
        "yarn-session": "ray-session",
        "kubernetes-session": "ray-session",
        "yarn-per-job": "ray-application",
        "yarn-application": "ray-application",
        "kubernetes-application": "ray-application",
    }

    def __init__(self) -> None:
        super().__init__(["embedded", "ray", "ray-session", "ray-application"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self._FLINKS:
            self.fail(
                f"{value} is Flink's; clusters run on Ray here: write -t {self._FLINKS[value]}",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


target = click.option(
    "-t",
    "--target",
    type=Target(),
    metavar="TARGET",
    help=(
        "Where it runs: embedded (this process), ray-session (a cluster on Ray that is "
        "shared; -D cluster.id=NAME names it), ray-application (one of "
        "its own, that ends with the program), or ray: the latter in a Ray job, else a session."
    ),
)
session_target = click.option(
    "-t",
    "--target",
    type=Target(),
    metavar="TARGET",
    help=("ray-session, as without it: the session on Ray that -D cluster.id=NAME names."),
)
parallelism = click.option(
    "-p",
    "--parallelism",
    type=click.IntRange(min=1),
    metavar="N",
    help="Parallelism of operators that set none.",
)
definitions = click.option(
    "-D",
    "definitions",
    multiple=True,
    type=DEFINITION,
    metavar="KEY=VALUE",
    help="Set an option; repeatable. `flinkpy options` lists them.",
)
conf = click.option(
    "--conf",
    type=click.Path(path_type=Path),
    help="The configuration file, or its folder (default: $FLINKPY_CONF_DIR).",
)
pyflink = click.option(
    "--pyflink", is_flag=True, help="A program written for PyFlink: `import pyflink` means flinkpy."
)
verbose = click.option("-v", "--verbose", is_flag=True, help="On failure, show the full traceback.")
_TYPES = click.Choice(["canonical", "native"], case_sensitive=False)
detached = click.option(
    "--detached",
    "-detached",
    "detached",
    is_flag=True,
    help="Return when the job was asked, and print the request's id.",
)
form = click.option(
    "-type",
    "--type",
    "form",
    type=_TYPES,
    help="The form of the files: native (default), or canonical, Parquet that others read.",
)
session_name = click.argument("name", required=False)
