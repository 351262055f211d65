"""The registered files of jobs on one TaskExecutor (Flink's FileCache): each content once, however
many jobs, subtasks and names it has. It is brought here in the background from the first task of a
job on, and deleted when the last job that needs it has left."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from flinkpy.core.errors import ProgramError, ResourceUnavailableError
from flinkpy.core.ids import JobId
from flinkpy.core.options.engine import spill_folders
from flinkpy.runtime.files.cached_files import CachedFile
from flinkpy.state.checkpoints.own_folder import OwnFolder

Key = tuple[str, str, bool]


@dataclass
class _Entry:
    path: Future[Path] = field(default_factory=Future)
    jobs: set[JobId] = field(default_factory=set)
    folder: OwnFolder | None = None

    @property
    def has_failed(self) -> bool:
        return self.path.done() and self.path.exception() is not None


class FileCache:
    """``io.tmp.dirs`` says in which folder, of each job. Calls come from any thread."""

    def __init__(self) -> None:
        self._entries: dict[Key, _Entry] = {}
        self._names: dict[JobId, dict[str, Key]] = {}
        self._lock = threading.Lock()
        self.materialised = 0  # so many files were brought here

    def join(self, job_id: JobId, files: Sequence[CachedFile], values: Mapping[str, Any]) -> None:
        """The job has a task here: begins to bring its files."""
        folders = spill_folders(values)
        with self._lock:
            if files:
                self._names[job_id] = {file.name: file.key for file in files}
            missing = [
                (file, entry) for file in files if (entry := self._new_entry(job_id, file.key))
            ]
        parent = folders[0] if folders else None
        for file, entry in missing:
            threading.Thread(
                target=partial(self._bring, file, entry, parent),
                name=f"file {file.name}",
                daemon=True,
            ).start()

    def _new_entry(self, job_id: JobId, key: Key) -> _Entry | None:
        """None if it is here, or on its way. What could not be brought is tried again."""
        known = self._entries.get(key)
        if known is not None and not known.has_failed:
            known.jobs.add(job_id)
            return None
        self._entries[key] = _Entry(jobs={job_id, *(known.jobs if known is not None else ())})
        return self._entries[key]

    def _bring(self, file: CachedFile, entry: _Entry, parent: str | None) -> None:
        try:
            folder = OwnFolder(parent, "file")
            path = file.materialise(folder.path)
        except BaseException as error:
            entry.path.set_exception(
                ResourceUnavailableError(
                    f"the cached file {file.name!r} cannot be brought to this worker: {error}"
                )
            )
            return
        with self._lock:
            self.materialised += 1
            entry.folder = folder
            is_needed = bool(entry.jobs)
        if not is_needed:
            folder.remove()
        entry.path.set_result(path)

    def path(self, job_id: JobId, name: str) -> str:
        """The path of the job's file of that name; waits until it is here.

        Raises ProgramError if the job registered none of that name, ResourceUnavailableError if it
        cannot be brought here."""
        with self._lock:
            key = self._names.get(job_id, {}).get(name)
            entry = self._entries.get(key) if key is not None else None
        if entry is None:
            raise ProgramError(
                f"there is no cached file {name!r}; give it to env.register_cached_file(path, "
                f"{name!r})"
            )
        return str(entry.path.result())

    def leave(self, job_id: JobId) -> list[OwnFolder]:
        """The job has left: returns the folders that nobody needs any more, to be removed."""
        with self._lock:
            keys = set(self._names.pop(job_id, {}).values())
            for key in keys:
                self._entries[key].jobs.discard(job_id)
            unused = [self._entries.pop(key) for key in keys if not self._entries[key].jobs]
        return [entry.folder for entry in unused if entry.folder is not None]

    def close(self) -> None:
        """Deletes everything."""
        for job_id in list(self._names):
            for folder in self.leave(job_id):
                folder.remove()
