"""What a task gets of its worker's files: threads, stores, backups, and the job's registered
files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flinkpy.core.ids import JobId
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.local_backup import LocalBackup
from flinkpy.state.checkpoints.stores_of_locations import file_store_of


def _at_once(action: Callable[[], None]) -> None:
    action()


@dataclass(frozen=True)
class WorkerFiles:
    """``run_io`` runs an action off the loop's thread; ``file_stores`` gives the store that a
    location is in; ``backup`` is what the worker keeps of the job's files; ``cached_file`` gives
    the path of a registered file."""

    run_io: Callable[[Callable[[], None]], None] = _at_once
    file_stores: Callable[[str], FileStore] = file_store_of
    backup: LocalBackup | None = None
    cached_file: Callable[[str], str] | None = None

    def checkpoint_storage(
        self, configuration: Mapping[str, Any], job_id: JobId
    ) -> CheckpointStorage:
        """Where the job's checkpoints are written, and read."""
        return CheckpointStorage.of(configuration, job_id, self.file_stores, self.backup)
