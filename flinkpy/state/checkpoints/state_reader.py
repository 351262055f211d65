"""Reads the state of a checkpoint, and gives back the very bytes that were written, or an error."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from flinkpy.core.errors import CheckpointDamagedError
from flinkpy.graph.checkpoints import SHARED, StateHandle
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.locations import folder_of, join, shared_folder

_CHUNK = 1 << 20
_CHECKERS = 4  # threads; the checksum of one file is made while others are read


class StateReader:
    """Of the checkpoint in this folder; without a folder, of one whose state stands in the handles.

    >>> StateReader().read(StateHandle(3, 891568578, data=b"abc"))
    b'abc'
    """

    def __init__(self, store: FileStore | None = None, folder: str | None = None) -> None:
        self._store, self._folder = store, folder

    def read(self, handle: StateHandle) -> bytes:
        """CheckpointDamagedError if the bytes are not those that were written, or not there."""
        data, where = (handle.data, "state in the manifest") if handle.data is not None else self._from_file(handle)
        checksum = zlib.crc32(data)
        if len(data) != handle.length or checksum != handle.checksum:
            expected = f"{handle.length} bytes from {handle.offset} on with the checksum {handle.checksum:08x}"
            raise CheckpointDamagedError(where, expected, f"{len(data)} bytes with the checksum {checksum:08x}")
        return data

    def fetch(self, wanted: Mapping[str, StateHandle]) -> None:
        """Puts state into new files on this machine's disk, by their paths, which nobody changes. A file of the store that is on the same disk is
        not copied, but read to its end all the same, several at a time. CheckpointDamagedError as in ``read``."""
        linked = []
        for path, handle in wanted.items():
            where = self._linked(handle, path)
            if where is not None:
                linked.append((handle, path, where))
                continue
            with open(path, "xb") as file:
                file.write(self.read(handle))
        if linked:
            with ThreadPoolExecutor(_CHECKERS, thread_name_prefix="check-state") as checkers:
                for _ in checkers.map(_check_file, *zip(*linked)):
                    pass

    def _linked(self, handle: StateHandle, path: str) -> str | None:
        """Where the file is that the path leads to now, if the store could do that."""
        if handle.offset != 0 or handle.shared_file is None or self._store is None or self._folder is None:
            return None
        where = location_of(self._folder, handle)
        if not self._store.link(where, path):
            return None
        if os.path.getsize(path) == handle.length:
            return where
        os.unlink(path)  # it has other pieces too
        return None

    def _from_file(self, handle: StateHandle) -> tuple[bytes, str]:
        if self._store is None or self._folder is None:
            found = "a checkpoint without a folder"
            raise CheckpointDamagedError(f"file {handle.path}", "in the folder of a checkpoint", found)
        where = location_of(self._folder, handle)
        try:
            return self._store.read(where, handle.offset, handle.length), where
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            expected = f"a file of at least {handle.offset + handle.length} bytes"
            raise CheckpointDamagedError(where, expected, "no such file") from error


def _check_file(handle: StateHandle, path: str, where: str) -> None:
    length, checksum, chunk = 0, 0, memoryview(bytearray(_CHUNK))
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(chunk):
            length, checksum = length + count, zlib.crc32(chunk[:count], checksum)
    if (length, checksum) != (handle.length, handle.checksum):
        expected = f"{handle.length} bytes with the checksum {handle.checksum:08x}"
        raise CheckpointDamagedError(where, expected, f"{length} bytes with the checksum {checksum:08x}")


def location_of(folder: str, handle: StateHandle) -> str:
    """Where the handle's file is: in the checkpoint's folder, or among the files that checkpoints of the job share. A
    manifest that names any other place was not written by flinkpy."""
    path, shared = handle.path or "", handle.shared_file is not None
    name = path.removeprefix(SHARED)
    if not name or "/" in name or name in (".", ".."):
        expected = "a checkpoint with files of its own, or of the folder shared"
        raise CheckpointDamagedError(folder, expected, f"the file {path!r:.200}")
    return join(shared_folder(folder_of(folder)), name) if shared else join(folder, name)


def own_files(folder: str, handles: Iterable[StateHandle]) -> list[str]:
    """The files of the checkpoint's own folder that the handles are in, each once."""
    owning = (handle for handle in handles if handle.path is not None and handle.shared_file is None)
    return list(dict.fromkeys(location_of(folder, handle) for handle in owning))
