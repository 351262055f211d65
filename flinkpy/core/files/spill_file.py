"""A file for what does not fit into memory: appended to, read at any offset, and gone with its
owner.

The file is deleted as soon as it is open, so it has no name in the file system and nothing is left
behind however the process ends."""

from __future__ import annotations

import itertools
import mmap
import os
import tempfile
from collections.abc import Iterable, Sequence

from flinkpy.core.errors import ResourceUnavailableError

_turns = itertools.count()


class SpillFile:
    """A spill file, used by one thread. Files take turns in ``folders`` (option ``io.tmp.dirs``);
    without any, they lie in the system's temporary folder.

    >>> file = SpillFile()
    >>> file.append([b"ab", b"cd"]), file.read(2, 2)
    (0, b'cd')
    >>> file.close()
    """

    __slots__ = ("_descriptor", "_folder", "size")

    def __init__(self, folders: Sequence[str] = ()) -> None:
        """Raises ResourceUnavailableError, which names the option, if no file can be created."""
        self._folder = folders[next(_turns) % len(folders)] if folders else tempfile.gettempdir()
        self.size = 0
        self._descriptor = -1
        try:
            descriptor, path = tempfile.mkstemp(prefix="flinkpy-spill-", dir=self._folder)
            os.unlink(path)
        except OSError as error:
            raise self._trouble(error) from None
        self._descriptor = descriptor

    def append(self, buffers: Iterable[bytes | bytearray | memoryview]) -> int:
        """Writes the buffers one after the other; returns the offset of the first byte."""
        start = self.size
        try:
            for buffer in buffers:
                view = memoryview(buffer).cast("B")
                while len(view):
                    written = os.pwrite(self._descriptor, view, self.size)
                    self.size += written
                    view = view[written:]
        except OSError as error:
            raise self._trouble(error) from None
        return start

    def read(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset`` on; fewer only at the end of the file."""
        try:
            data = os.pread(self._descriptor, length, offset)
            while len(data) < length and (
                more := os.pread(self._descriptor, length - len(data), offset + len(data))
            ):
                data += more
        except OSError as error:
            raise self._trouble(error) from None
        return data

    def mapped(self) -> mmap.mmap:
        """What was written, mapped into memory to be read. The space is free when both the file
        and the map are gone."""
        try:
            return mmap.mmap(self._descriptor, self.size, access=mmap.ACCESS_READ)
        except OSError as error:
            raise self._trouble(error) from None

    def reserved(self, size: int) -> mmap.mmap:
        """So many bytes of any content, mapped into memory to be read and written. The disk has
        room for all of them from now on: a page without room would end the process."""
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._descriptor, 0, size)
            else:
                os.ftruncate(self._descriptor, size)
            self.size = size
            return mmap.mmap(self._descriptor, size, access=mmap.ACCESS_WRITE)
        except OSError as error:
            raise self._trouble(error) from None

    def close(self) -> None:
        """Frees the space. May be called more than once."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()

    def _trouble(self, error: OSError) -> ResourceUnavailableError:
        return ResourceUnavailableError(
            f"cannot spill to {self._folder}: {error.strerror or error}; set io.tmp.dirs "
            "to folders that exist, can be written and have room"
        )

    def __repr__(self) -> str:
        return f"<SpillFile in {self._folder}: {self.size} bytes>"
