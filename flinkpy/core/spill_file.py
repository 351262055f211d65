"""A file for what does not fit into memory: written at its end, read anywhere, and gone with its owner.

It has no name in the file system (it is deleted as soon as it is open), so nothing is left behind however the process ends.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterable, Sequence

from flinkpy.core.errors import ResourceUnavailableError

_turns = itertools.count()


class SpillFile:
    """Belongs to one thread. ``folders`` (option ``io.tmp.dirs``) are used in turn; none means the system's temporary folder.

    >>> file = SpillFile()
    >>> file.append([b"ab", b"cd"]), file.read(2, 2)
    (0, b'cd')
    >>> file.close()
    """

    __slots__ = ("_descriptor", "_folder", "size")

    def __init__(self, folders: Sequence[str] = ()) -> None:
        """Raises ResourceUnavailableError, naming the option, where no file can be made."""
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
        """Writes them one behind the other; gives the offset of the first byte."""
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
        """So many bytes from there; fewer only at the end of the file."""
        try:
            data = os.pread(self._descriptor, length, offset)
            while len(data) < length and (more := os.pread(self._descriptor, length - len(data), offset + len(data))):
                data += more
        except OSError as error:
            raise self._trouble(error) from None
        return data

    def close(self) -> None:
        """Gives the space back. May be called again."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()

    def _trouble(self, error: OSError) -> ResourceUnavailableError:
        return ResourceUnavailableError(
            f"cannot spill to {self._folder}: {error.strerror or error}; set io.tmp.dirs to folders that exist, can be written and have room")

    def __repr__(self) -> str:
        return f"<SpillFile in {self._folder}: {self.size} bytes>"
