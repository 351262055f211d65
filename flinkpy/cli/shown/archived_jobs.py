"""``flinkpy history``: shows jobs that have ended, also those whose cluster is gone."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flinkpy.actors.gateways import JobOverview
from flinkpy.cli.run import gather
from flinkpy.cli.tell import tell
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.core.options.history import ARCHIVE_FOLDER, HistoryConfig, archive_folders
from flinkpy.state.checkpoints.locations import absolute, is_file
from flinkpy.state.checkpoints.stores_of_locations import file_store_of


def serve_history(definitions: Sequence[str], conf: Path | None) -> None:
    """Serves the archives until it is interrupted."""
    from flinkpy.web.history.archive_files import archived_jobs
    from flinkpy.web.history.history_server import history_server

    logging.basicConfig(level=logging.WARNING)
    config = HistoryConfig.of(gather(conf, definitions, None, None))
    _check_folders(config.folders)
    server = history_server(config, SYSTEM_CLOCK)
    try:
        tell(f"history of {', '.join(config.folders)}: {server.told}")
        for folder in map(absolute, config.folders):
            if not archived_jobs(file_store_of(folder), folder):
                tell(
                    (
                        f"there are no archives in {folder} so far; clusters with "
                        f"{ARCHIVE_FOLDER.key}={folder} write them"
                    ),
                    err=True,
                )
        threading.Event().wait()
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()


def archived_overviews(settings: Mapping[str, Any]) -> list[JobOverview]:
    """The jobs in the archives that the settings name, as a cluster tells of them."""
    from flinkpy.web.history.archives import Archives

    folders = archive_folders(settings)
    _check_folders(folders)
    return [_overview(each) for each in Archives(folders, SYSTEM_CLOCK).overviews()]


def _check_folders(folders: Sequence[str]) -> None:
    for folder in folders:
        if is_file(folder):
            raise ConfigurationError(f"{folder} is a file; name the folder of the archives")


def _overview(told: Mapping[str, Any]) -> JobOverview:
    tasks = {state: told["tasks"][state.name.lower()] for state in ExecutionState}
    return JobOverview(
        JobId(told["jid"]),
        told["name"],
        JobState[told["state"]],
        told["start-time"],
        told["end-time"],
        tasks,
    )
