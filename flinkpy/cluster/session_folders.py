"""The folders in which a session keeps its jobs, and those that have ended: tried out when it
starts."""

from __future__ import annotations

from flinkpy.cluster.session import SessionConfig
from flinkpy.core.options.high_availability import HA_STORAGE_DIR, HighAvailability
from flinkpy.core.options.history import ARCHIVE_FOLDER
from flinkpy.state.checkpoints.trying_out import check_writable


def check_session_folders(
    config: SessionConfig, high_availability: HighAvailability | None = None
) -> None:
    """Raises ConfigurationError if a session that starts could never write where it is to keep its
    jobs, or those that have ended. A JobManager that comes back does not ask: its jobs matter
    more."""
    if config.archive_folder is not None:
        check_writable(ARCHIVE_FOLDER.key, config.archive_folder)
    if high_availability is not None:
        check_writable(HA_STORAGE_DIR.key, high_availability.storage_dir)
