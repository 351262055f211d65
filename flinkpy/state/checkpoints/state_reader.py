"""Reads the state of a checkpoint, and gives back the very bytes that were written, or an error."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from flinkpy.core.errors import CheckpointDamagedError
from flinkpy.graph.checkpoints import StateHandle
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.locations import folder_of, join

_SHARED = "../shared/"


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


def location_of(folder: str, handle: StateHandle) -> str:
    """Where the handle's file is: in the checkpoint's folder, or among the files that checkpoints of the job share. A
    manifest that names any other place was not written by flinkpy."""
    path = handle.path or ""
    shared = path.startswith(_SHARED)
    name = path[len(_SHARED):] if shared else path
    if not name or "/" in name or name in (".", ".."):
        expected = "a checkpoint with files of its own, or of the folder shared"
        raise CheckpointDamagedError(folder, expected, f"the file {path!r:.200}")
    return join(folder_of(folder), "shared", name) if shared else join(folder, name)


def own_files(folder: str, handles: Iterable[StateHandle]) -> list[str]:
    """The files of the checkpoint's own folder that the handles are in, each once."""
    owning = (handle for handle in handles if handle.path is not None and not handle.path.startswith(_SHARED))
    return list(dict.fromkeys(location_of(folder, handle) for handle in owning))
