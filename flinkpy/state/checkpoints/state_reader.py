"""Reads the state of a checkpoint, and gives back the very bytes that were written, or an error."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

from flinkpy.core.errors import CheckpointDamagedError
from flinkpy.core.files.large_bytes import IN_MEMORY, Data, gathered
from flinkpy.graph.checkpoints import SHARED, StateHandle
from flinkpy.state.checkpoints.compression import decompressed
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.local_backup import LocalBackup
from flinkpy.state.checkpoints.locations import folder_of, join, shared_folder

Sums: TypeAlias = tuple[int, int]  # length and checksum

_CHUNK = 1 << 20
_PART = 8 << 20  # of large state
_CHECKERS = 4  # threads; the checksum of one file is made while others are read


class StateReader:
    """Reads the state of the checkpoint in this folder; without a folder, of one whose state stands
    in the handles. What is intact in ``backup`` is read there. What is large is read into files
    under ``folders``.

    >>> StateReader().read(StateHandle(3, 891568578, data=b"abc"))
    b'abc'
    """

    def __init__(
        self,
        store: FileStore | None = None,
        folder: str | None = None,
        backup: LocalBackup | None = None,
        folders: Sequence[str] = (),
    ) -> None:
        self._store = store
        self._folder = folder
        self._backup = backup
        self._folders = folders

    def read(self, handle: StateHandle) -> bytes:
        """CheckpointDamagedError if the bytes are not those that were written, or not there."""
        data = self.view(handle)
        return data if isinstance(data, bytes) else bytes(data)

    def view(self, handle: StateHandle) -> Data:
        """The same; many bytes are a view of a mapped file."""
        copied = self._from_backup(handle)
        if copied is not None:
            return self._plain(handle, copied, "a local copy")
        data, where = (
            (handle.data, "state in the manifest")
            if handle.data is not None
            else self._from_file(handle)
        )
        _check(handle, where, (len(data), zlib.crc32(data)))
        return self._plain(handle, data, where)

    def _plain(self, handle: StateHandle, data: Data, where: str) -> Data:
        if handle.codec is None:
            return data
        return gathered(decompressed(data, where), self._folders)

    def fetch(self, wanted: Mapping[str, StateHandle]) -> None:
        """Puts state into new files on this machine's disk, by their paths, which nobody changes. A
        file that is on the same disk is not copied, but read to its end all the same, several at a
        time. CheckpointDamagedError as in ``read``."""
        copies = self._linked_copies(wanted)
        others = {path: handle for path, handle in wanted.items() if path not in copies}
        linked = {} if self._store is None else self._linked(others, self._store.link)
        for path, found in _sums_of(linked):
            _check(wanted[path], linked[path], found)
        for path, handle in others.items():
            if path not in linked:
                with open(path, "xb") as file:
                    file.write(self.view(handle))

    def _linked_copies(self, wanted: Mapping[str, StateHandle]) -> Mapping[str, str]:
        """Those of the paths that lead to intact copies now."""
        backup = self._backup
        if backup is None:
            return {}
        copies = self._linked(wanted, backup.link)
        for path, found in _sums_of(copies):
            if found == _sums_in(wanted[path]):
                backup.was_taken()
            else:
                os.unlink(path)
                backup.refuse(copies.pop(path))
        return copies

    def _linked(
        self, wanted: Mapping[str, StateHandle], link: Callable[[str, str], bool]
    ) -> dict[str, str]:
        """The paths that could be linked to whole files, each with where that file is."""
        linked: dict[str, str] = {}
        for path, handle in wanted.items():
            if (
                handle.offset != 0
                or handle.shared_file is None
                or handle.codec is not None
                or self._folder is None
            ):
                continue
            where = location_of(self._folder, handle)
            if link(where, path):
                if os.path.getsize(path) == handle.length:
                    linked[path] = where
                else:
                    os.unlink(path)  # it has other pieces too
        return linked

    def _from_backup(self, handle: StateHandle) -> Data | None:
        """What an intact copy has of it."""
        backup = self._backup
        if backup is None or handle.path is None or self._folder is None:
            return None
        where = location_of(self._folder, handle)
        if not backup.has(where):
            return None
        data = self._all(handle, partial(backup.read, where))
        if (len(data), zlib.crc32(data)) != _sums_in(handle):
            backup.refuse(where)
            return None
        backup.was_taken()
        return data

    def _from_file(self, handle: StateHandle) -> tuple[Data, str]:
        if self._store is None or self._folder is None:
            found = "a checkpoint without a folder"
            raise CheckpointDamagedError(
                f"file {handle.path}", "in the folder of a checkpoint", found
            )
        where = location_of(self._folder, handle)
        try:
            return self._all(handle, partial(self._store.read, where)), where
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            expected = f"a file of at least {handle.offset + handle.length} bytes"
            raise CheckpointDamagedError(where, expected, "no such file") from error

    def _all(self, handle: StateHandle, read: Callable[[int, int], bytes]) -> Data:
        """Reads so many bytes from where they begin, some at a time if they are many."""
        if handle.length <= IN_MEMORY:
            return read(handle.offset, handle.length)
        end = handle.offset + handle.length
        starts = range(handle.offset, end, _PART)
        return gathered((read(at, min(_PART, end - at)) for at in starts), self._folders)


def _sums_in(handle: StateHandle) -> Sums:
    return handle.length, handle.checksum


def _check(handle: StateHandle, where: str, found: Sums) -> None:
    if found != _sums_in(handle):
        expected = (
            f"{handle.length} bytes from {handle.offset} on with the checksum {handle.checksum:08x}"
        )
        raise CheckpointDamagedError(
            where, expected, f"{found[0]} bytes with the checksum {found[1]:08x}"
        )


def _sums_of(paths: Iterable[str]) -> list[tuple[str, Sums]]:
    """What is in the files, several of which are read at a time."""
    paths = list(paths)
    if not paths:
        return []
    with ThreadPoolExecutor(_CHECKERS, thread_name_prefix="check-state") as checkers:
        return list(zip(paths, checkers.map(_sums_of_file, paths)))


def _sums_of_file(path: str) -> Sums:
    length, checksum, chunk = 0, 0, memoryview(bytearray(_CHUNK))
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(chunk):
            length, checksum = length + count, zlib.crc32(chunk[:count], checksum)
    return length, checksum


def location_of(folder: str, handle: StateHandle) -> str:
    """Where the handle's file is: in the checkpoint's folder, or among the files that checkpoints
    of the job share. A manifest that names any other place was not written by flinkpy."""
    path, shared = handle.path or "", handle.shared_file is not None
    name = path.removeprefix(SHARED)
    if not name or "/" in name or name in (".", ".."):
        expected = "a checkpoint with files of its own, or of the folder shared"
        raise CheckpointDamagedError(folder, expected, f"the file {path!r:.200}")
    return join(shared_folder(folder_of(folder)), name) if shared else join(folder, name)


def own_files(folder: str, handles: Iterable[StateHandle]) -> list[str]:
    """The files of the checkpoint's own folder that the handles are in, each once."""
    owning = (
        handle for handle in handles if handle.path is not None and handle.shared_file is None
    )
    return list(dict.fromkeys(location_of(folder, handle) for handle in owning))
