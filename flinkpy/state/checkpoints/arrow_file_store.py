"""Files in a file system that Arrow knows: S3, Google's and Azure's stores, HDFS.

Where a rename is one step (HDFS, a disk), a file is written under another name first. In an object
store a rename is a copy, and an object appears when its last part has arrived; so it is written in
its place. Arrow cannot take an unfinished object back: what is discarded appears, cut short, and is
deleted at once. A process that dies in between leaves it there; therefore a manifest has a checksum
of its own, and nothing refers to other files before they were closed."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from flinkpy.core.files.file_systems import is_object_store
from flinkpy.core.ids import IdFactory
from flinkpy.state.checkpoints.file_store import Chunk, FileStore, NewFile
from flinkpy.state.checkpoints.locations import scheme_of


class ArrowFileStore(FileStore):
    """Takes URLs of one file system. ``root`` is the system's path that a URL without one means: of
    S3 the bucket. ``renames`` says whether it renames in one step, where that is not to be known by
    its type.

    >>> from pyarrow import fs
    >>> store = ArrowFileStore(fs.LocalFileSystem())
    >>> store.exists("/no/such/file")
    False
    """

    def __init__(self, system: Any, root: str = "", renames: bool | None = None) -> None:
        self._system, self._root = system, root
        self._has_folders = not is_object_store(system)
        self._renames = self._has_folders if renames is None else renames

    def create(self, location: str) -> NewFile:
        path = self._path(location)
        if _kind(self._system, path) is not None:
            raise _exists(location)
        folder, _, name = path.rpartition("/")
        if self._has_folders:
            self._system.create_dir(folder, recursive=True)
        written_at = f"{folder}/.{name}.{IdFactory().hex(8)}.tmp" if self._renames else path
        return _NewArrowFile(self._system, path, written_at)

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        with self._system.open_input_file(self._path(location)) as file:
            size = file.size()
            wanted = max(size - offset, 0) if length is None else max(min(length, size - offset), 0)
            return bytes(file.read_at(wanted, offset)) if wanted else b""

    def delete(self, location: str) -> None:
        try:
            self._system.delete_file(self._path(location))
        except FileNotFoundError:
            pass

    def delete_dir(self, location: str) -> None:
        path = self._path(location)
        if _kind(self._system, path) == "Directory":
            try:
                self._system.delete_dir(path)
            except FileNotFoundError:
                pass

    def list(self, location: str) -> Sequence[str]:
        from pyarrow import fs

        selector = fs.FileSelector(self._path(location), allow_not_found=True)
        return sorted(info.base_name for info in self._system.get_file_info(selector))

    def exists(self, location: str) -> bool:
        return _kind(self._system, self._path(location)) is not None

    def _path(self, location: str) -> str:
        if scheme_of(location) is None:
            return location
        return f"{self._root}/{unquote(urlsplit(location).path).lstrip('/')}".rstrip("/")


class _NewArrowFile(NewFile):
    def __init__(self, system: Any, path: str, written_at: str) -> None:
        self._system = system
        self._path = path
        self._written_at = written_at
        self._stream = system.open_output_stream(written_at)
        self._done = False

    def write(self, chunk: Chunk) -> None:
        self._stream.write(chunk)

    def close(self) -> None:
        try:
            self._stream.close()
            if self._written_at != self._path:
                if _kind(self._system, self._path) is not None:
                    raise _exists(self._path)
                self._system.move(self._written_at, self._path)
        except BaseException:
            self.discard()
            raise
        self._done = True

    def discard(self) -> None:
        if self._done:
            return
        self._done = True
        try:
            self._stream.close()
        finally:
            try:
                self._system.delete_file(self._written_at)
            except FileNotFoundError:
                pass


def _kind(system: Any, path: str) -> str | None:
    """File or Directory; None if there is nothing."""
    name = system.get_file_info(path).type.name
    return None if name == "NotFound" else str(name)


def _exists(location: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), location)
