"""``flinkpy session ...``, and ``stop-cluster``."""

from __future__ import annotations

from pathlib import Path

import click

from flinkpy.cli.arguments import shared
from flinkpy.cli.arguments.groups import Commands
from flinkpy.cli.arguments.parsing import Command


@click.group(cls=Commands)
def session() -> None:
    """Start, list and stop sessions on Ray.

    A session is a cluster that jobs of several programs share: its workers start with the jobs and
    end when idle, and it stays until it is stopped. Sessions of one Ray cluster do not see each
    other. A program uses the session named by -D cluster.id=NAME, without a name `default`, which
    starts by itself."""


@session.command("start", short_help="Start a session.")
@shared.definitions
@shared.conf
@shared.session_name
def start_session(name: str | None, definitions: tuple[str, ...], conf: Path | None) -> None:
    """Start the session NAME (`default` without one) with the options given; it runs until it is
    stopped.

    \b
    flinkpy session start nightly -D taskmanager.numberOfTaskSlots=4
    """
    from flinkpy.cli.session_commands import start

    start(name, definitions, conf)


@session.command("list", short_help="List sessions and programs' own clusters.")
@shared.definitions
@shared.conf
def list_sessions(definitions: tuple[str, ...], conf: Path | None) -> None:
    """List the sessions on the Ray cluster, and the clusters that programs run for themselves."""
    from flinkpy.cli.session_commands import show_sessions

    show_sessions(definitions, conf)


@session.command("stop", short_help="Cancel a session's jobs and end it.")
@shared.definitions
@shared.conf
@shared.session_name
def stop_session(name: str | None, definitions: tuple[str, ...], conf: Path | None) -> None:
    """Cancel all jobs of the session NAME (`default` without one) and end it. Ray itself keeps
    running.

    \b
    flinkpy session stop nightly
    """
    from flinkpy.cli.session_commands import stop

    stop(name, definitions, conf)


@click.command("stop-cluster", cls=Command)
@shared.definitions
@shared.conf
def stop_cluster(definitions: tuple[str, ...], conf: Path | None) -> None:
    """The same as `session stop`."""
    from flinkpy.cli.session_commands import stop

    stop(None, definitions, conf)
