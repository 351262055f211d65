"""Pieces of bytes that are read again later, of which only some are in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from flinkpy.core.files.spill_file import SpillFile

IN_MEMORY = 16 << 20  # bytes of a spool


class OnDisk:
    """A piece that lies in a file. The file is gone when all of its pieces are."""

    __slots__ = ("_file", "_length", "_offset")

    def __init__(self, file: SpillFile, data: bytes) -> None:
        self._file, self._length, self._offset = file, len(data), file.append([data])

    def __len__(self) -> int:
        return self._length

    def read(self) -> bytes:
        return self._file.read(self._offset, self._length)


Spooled: TypeAlias = "bytes | OnDisk"


class Spool:
    """Pieces beyond some megabytes lie in a file under ``folders``.

    >>> spool = Spool()
    >>> contents(spool.add(b"abc"))
    b'abc'
    """

    def __init__(self, folders: Sequence[str] = ()) -> None:
        self._folders = folders
        self._size = 0
        self._file: SpillFile | None = None

    def add(self, data: bytes) -> Spooled:
        """The piece as it is to be kept. Raises ResourceUnavailableError if the disk fails."""
        self._size += len(data)
        if self._size <= IN_MEMORY:
            return data
        if self._file is None:
            self._file = SpillFile(self._folders)
        return OnDisk(self._file, data)


def contents(piece: Spooled) -> bytes:
    """Its bytes."""
    return piece if isinstance(piece, bytes) else piece.read()
