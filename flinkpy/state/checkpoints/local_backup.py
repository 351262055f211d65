"""Local backups: second copies, on a worker's own disk, of the files that its subtasks write into
checkpoints. A task that restarts on the same worker reads them in place of the checkpoint's own.

A backup is a hint. Who reads one compares it with the length and the checksum that the checkpoint
gives, and reads the checkpoint's own file if it differs or is not there. So backups need not be
synced, whatever goes wrong with them is logged and fails nothing, and they are deleted as soon as
the newest complete checkpoint does not need them.

Where the checkpoint's files are on the same disk, or the state is in files there already
(RocksDB's), a backup is a link, and nothing is written twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from flinkpy.core.ids import JobId
from flinkpy.core.options import checkpointing as options
from flinkpy.core.options.engine import spill_folders
from flinkpy.core.options.schema import read
from flinkpy.core.options.state import folders
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.state.checkpoints.file_store import Chunk, FileStore, NewFile
from flinkpy.state.checkpoints.local_file_store import LocalFileStore
from flinkpy.state.checkpoints.locations import join
from flinkpy.state.checkpoints.own_folder import OwnFolder

LOG = engine_logger(__name__)
_turns = count()


@dataclass(frozen=True)
class BackupFolder:
    """Where the backups of one job are. ``remove`` deletes the folder with all that is in it."""

    store: FileStore
    path: str
    remove: Callable[[], object]

    @staticmethod
    def on_disk(values: Mapping[str, Any]) -> BackupFolder:
        """A new one. If several folders are configured, each job takes the next one."""
        named = folders(read(values, options.LOCAL_BACKUP_DIRECTORIES)) or spill_folders(values)
        folder = OwnFolder(named[next(_turns) % len(named)] if named else None, "backups")
        return BackupFolder(LocalFileStore(is_synced=False), str(folder.path), folder.remove)


@dataclass(frozen=True)
class LocalBackupStatistics:
    """``taken`` counts the reads of copies, ``refused`` those copies that were not what they should
    be."""

    files: int
    taken: int
    refused: int


class LocalBackup:
    """What one worker keeps of one job. ``open_folder`` is called when there is a first file to
    keep. Calls come from any of the worker's threads for files, as those of several subtasks do at
    the same time."""

    def __init__(self, open_folder: Callable[[], BackupFolder], *, is_read: bool = True) -> None:
        self.is_read = is_read
        # whether the checkpoint's own files can be linked; None until it was tried
        self.links: bool | None = None
        self._open_folder = open_folder
        self._folder: BackupFolder | None = None
        # where they are, by the location of the file that each is of
        self._copies: dict[str, str] = {}
        self._needed: dict[int, frozenset[str]] = {}  # those files, by the checkpoint that has them
        self._lock = threading.RLock()
        self._numbers = count()
        self._taken = 0
        self._refused = 0
        self._closed = False

    @staticmethod
    def of(
        values: Mapping[str, Any], open_folder: Callable[[Mapping[str, Any]], BackupFolder]
    ) -> LocalBackup | None:
        """As the job's options say; None if nothing is kept."""
        if not options.keeps_local_backups(values):
            return None
        return LocalBackup(
            lambda: open_folder(values), is_read=read(values, options.RECOVER_FROM_LOCAL)
        )

    # -- keeping -----------------------------------------------------------------------------------

    def begin_copy(self) -> Copy | None:
        """A copy of a file that is about to be written. None if there can be none."""
        with self._lock:
            if self._closed:
                return None
            try:
                if self._folder is None:
                    self._folder = self._open_folder()
            except OSError as error:
                LOG.warning("there is no folder for local backups: %s", error)
                self._closed = True
                return None
            return Copy(
                self._folder.store,
                join(self._folder.path, str(next(self._numbers))),
                is_written=not self.links,
            )

    def keep(self, location: str, copy: Copy) -> None:
        """The file at this location has appeared, and this is a copy of it."""
        with self._lock:
            self.forget(location)
            if not self._closed:
                self._copies[location] = copy.path
                return
        copy.delete()

    def saved(self, checkpoint_id: int, locations: Iterable[str]) -> None:
        """A subtask has saved its state for this checkpoint in files, some of which may be of
        earlier ones."""
        with self._lock:
            self._needed[checkpoint_id] = self._needed.get(checkpoint_id, frozenset()).union(
                locations
            )

    def checkpoint_ended(self, checkpoint_id: int, is_complete: bool) -> None:
        """Drops what no task goes back to any more. Nothing, for a savepoint: no task goes back to
        it."""
        with self._lock:
            if checkpoint_id not in self._needed:
                return
            if is_complete:
                self._needed = {
                    number: files
                    for number, files in self._needed.items()
                    if number >= checkpoint_id
                }
            else:
                del self._needed[checkpoint_id]
            needed = frozenset[str]().union(*self._needed.values())
            for location in [each for each in self._copies if each not in needed]:
                self.forget(location)

    def forget(self, location: str) -> None:
        """Deletes the copy of the file at this location, if there is one."""
        copy, folder = self._copies.pop(location, None), self._folder
        if copy is not None and folder is not None:
            _tried(lambda: folder.store.delete(copy))

    def close(self) -> None:
        """The job has left the worker: deletes everything, and keeps nothing any more."""
        with self._lock:
            self._closed = True
            self._copies, self._needed = {}, {}
            folder, self._folder = self._folder, None
        if folder is not None:
            _tried(folder.remove)

    # -- reading -----------------------------------------------------------------------------------

    def has(self, location: str) -> bool:
        """Whether there is a copy."""
        return self._folder is not None and location in self._copies

    def read(self, location: str, offset: int, length: int) -> bytes:
        """These bytes of the copy, which the caller checks."""
        copy, folder = self._copies.get(location), self._folder
        if copy is None or folder is None:
            return b""
        try:
            return folder.store.read(copy, offset, length)
        except OSError:
            return b""  # which the caller refuses

    def link(self, location: str, path: str) -> bool:
        """Gives the copy a second name, as ``FileStore.link``."""
        copy, folder = self._copies.get(location), self._folder
        return copy is not None and folder is not None and folder.store.link(copy, path)

    def was_taken(self) -> None:
        """A copy was what the checkpoint says."""
        self._taken += 1

    def refuse(self, location: str) -> None:
        """The copy is not what the checkpoint says."""
        LOG.warning(
            "the local backup of %s is damaged; the checkpoint's own file is read", location
        )
        self._refused += 1
        self.forget(location)

    @property
    def locations(self) -> frozenset[str]:
        """The names of the files that have copies."""
        return frozenset(self._copies)

    @property
    def statistics(self) -> LocalBackupStatistics:
        return LocalBackupStatistics(len(self._copies), self._taken, self._refused)

    def __repr__(self) -> str:
        return f"<LocalBackup {self.statistics}>"


class LocalBackups:
    """Those of one worker, by job: of jobs that have, or had, tasks there."""

    def __init__(self, open_folder: Callable[[Mapping[str, Any]], BackupFolder]) -> None:
        self._open_folder = open_folder
        self._backups: dict[JobId, LocalBackup | None] = {}

    def of_job(self, job_id: JobId, values: Mapping[str, Any]) -> LocalBackup | None:
        """None if the job's options say that nothing is kept."""
        if job_id not in self._backups:
            self._backups[job_id] = LocalBackup.of(values, self._open_folder)
        return self._backups[job_id]

    def left(self, job_id: JobId) -> LocalBackup | None:
        """The job has ended here: gives its backup back, to be closed."""
        return self._backups.pop(job_id, None)

    def close(self) -> None:
        for backup in self._backups.values():
            if backup is not None:
                backup.close()


class Copy:
    """A copy in the making. No call raises an OSError: then there is no copy."""

    def __init__(self, store: FileStore, path: str, *, is_written: bool) -> None:
        self.path, self._store = path, store
        self._file: NewFile | None = None
        self.is_linked = False
        if is_written:
            _tried(self._begin)

    def _begin(self) -> None:
        self._file = self._store.create(self.path)

    def link(self, store: FileStore, location: str) -> bool:
        """Becomes a second name of the file at this location of the store, if that can be."""
        if not self.is_linked and store.link(location, self.path):
            self._give_up()
            self.is_linked = True
        return self.is_linked

    def write(self, chunk: Chunk) -> None:
        file = self._file
        if file is not None and not _tried(lambda: file.write(chunk)):
            self._give_up()

    def finish(self) -> bool:
        """Whether it is there from now on."""
        file, self._file = self._file, None
        return self.is_linked or (file is not None and _tried(file.close))

    def drop(self) -> None:
        self._give_up()
        if self.is_linked:
            self.delete()

    def delete(self) -> None:
        """It is there, and is not wanted any more."""
        _tried(lambda: self._store.delete(self.path))

    def _give_up(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            _tried(file.discard)


class BackedUpStore(FileStore):
    """``store``, of whose new files copies are kept."""

    def __init__(self, store: FileStore, backup: LocalBackup) -> None:
        self._store, self._backup = store, backup

    def create(self, location: str) -> NewFile:
        file, copy = self._store.create(location), self._backup.begin_copy()
        return (
            file if copy is None else _BackedUpFile(file, location, self._store, copy, self._backup)
        )

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._store.read(location, offset, length)

    def link(self, location: str, path: str) -> bool:
        return self._store.link(location, path)

    def delete(self, location: str) -> None:
        self._backup.forget(location)
        self._store.delete(location)

    def delete_dir(self, location: str) -> None:
        self._store.delete_dir(location)

    def list(self, location: str) -> Sequence[str]:
        return self._store.list(location)

    def exists(self, location: str) -> bool:
        return self._store.exists(location)


class _BackedUpFile(NewFile):
    """A file in the making, with its copy, which is kept when the file has appeared."""

    def __init__(
        self, file: NewFile, location: str, store: FileStore, copy: Copy, backup: LocalBackup
    ) -> None:
        self._file = file
        self._location = location
        self._store = store
        self._copy = copy
        self._backup = backup

    def is_as(self, path: str) -> None:
        self._copy.link(LocalFileStore(), path)

    def write(self, chunk: Chunk) -> None:
        self._file.write(chunk)
        self._copy.write(chunk)

    def close(self) -> None:
        self._file.close()  # if it fails, who writes the file discards it
        if not self._copy.is_linked and self._backup.links is not False:
            self._backup.links = self._copy.link(self._store, self._location)
        if self._copy.finish():
            self._backup.keep(self._location, self._copy)

    def discard(self) -> None:
        self._copy.drop()
        self._file.discard()


def _tried(action: Callable[[], object]) -> bool:
    """Whether it worked."""
    try:
        action()
    except OSError as error:
        LOG.info("a local backup: %s", error)
        return False
    return True
