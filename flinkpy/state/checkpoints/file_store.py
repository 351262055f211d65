"""The port to a place that keeps files: a disk, an object store, a simulation.

It is small on purpose. A file is written once, from its beginning to its end, and nobody sees it
before it is complete. A location is a path or a URL; folders come with the files in them. What goes
wrong is an ``OSError``, and a file that is not there is a ``FileNotFoundError``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TypeAlias

Chunk: TypeAlias = bytes | bytearray | memoryview


class NewFile(ABC):
    """A file in the making. It ends with ``close`` or with ``discard``; a process that dies in
    between leaves nothing that is taken for the file."""

    def is_as(self, path: str) -> None:
        """All that is about to be written is in this file of this machine's disk too, which nobody
        changes."""

    @abstractmethod
    def write(self, chunk: Chunk) -> None:
        """Appends these bytes."""

    @abstractmethod
    def close(self) -> None:
        """From now on the file is there, and survives a loss of power where the store can promise
        that. FileExistsError if there is one of its name: what is there stays as it is."""

    @abstractmethod
    def discard(self) -> None:
        """Gives the file up. Nothing, once it was closed or discarded."""


class FileStore(ABC):
    """A place that keeps files."""

    @abstractmethod
    def create(self, location: str) -> NewFile:
        """A new file, in folders that are made where they lack."""

    @abstractmethod
    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        """``length`` bytes from ``offset`` on, or all there are. Fewer where the file ends
        before."""

    def link(self, location: str, path: str) -> bool:
        """Gives the file a second name on this machine's disk, for a reader who never changes it.
        False where the store cannot: nothing is there then."""
        return False

    @abstractmethod
    def delete(self, location: str) -> None:
        """Removes the file. Nothing, if there is none."""

    @abstractmethod
    def delete_dir(self, location: str) -> None:
        """Removes the folder with all that is in it. Nothing, if there is none."""

    @abstractmethod
    def list(self, location: str) -> Sequence[str]:
        """The names of the files and folders directly in it, sorted. None in a folder that is not
        there."""

    @abstractmethod
    def exists(self, location: str) -> bool:
        """Whether there is a file or a folder."""

    def write_atomically(self, location: str, chunks: Iterable[Chunk]) -> None:
        """The whole file, or none. FileExistsError if there is one of this name."""
        file = self.create(location)
        try:
            for chunk in chunks:
                file.write(chunk)
            file.close()
        except BaseException:
            file.discard()
            raise
