"""Where a job's checkpoints are kept: in the JobManager's memory, or in files.

::

    <dir>/<job id>/chk-17/_metadata       the manifest; when it appears, the checkpoint is there
    <dir>/<job id>/chk-17/<writer>-<attempt>    the state of one subtask
    <dir>/<job id>/shared/17-<random>     what checkpoint 17 wrote, and later ones may use too
    <savepoint dir>/savepoint-<job id>-<random>/    a savepoint: the same, all in its folder

Each method may be called from any thread; files may take long. An ``OSError`` says that the store
failed, and what was asked for may have happened or not; but there never is a manifest of a
checkpoint that is not complete."""

from __future__ import annotations

import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from flinkpy.core.errors import ConfigurationError, EngineError
from flinkpy.core.ids import IdFactory, JobId
from flinkpy.core.options import checkpointing as options
from flinkpy.core.options.schema import read
from flinkpy.graph.checkpoints import CompletedCheckpoint, StateHandle
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.local_backup import BackedUpStore, LocalBackup
from flinkpy.state.checkpoints.locations import absolute, folder_of, join, name_of, shared_folder
from flinkpy.state.checkpoints.manifest import Manifest
from flinkpy.state.checkpoints.state_reader import StateReader, location_of, own_files
from flinkpy.state.checkpoints.state_writer import FileStateWriter, InlineStateWriter, StateWriter
from flinkpy.state.checkpoints.stored_checkpoints import (
    METADATA,
    checkpoint_folder,
    checkpoint_ids,
    complete_checkpoints,
    latest_checkpoint,
    load_checkpoint,
    remove_checkpoint,
    remove_if_empty,
    shared_files_of_others,
)
from flinkpy.state.checkpoints.stores_of_locations import file_store_of
from flinkpy.state.checkpoints.trying_out import try_out

_NO_JOB = JobId("")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


class CheckpointStorage(ABC):
    """Keeps the checkpoints of one job. It pickles, and each process may make its own.

    >>> storage = CheckpointStorage.of(
    ...     {"execution.checkpointing.dir": "/tmp/checkpoints"}, JobId("job")
    ... )
    >>> type(storage).__name__
    'FileCheckpointStorage'
    """

    def __init__(
        self, stores: Callable[[str], FileStore] = file_store_of, job_id: JobId = _NO_JOB
    ) -> None:
        self._stores, self._job_id = stores, job_id
        self.compresses = False  # whether state is compressed before it is written

    @staticmethod
    def of(
        configuration: Mapping[str, Any],
        job_id: JobId,
        stores: Callable[[str], FileStore] = file_store_of,
        backup: LocalBackup | None = None,
    ) -> CheckpointStorage:
        """As the options ``execution.checkpointing.*`` say: files where there is a directory, else
        the JobManager's memory. What is written to files of checkpoints is kept in ``backup``,
        too."""
        kind = read(configuration, options.CHECKPOINT_STORAGE)
        directory = read(configuration, options.CHECKPOINT_DIRECTORY)
        name = kind or ("jobmanager" if directory is None else "filesystem")
        limit = read(configuration, options.CHECKPOINT_MAX_STATE) if name == "jobmanager" else None
        found: CheckpointStorage
        if directory is not None:
            threshold = read(configuration, options.CHECKPOINT_FILE_THRESHOLD)
            found = FileCheckpointStorage(directory, job_id, threshold, limit, stores, backup)
        elif limit is None:
            needed = options.CHECKPOINT_DIRECTORY.key
            raise ConfigurationError(
                f"option {options.CHECKPOINT_STORAGE.key}: {kind} needs {needed}"
            )
        else:
            found = MemoryCheckpointStorage(limit, stores, job_id)
        found.compresses = read(configuration, options.SNAPSHOT_COMPRESSION)
        return found

    def try_out(self) -> None:  # where nothing is known to fail, nothing is tried
        """Raises OSError if nothing can be written here."""

    @abstractmethod
    def state_writer(self, checkpoint_id: int, name: str, attempt: int) -> StateWriter:
        """Writes what one attempt of a subtask saves for a checkpoint. ``name`` tells the subtask
        from all others of the job."""

    def was_saved(self, checkpoint_id: int, handles: Iterable[StateHandle]) -> None:
        """A subtask has saved this state for a checkpoint: what is kept of it here stays until that
        is over."""

    def of_snapshot(self, target: str | None) -> CheckpointStorage:
        """Where a snapshot goes: a savepoint to its own folder ``target``; a checkpoint (None)
        stays here."""
        if target is None:
            return self
        savepoint = SavepointStorage(target, self._job_id, self._stores)
        savepoint.compresses = self.compresses
        return savepoint

    def reader(self, location: str | None, folders: Sequence[str] = ()) -> StateReader:
        """Reads the state of the checkpoint at this location, which may be one of another job.
        What is large is read into files under ``folders``."""
        if location is None:
            return StateReader(folders=folders)
        return StateReader(self._stores(location), absolute(location), folders=folders)

    @abstractmethod
    def store(self, checkpoint: CompletedCheckpoint) -> CompletedCheckpoint:
        """Stores the manifest, and gives the checkpoint with its location. All its state must have
        been written. FileExistsError if there is a checkpoint of this number. After an error the
        checkpoint may be there all the same: the caller calls ``discard_unfinished``."""

    def load(self, location: str) -> CompletedCheckpoint:
        """The checkpoint in a folder; its ``_metadata`` may be named instead. ProgramError if there
        is none, or one of a version not known here; CheckpointDamagedError if the manifest is not
        what was written."""
        return load_checkpoint(self._stores(location), absolute(location))

    def find(self, location: str) -> CompletedCheckpoint:
        """As ``load``; of the folder of a job, its newest checkpoint. A checkpoint may be named by
        its manifest, too."""
        location = folder_of(location) if name_of(location) == METADATA else location
        newest = self.latest(location)
        return self.load(location) if newest is None else newest

    def latest(self, job_dir: str | None = None) -> CompletedCheckpoint | None:
        """The newest checkpoint in a job's folder, by default this job's, whose manifest is intact.
        Damaged ones are reported in the log."""
        return (
            None if job_dir is None else latest_checkpoint(self._stores(job_dir), absolute(job_dir))
        )

    def complete(self) -> Sequence[CompletedCheckpoint]:
        """All checkpoints of this job that are complete, oldest first. CheckpointDamagedError if
        the newest one's manifest is not intact: an older one is not enough, because sinks may have
        committed for the newest."""
        return ()

    def discard(self, checkpoint: CompletedCheckpoint) -> None:
        """Removes a checkpoint that was stored, or that this job has claimed: first its manifest,
        then its state. What checkpoints share stays."""
        if checkpoint.location is not None:
            self._remove(absolute(checkpoint.location))

    def _remove(self, folder: str) -> None:
        remove_checkpoint(self._stores(folder), folder)

    @abstractmethod
    def discard_unfinished(self, checkpoint_id: int) -> None:
        """Removes all of a checkpoint of this job that failed or was aborted."""

    @abstractmethod
    def discard_handles(self, checkpoint_id: int, handles: Iterable[StateHandle]) -> None:
        """Removes state whose subtask acknowledged a checkpoint of this job too late."""

    def discard_shared(self, files: Collection[str], location: str | None = None) -> None:
        """Removes shared files that no checkpoint uses any more: of this job, or of the one that
        the checkpoint at ``location`` belongs to, which this job has claimed. Of another job's
        files, those stay that one of its other checkpoints names."""
        if location is not None:
            self._discard_of_another(files, absolute(location))

    def _discard_of_another(self, files: Collection[str], location: str) -> None:
        """That job has ended, so nobody puts anything there."""
        job_dir = folder_of(location)
        store = self._stores(job_dir)
        unused = set(files) - shared_files_of_others(store, job_dir, location)
        _delete_all(store, shared_folder(job_dir), unused)
        remove_if_empty(store, shared_folder(job_dir))
        remove_if_empty(store, job_dir)

    def is_own(self, location: str | None) -> bool:
        """Whether the checkpoint at this location is one of this job, so that later ones may use
        its shared files."""
        return location is None

    @abstractmethod
    def discard_others(self, kept: Collection[int], shared: Collection[str] = ()) -> None:
        """The job ends: removes all its files but these checkpoints and the shared files that they
        use; so also files that a subtask wrote but never reported. With none kept the job's folder
        is removed too, unless somebody else has put something there. If a file cannot be removed,
        the others still are."""


class MemoryCheckpointStorage(CheckpointStorage):
    """In the JobManager's memory, and gone with it. State is in the handles; each piece takes
    ``max_state_size`` bytes at most.

    >>> from flinkpy.graph.checkpoints import CompletedCheckpoint
    >>> storage = MemoryCheckpointStorage()
    >>> storage.store(CompletedCheckpoint(1, 0, {})) == storage.latest()
    True
    """

    def __init__(
        self,
        max_state_size: int = 5 << 20,
        stores: Callable[[str], FileStore] = file_store_of,
        job_id: JobId = _NO_JOB,
    ) -> None:
        super().__init__(stores, job_id)
        self._max_state_size = max_state_size
        self._stored: dict[int, CompletedCheckpoint] = {}

    def state_writer(self, checkpoint_id: int, name: str, attempt: int) -> StateWriter:
        return InlineStateWriter(self._max_state_size, compresses=self.compresses)

    def store(self, checkpoint: CompletedCheckpoint) -> CompletedCheckpoint:
        if checkpoint.checkpoint_id in self._stored:
            raise FileExistsError(f"checkpoint {checkpoint.checkpoint_id} is stored already")
        self._stored[checkpoint.checkpoint_id] = checkpoint
        return checkpoint

    def latest(self, job_dir: str | None = None) -> CompletedCheckpoint | None:
        return (
            self._stored[max(self._stored)]
            if job_dir is None and self._stored
            else super().latest(job_dir)
        )

    def discard(self, checkpoint: CompletedCheckpoint) -> None:
        self._stored.pop(checkpoint.checkpoint_id, None)
        super().discard(checkpoint)

    def discard_unfinished(self, checkpoint_id: int) -> None:
        self._stored.pop(checkpoint_id, None)

    def discard_handles(self, checkpoint_id: int, handles: Iterable[StateHandle]) -> None:
        pass

    def discard_others(self, kept: Collection[int], shared: Collection[str] = ()) -> None:
        self._stored = {
            number: checkpoint for number, checkpoint in self._stored.items() if number in kept
        }


class FileCheckpointStorage(CheckpointStorage):
    """In files below a directory. State from ``threshold`` bytes on goes to files, smaller state to
    the manifest; with ``max_inline_size`` all state goes to the manifest, and a piece that is
    larger is refused. ``backup`` keeps copies of the files that are written here, and is read
    before them."""

    def __init__(
        self,
        directory: str,
        job_id: JobId,
        threshold: int = 20 << 10,
        max_inline_size: int | None = None,
        stores: Callable[[str], FileStore] = file_store_of,
        backup: LocalBackup | None = None,
    ) -> None:
        super().__init__(stores, job_id)
        self._threshold = threshold
        self._max_inline_size = max_inline_size
        self._backup = backup
        self.job_dir = join(absolute(directory), job_id)

    @property
    def _store(self) -> FileStore:
        return self._stores(self.job_dir)

    def state_writer(self, checkpoint_id: int, name: str, attempt: int) -> StateWriter:
        if self._max_inline_size is not None:
            return InlineStateWriter(self._max_inline_size, compresses=self.compresses)
        folder = checkpoint_folder(self.job_dir, checkpoint_id)
        file = f"{_file_name(name)}-{attempt}"
        store = self._store if self._backup is None else BackedUpStore(self._store, self._backup)
        return FileStateWriter(
            store,
            folder,
            file,
            self._threshold,
            lambda: f"{checkpoint_id}-{IdFactory().hex()}",
            compresses=self.compresses,
        )

    def was_saved(self, checkpoint_id: int, handles: Iterable[StateHandle]) -> None:
        if self._backup is not None:
            folder = checkpoint_folder(self.job_dir, checkpoint_id)
            self._backup.saved(
                checkpoint_id,
                {location_of(folder, handle) for handle in handles if handle.path is not None},
            )

    def reader(self, location: str | None, folders: Sequence[str] = ()) -> StateReader:
        if (
            location is None
            or self._backup is None
            or not self._backup.is_read
            or not self.is_own(location)
        ):
            return super().reader(location, folders)
        return StateReader(self._stores(location), absolute(location), self._backup, folders)

    def store(self, checkpoint: CompletedCheckpoint) -> CompletedCheckpoint:
        folder = checkpoint_folder(self.job_dir, checkpoint.checkpoint_id)
        self._store.write_atomically(
            join(folder, METADATA), [Manifest(self._job_id, checkpoint).to_bytes()]
        )
        return replace(checkpoint, location=folder)

    def try_out(self) -> None:
        """Writes a test file and deletes it. If the store fails to delete it, it is deleted with
        the job's other checkpoints."""
        folder = checkpoint_folder(self.job_dir, 0)
        try_out(self._store, folder)
        remove_if_empty(self._store, folder)
        remove_if_empty(self._store, self.job_dir)

    def latest(self, job_dir: str | None = None) -> CompletedCheckpoint | None:
        return super().latest(self.job_dir if job_dir is None else job_dir)

    def complete(self) -> Sequence[CompletedCheckpoint]:
        return complete_checkpoints(self._store, self.job_dir)

    def discard_unfinished(self, checkpoint_id: int) -> None:
        """Nobody else uses what it has shared: later checkpoints build on complete ones only."""
        self._remove(checkpoint_folder(self.job_dir, checkpoint_id))
        self._keep_shared(lambda name: not _was_shared_by(checkpoint_id, name))

    def discard_handles(self, checkpoint_id: int, handles: Iterable[StateHandle]) -> None:
        handles, folder = list(handles), checkpoint_folder(self.job_dir, checkpoint_id)
        written = [
            handle for handle in handles if _was_shared_by(checkpoint_id, handle.shared_file or "")
        ]
        for file in own_files(folder, handles) + [
            location_of(folder, handle) for handle in written
        ]:
            self._store.delete(file)

    def discard_shared(self, files: Collection[str], location: str | None = None) -> None:
        if location is None or self.is_own(location):
            _delete_all(self._store, shared_folder(self.job_dir), files)
        else:
            self._discard_of_another(files, absolute(location))

    def is_own(self, location: str | None) -> bool:
        return location is not None and folder_of(absolute(location)) == self.job_dir

    def discard_others(self, kept: Collection[int], shared: Collection[str] = ()) -> None:
        store, errors = self._store, list[OSError]()
        for checkpoint_id in checkpoint_ids(store, self.job_dir):
            try:
                if checkpoint_id not in kept:
                    self._remove(checkpoint_folder(self.job_dir, checkpoint_id))
            except OSError as error:  # of one; the others need not stay for it
                errors.append(error)
        if kept:
            self._keep_shared(lambda name: name in shared)
        if errors:
            raise errors[0]
        if kept:
            return
        store.delete_dir(shared_folder(self.job_dir))
        remove_if_empty(store, self.job_dir)

    def _keep_shared(self, wanted: Callable[[str], bool]) -> None:
        """Deletes all other files that the job's checkpoints share, also those that were not
        completed."""
        store, folder = self._store, shared_folder(self.job_dir)
        for name in store.list(folder):
            if not wanted(name):
                store.delete(join(folder, name))


class SavepointStorage(CheckpointStorage):
    """The folder of one savepoint, whatever its checkpoint's number. Files are named relative to
    it, and it has all that it needs, so it can be moved and copied.

    >>> CheckpointStorage.of({}, JobId("job")).of_snapshot("/tmp/savepoints/mine").store(
    ...     CompletedCheckpoint(1, 0, {})
    ... ).location  # doctest: +SKIP
    '/tmp/savepoints/mine'
    """

    def __init__(
        self,
        folder: str,
        job_id: JobId,
        stores: Callable[[str], FileStore] = file_store_of,
        threshold: int = options.CHECKPOINT_FILE_THRESHOLD.default,
    ) -> None:
        super().__init__(stores, job_id)
        self._folder, self._threshold = absolute(folder), threshold

    @property
    def _store(self) -> FileStore:
        return self._stores(self._folder)

    def try_out(self) -> None:
        """It costs a small file, and may spare large ones."""
        try_out(self._store, self._folder)
        remove_if_empty(self._store, self._folder)  # perhaps nothing follows

    def complete(self) -> Sequence[CompletedCheckpoint]:
        """The savepoint, if its manifest is there."""
        return (
            (self.load(self._folder),) if self._store.exists(join(self._folder, METADATA)) else ()
        )

    def state_writer(self, checkpoint_id: int, name: str, attempt: int) -> StateWriter:
        file = f"{_file_name(name)}-{attempt}"
        return FileStateWriter(
            self._store, self._folder, file, self._threshold, compresses=self.compresses
        )

    def store(self, checkpoint: CompletedCheckpoint) -> CompletedCheckpoint:
        elsewhere = [
            handle.path
            for handle in checkpoint.handles()
            if handle.path is not None and "/" in handle.path
        ]
        if elsewhere:
            raise EngineError(
                f"the savepoint {self._folder} refers to {elsewhere[0]}, which is not its own"
            )
        manifest = Manifest(self._job_id, checkpoint, is_savepoint=True)
        self._store.write_atomically(join(self._folder, METADATA), [manifest.to_bytes()])
        return replace(checkpoint, location=self._folder)

    def discard(self, checkpoint: CompletedCheckpoint) -> None:
        self.discard_unfinished(checkpoint.checkpoint_id)

    def discard_unfinished(self, checkpoint_id: int) -> None:
        remove_checkpoint(self._store, self._folder)

    def discard_handles(self, checkpoint_id: int, handles: Iterable[StateHandle]) -> None:
        for file in own_files(self._folder, handles):
            self._store.delete(file)
        remove_if_empty(self._store, self._folder)

    def discard_others(self, kept: Collection[int], shared: Collection[str] = ()) -> None:
        """Nothing: others are elsewhere."""


def _delete_all(store: FileStore, folder: str, names: Iterable[str]) -> None:
    for name in sorted(names):
        store.delete(join(folder, name))


def _was_shared_by(checkpoint_id: int, name: str) -> bool:
    """Whether the file was written for this checkpoint; a file in the making has a dot before its
    name."""
    return name.lstrip(".").startswith(f"{checkpoint_id}-")


def _file_name(name: str) -> str:
    """The name as one that every file system takes. Names that differ stay different."""
    safe = _NOT_IN_NAMES.sub("_", name)[:100]
    return safe if safe == name else f"{safe}-{zlib.crc32(name.encode()):08x}"
