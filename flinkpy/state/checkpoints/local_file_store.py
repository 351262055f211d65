"""Files on the local disk, or on a shared one that is mounted there.

A file is written under another name beside its place, synced, and linked to its place: that refuses
where a file of the name is there already, which a rename does not. Then its folder is synced, so
that the name survives a loss of power too."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence

from flinkpy.core.ids import IdFactory
from flinkpy.state.checkpoints.file_store import Chunk, FileStore, NewFile
from flinkpy.state.checkpoints.locations import local_path

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
_DELETE_ATTEMPTS = 100


class LocalFileStore(FileStore):
    """Takes paths and ``file:`` URLs. Without ``is_synced``, files need not survive a loss of
    power. With ``is_private``, nobody but their user reads the files, nor the folders that are made
    for them."""

    def __init__(self, *, is_synced: bool = True, is_private: bool = False) -> None:
        self._is_synced, self._is_private = is_synced, is_private

    def create(self, location: str) -> NewFile:
        path = local_path(location)
        _make_folder(os.path.dirname(path), 0o700 if self._is_private else 0o777)
        return _NewLocalFile(path, self._is_synced, 0o600 if self._is_private else 0o666)

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        descriptor = os.open(local_path(location), os.O_RDONLY)
        try:
            if length is None:
                length = max(os.fstat(descriptor).st_size - offset, 0)
            first = os.pread(descriptor, length, offset)
            if len(first) == length:
                return first
            pieces, missing = [first], length - len(first)  # one call gives 2 GB at most
            while missing and pieces[-1]:
                pieces.append(os.pread(descriptor, missing, offset + length - missing))
                missing -= len(pieces[-1])
            return b"".join(pieces)
        finally:
            os.close(descriptor)

    def link(self, location: str, path: str) -> bool:
        try:
            os.link(local_path(location), path)
        except OSError:  # on another disk, or not there
            return False
        return True

    def delete(self, location: str) -> None:
        try:
            os.unlink(local_path(location))
        except FileNotFoundError:
            pass

    def delete_dir(self, location: str) -> None:
        path = local_path(location)
        for attempt in range(_DELETE_ATTEMPTS):
            if not os.path.isdir(path):
                return
            try:
                shutil.rmtree(path)
            except OSError as error:
                # Somebody else deleted, or finished a file, at the same time
                if (
                    error.errno not in (errno.ENOENT, errno.ENOTEMPTY)
                    or attempt + 1 == _DELETE_ATTEMPTS
                ):
                    raise

    def list(self, location: str) -> Sequence[str]:
        try:
            return sorted(os.listdir(local_path(location)))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def exists(self, location: str) -> bool:
        return os.path.exists(local_path(location))


class _NewLocalFile(NewFile):
    def __init__(self, path: str, is_synced: bool, mode: int) -> None:
        self._is_synced = is_synced
        folder, name = os.path.split(path)
        self._path, self._aside = path, os.path.join(folder, f".{name}.{IdFactory().hex(8)}.tmp")
        descriptor = os.open(self._aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        self._file = os.fdopen(descriptor, "wb")  # close and discard close it
        self._done = False

    def write(self, chunk: Chunk) -> None:
        self._file.write(chunk)

    def close(self) -> None:
        try:
            self._file.flush()
            if self._is_synced:
                os.fsync(self._file.fileno())
            self._file.close()
            _move_if_absent(self._aside, self._path)
        except BaseException:
            self.discard()
            raise
        self._done = True
        if self._is_synced:
            _sync_folder(os.path.dirname(self._path))

    def discard(self) -> None:
        if self._done:
            return
        self._done = True
        try:
            self._file.close()  # may try to write what is left, on a full disk
        finally:
            try:
                os.unlink(self._aside)
            except FileNotFoundError:
                pass


def _move_if_absent(aside: str, path: str) -> None:
    try:
        os.link(aside, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from None
        os.rename(aside, path)
    else:
        os.unlink(aside)


def _make_folder(folder: str, mode: int) -> None:
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder)
    _make_folder(parent, mode)
    try:
        os.mkdir(folder, mode)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
    _sync_folder(parent)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # some network disks do not sync folders
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
