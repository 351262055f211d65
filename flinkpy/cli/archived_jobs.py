"""``flinkpy history``: shows jobs that have ended, also those whose cluster is gone."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from flinkpy.actors.gateways import JobOverview
from flinkpy.cli.run import gather
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.core.options.history import HistoryConfig, archive_folders


def serve_history(definitions: Sequence[str], conf: Path | None) -> None:
    """Serves the archives until it is interrupted."""
    from flinkpy.web.history.history_server import history_server

    logging.basicConfig(level=logging.WARNING)
    config = HistoryConfig.of(gather(conf, definitions, None, None))
    server = history_server(config, SYSTEM_CLOCK)
    try:
        click.echo(f"history of {', '.join(config.folders)}: {server.told}")
        threading.Event().wait()
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()


def archived_overviews(settings: Mapping[str, Any]) -> list[JobOverview]:
    """The jobs in the archives that the settings name, as a cluster tells of them."""
    from flinkpy.web.history.archives import Archives

    return [_overview(each) for each in Archives(archive_folders(settings), SYSTEM_CLOCK).overviews()]


def _overview(told: Mapping[str, Any]) -> JobOverview:
    tasks = {state: told["tasks"][state.name.lower()] for state in ExecutionState}
    return JobOverview(JobId(told["jid"]), told["name"], JobState[told["state"]], told["start-time"], told["end-time"], tasks)
