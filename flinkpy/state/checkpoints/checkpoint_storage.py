"""Where a job's checkpoints are kept: in the JobManager's memory, or in files.

::

    <dir>/<job id>/chk-17/_metadata       the manifest; it appears last, and then the checkpoint is there
    <dir>/<job id>/chk-17/<writer>-<attempt>    the state of one subtask
    <dir>/<job id>/shared/                files that several checkpoints have in common

Each method may be called from any thread; files may take long. An ``OSError`` says that the store failed, and what was
asked for may have happened or not; but there never is a manifest of a checkpoint that is not complete. """

from __future__ import annotations

import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.ids import JobId
from flinkpy.core.options import checkpointing as options
from flinkpy.core.options.schema import read
from flinkpy.graph.checkpoints import CompletedCheckpoint, StateHandle
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.locations import absolute, join
from flinkpy.state.checkpoints.manifest import Manifest
from flinkpy.state.checkpoints.state_reader import StateReader, own_files
from flinkpy.state.checkpoints.state_writer import FileStateWriter, InlineStateWriter, StateWriter
from flinkpy.state.checkpoints.stored_checkpoints import (
    METADATA,
    checkpoint_folder,
    checkpoint_ids,
    latest_checkpoint,
    load_checkpoint,
)
from flinkpy.state.checkpoints.stores_of_locations import file_store_of

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


class CheckpointStorage(ABC):
    """Keeps the checkpoints of one job. It pickles, and each process may make its own.

    >>> storage = CheckpointStorage.of({"execution.checkpointing.dir": "/tmp/checkpoints"}, JobId("job"))
    >>> type(storage).__name__
    'FileCheckpointStorage'
    """

    def __init__(self, stores: Callable[[str], FileStore] = file_store_of) -> None:
        self._stores = stores

    @staticmethod
    def of(configuration: Mapping[str, Any], job_id: JobId,
           stores: Callable[[str], FileStore] = file_store_of) -> CheckpointStorage:
        """As the options ``execution.checkpointing.*`` say: files where there is a directory, else the JobManager's
        memory."""
        kind = read(configuration, options.CHECKPOINT_STORAGE)
        directory = read(configuration, options.CHECKPOINT_DIRECTORY)
        name = str(kind or ("jobmanager" if directory is None else "filesystem")).lower()
        if name not in ("jobmanager", "filesystem"):
            key = options.CHECKPOINT_STORAGE.key
            raise ConfigurationError(f"option {key}: {kind!r} is neither jobmanager nor filesystem")
        limit = read(configuration, options.CHECKPOINT_MAX_STATE) if name == "jobmanager" else None
        if directory is not None:
            threshold = read(configuration, options.CHECKPOINT_FILE_THRESHOLD)
            return FileCheckpointStorage(directory, job_id, threshold, limit, stores)
        if limit is None:
            needed = options.CHECKPOINT_DIRECTORY.key
            raise ConfigurationError(f"option {options.CHECKPOINT_STORAGE.key}: {kind} needs {needed}")
        return MemoryCheckpointStorage(limit, stores)

    @abstractmethod
    def state_writer(self, checkpoint_id: int, name: str, attempt: int) -> StateWriter:
        """Writes what one attempt of a subtask saves for a checkpoint. ``name`` tells the subtask from all others of
        the job."""

    def reader(self, location: str | None) -> StateReader:
        """Reads the state of the checkpoint at this location, which may be one of another job."""
        return StateReader() if location is None else StateReader(self._stores(location), absolute(location))

    @abstractmethod
    def store(self, checkpoint: CompletedCheckpoint) -> CompletedCheckpoint:
        """Stores the manifest, and gives the checkpoint with its location. All its state must have been written.
        FileExistsError if there is a checkpoint of this number. After an error the checkpoint may be there all the
        same: the caller calls ``discard_unfinished``."""

    def load(self, location: str) -> CompletedCheckpoint:
        """The checkpoint in a folder; its ``_metadata`` may be named instead. ProgramError if there is none, or one of
        a version not known here; CheckpointDamagedError if the manifest is not what was written."""
        return load_checkpoint(self._stores(location), absolute(location))

    def find(self, location: str) -> CompletedCheckpoint:
        """As ``load``; of the folder of a job, its newest checkpoint."""
        newest = self.latest(location)
        return self.load(location) if newest is None else newest

    def latest(self, job_dir: str | None = None) -> CompletedCheckpoint | None:
        """The newest checkpoint in a job's folder, by default this job's, whose manifest is intact. Damaged ones are
        reported in the log."""
        return None if job_dir is None else latest_checkpoint(self._stores(job_dir), absolute(job_dir))

    @abstractmethod
    def discard(self, checkpoint: CompletedCheckpoint) -> None:
        """Removes a checkpoint that was stored: first its manifest, then its state. What checkpoints share stays."""

    @abstractmethod
    def discard_unfinished(self, checkpoint_id: int) -> None:
        """Removes all of a checkpoint of this job that failed or was aborted."""

    @abstractmethod
    def discard_handles(self, checkpoint_id: int, handles: Iterable[StateHandle]) -> None:
        """Removes state whose subtask acknowledged a checkpoint of this job too late."""

    @abstractmethod
    def discard_others(self, kept: Collection[int]) -> None:
        """The job ends: removes all of it but these checkpoints, and so what a subtask has left that nobody heard of.
        With none kept the job's folder goes too, unless somebody else has put something there. What fails to be removed
        stays alone."""


class MemoryCheckpointStorage(CheckpointStorage):
    """In the JobManager's memory, and gone with it. State is in the handles; each piece takes ``max_state_size`` bytes
    at most.

    >>> from flinkpy.graph.checkpoints import CompletedCheckpoint
    >>> storage = MemoryCheckpointStorage()
    >>> storage.store(CompletedCheckpoint(1, 0, {})) == storage.latest()
    True
    """

    def __init__(self, max_state_size: int = 5 << 20, stores: Callable[[str], FileStore] = file_store_of) -> None:
        super().__init__(stores)
        self._max_state_size = max_state_size
        self._stored: dict[int, CompletedCheckpoint] = {}

    def state_writer(self, checkpoint_id: int, name: str, attempt: int) -> StateWriter:
        return InlineStateWriter(self._max_state_size)

    def store(self, checkpoint: CompletedCheckpoint) -> CompletedCheckpoint:
        if checkpoint.checkpoint_id in self._stored:
            raise FileExistsError(f"checkpoint {checkpoint.checkpoint_id} is stored already")
        self._stored[checkpoint.checkpoint_id] = checkpoint
        return checkpoint

    def latest(self, job_dir: str | None = None) -> CompletedCheckpoint | None:
        return self._stored[max(self._stored)] if job_dir is None and self._stored else super().latest(job_dir)

    def discard(self, checkpoint: CompletedCheckpoint) -> None:
        self._stored.pop(checkpoint.checkpoint_id, None)

    def discard_unfinished(self, checkpoint_id: int) -> None:
        self._stored.pop(checkpoint_id, None)

    def discard_handles(self, checkpoint_id: int, handles: Iterable[StateHandle]) -> None:
        pass

    def discard_others(self, kept: Collection[int]) -> None:
        self._stored = {number: checkpoint for number, checkpoint in self._stored.items() if number in kept}


class FileCheckpointStorage(CheckpointStorage):
    """In files below a directory. State from ``threshold`` bytes on goes to files, smaller state to the manifest; with
    ``max_inline_size`` all state goes to the manifest, and a piece that is larger is refused."""

    def __init__(self, directory: str, job_id: JobId, threshold: int = 20 << 10, max_inline_size: int | None = None,
                 stores: Callable[[str], FileStore] = file_store_of) -> None:
        super().__init__(stores)
        self._job_id, self._threshold, self._max_inline_size = job_id, threshold, max_inline_size
        self.job_dir = join(absolute(directory), job_id)

    @property
    def _store(self) -> FileStore:
        return self._stores(self.job_dir)

    def state_writer(self, checkpoint_id: int, name: str, attempt: int) -> StateWriter:
        if self._max_inline_size is not None:
            return InlineStateWriter(self._max_inline_size)
        folder = checkpoint_folder(self.job_dir, checkpoint_id)
        return FileStateWriter(self._store, folder, f"{_file_name(name)}-{attempt}", self._threshold)

    def store(self, checkpoint: CompletedCheckpoint) -> CompletedCheckpoint:
        folder = checkpoint_folder(self.job_dir, checkpoint.checkpoint_id)
        self._store.write_atomically(join(folder, METADATA), [Manifest(self._job_id, checkpoint).to_bytes()])
        return replace(checkpoint, location=folder)

    def latest(self, job_dir: str | None = None) -> CompletedCheckpoint | None:
        return super().latest(self.job_dir if job_dir is None else job_dir)

    def discard(self, checkpoint: CompletedCheckpoint) -> None:
        if checkpoint.location is not None:
            self._remove(absolute(checkpoint.location))

    def discard_unfinished(self, checkpoint_id: int) -> None:
        self._remove(checkpoint_folder(self.job_dir, checkpoint_id))

    def discard_handles(self, checkpoint_id: int, handles: Iterable[StateHandle]) -> None:
        for file in own_files(checkpoint_folder(self.job_dir, checkpoint_id), handles):
            self._store.delete(file)

    def discard_others(self, kept: Collection[int]) -> None:
        store, errors = self._store, list[OSError]()
        for checkpoint_id in checkpoint_ids(store, self.job_dir):
            try:
                if checkpoint_id not in kept:
                    self._remove(checkpoint_folder(self.job_dir, checkpoint_id))
            except OSError as error:  # of one; the others need not stay for it
                errors.append(error)
        if errors:
            raise errors[0]
        if kept:
            return
        store.delete_dir(join(self.job_dir, "shared"))
        self._remove_empty_folder()

    def _remove_empty_folder(self) -> None:
        if not self._store.list(self.job_dir):
            self._store.delete_dir(self.job_dir)

    def _remove(self, folder: str) -> None:
        store = self._stores(folder)
        store.delete(join(folder, METADATA))  # first, so that nobody takes what is left for a checkpoint
        store.delete_dir(folder)


def _file_name(name: str) -> str:
    """The name as one that every file system takes. Names that differ stay different."""
    safe = _NOT_IN_NAMES.sub("_", name)[:100]
    return safe if safe == name else f"{safe}-{zlib.crc32(name.encode()):08x}"
