"""The archives that are there, read when they are asked for."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from flinkpy.core.clock import Clock
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.locations import absolute, join
from flinkpy.state.checkpoints.stores_of_locations import file_store_of
from flinkpy.web.history.archive_files import archived_jobs, read_archive
from flinkpy.web.history.archiving import OVERVIEW

LOG = engine_logger(__name__)


class Archives:
    """The archived jobs of some folders. A folder is listed again when the last listing is older
    than ``refresh_s``. ``retained``: how many jobs, the latest ones, each folder keeps. All calls
    block, and may come from any thread."""

    READ_KEPT = 16  # archives in memory, besides the overviews of all

    def __init__(
        self,
        folders: Sequence[str],
        clock: Clock,
        refresh_s: float = 0.0,
        retained: int | None = None,
        file_stores: Callable[[str], FileStore] = file_store_of,
    ) -> None:
        self._stores = {folder: file_stores(folder) for folder in map(absolute, folders)}
        self._clock = clock
        self._refresh_s = refresh_s
        self._retained = retained
        self._lock = threading.Lock()
        self._looked_at: float | None = None
        # by folder and job; None: it cannot be read
        self._overviews: dict[tuple[str, JobId], dict[str, Any] | None] = {}
        self._read: OrderedDict[JobId, dict[str, str]] = OrderedDict()

    def overviews(self) -> list[dict[str, Any]]:
        """One for each job, as ``/jobs/overview`` has them, the latest first."""
        with self._lock:
            self._look()
            found = {
                overview["jid"]: overview
                for overview in self._overviews.values()
                if overview is not None
            }
        return sorted(found.values(), key=lambda overview: overview["end-time"], reverse=True)

    def answer(self, path: str) -> str | None:
        """What the job's route at this path has answered, as JSON; None if nothing is known."""
        job_id = JobId(path.split("/")[2])
        with self._lock:
            if job_id not in self._read:
                folder = self._folder_of(job_id)
                if folder is None:
                    return None
                self._read[job_id] = read_archive(self._stores[folder], folder, job_id)
                while len(self._read) > self.READ_KEPT:
                    self._read.popitem(last=False)
            self._read.move_to_end(job_id)
            return self._read[job_id].get(path)

    def _folder_of(self, job_id: JobId) -> str | None:
        self._look()
        return next(
            (
                folder
                for folder in self._stores
                if self._overviews.get((folder, job_id)) is not None
            ),
            None,
        )

    def _look(self) -> None:
        now = self._clock.monotonic()
        if self._looked_at is not None and now - self._looked_at < self._refresh_s:
            return
        found: dict[tuple[str, JobId], dict[str, Any] | None] = {}
        for folder, store in self._stores.items():
            for job_id in archived_jobs(store, folder):
                known = folder, job_id
                found[known] = (
                    self._overviews[known]
                    if known in self._overviews
                    else _overview(store, folder, job_id)
                )
            self._forget_oldest(folder, found)
        self._overviews, self._looked_at = found, now

    def _forget_oldest(
        self, folder: str, found: dict[tuple[str, JobId], dict[str, Any] | None]
    ) -> None:
        if self._retained is None:
            return
        jobs = sorted(
            (overview["end-time"], known)
            for known, overview in found.items()
            if known[0] == folder and overview is not None
        )
        for _, known in jobs[: -self._retained]:
            self._stores[folder].delete(join(*known))
            self._read.pop(known[1], None)
            del found[known]

    def __repr__(self) -> str:
        return f"<Archives in {', '.join(self._stores)}>"


def _overview(store: FileStore, folder: str, job_id: JobId) -> dict[str, Any] | None:
    try:
        overview = json.loads(read_archive(store, folder, job_id)[OVERVIEW])["jobs"][0]
        if not _is_overview(overview, job_id):
            raise ValueError("its overview is not that of this job")
    except (OSError, ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        LOG.warning(
            "the archive of job %s in %s cannot be read, and is left out: %s: %s",
            job_id,
            folder,
            type(error).__name__,
            error,
        )
        return None
    found: dict[str, Any] = overview
    return found


def _is_overview(told: object, job_id: JobId) -> bool:
    """Whether all is there that lists of jobs show."""
    return (
        isinstance(told, dict)
        and told.get("jid") == job_id
        and isinstance(told.get("name"), str)
        and told.get("state") in JobState.__members__
        and isinstance(told.get("tasks"), dict)
        and all(type(told.get(name)) is int for name in ("start-time", "end-time"))
        and all(type(told["tasks"].get(state.name.lower())) is int for state in ExecutionState)
    )
