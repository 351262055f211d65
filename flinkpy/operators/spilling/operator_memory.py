"""The memory that an operator of a batch job may use, and the files for what does not fit."""

from __future__ import annotations

from collections.abc import Sequence

from flinkpy.core.files.spill_file import SpillFile
from flinkpy.core.memory import give_back_freed
from flinkpy.core.options.engine import spill_folders
from flinkpy.core.options.memory_sizes import MemoryKind
from flinkpy.operators.context import ManagedMemory, OperatorContext
from flinkpy.operators.spilling.batch_file import BatchFile

_PARTS = 8  # of the memory: one is for rows that wait to be worked on together
_BLOCK = 4 << 20  # more bytes at once are not split faster
_LEAST = 1 << 20
_MUCH = 4 << 20  # bytes that were freed are worth to give back
_ANY = 1 << 50  # no machine has it: the share of a slot without a limit is larger


class OperatorMemory:
    """``limit`` bytes, or any number. Arrow and numpy allocate where they like, so an operator asks
    between batches whether what it holds still ``fits``, and writes files if it does not."""

    def __init__(self, limit: int | None = None, folders: Sequence[str] = ()) -> None:
        self.limit = limit
        self._folders = tuple(folders)
        self._files: list[BatchFile | SpillFile] = []
        self._closed_bytes = 0
        self._freed = 0
        self._managed: ManagedMemory | None = None

    @staticmethod
    def of(context: OperatorContext) -> OperatorMemory:
        """The operator's share of the managed memory, which it has until it ``close``s; any number
        of bytes where the worker's memory is not limited."""
        folders = spill_folders(context.configuration)
        if not OperatorMemory.is_limited_in(context):
            return OperatorMemory(None, folders)
        found = OperatorMemory(context.memory.share_of(MemoryKind.OPERATOR), folders)
        found._reserve(context.memory)
        return found

    @staticmethod
    def is_limited_in(context: OperatorContext) -> bool:
        """Whether the worker's memory is limited."""
        return context.memory.share_of(MemoryKind.OPERATOR) < _ANY

    def _reserve(self, managed: ManagedMemory) -> None:
        assert self.limit is not None
        if managed.reserve(self.limit):
            self._managed = managed
        else:  # an attempt before this one has not given it back yet
            self.limit = min(self.limit, _LEAST)

    @property
    def is_limited(self) -> bool:
        """Whether anything can be too much."""
        return self.limit is not None

    @property
    def block(self) -> int:
        """How many bytes of rows are split or written at once."""
        return _LEAST if self.limit is None else min(self.waiting, _BLOCK)

    @property
    def waiting(self) -> int:
        """How many bytes of rows may wait to be worked on together."""
        return _LEAST if self.limit is None else max(1, self.limit // _PARTS)

    @property
    def kept(self) -> int | None:
        """How many bytes of rows may stay beside that block."""
        return None if self.limit is None else max(0, self.limit - self.block)

    def fits(self, held: int) -> bool:
        """Whether the operator may hold so many bytes."""
        return self.limit is None or held <= self.limit

    def freed(self, nbytes: int) -> None:
        """The operator has dropped so many bytes. What allocators keep of them would be held beside
        what is allocated next, so the system gets it back from time to time."""
        self._freed += nbytes
        if self.limit is not None and self._freed >= _MUCH:
            self._freed = 0
            give_back_freed()

    # -- files -------------------------------------------------------------------------------------

    def file(self) -> BatchFile:
        """A new file, which is closed with the operator at the latest. Raises
        ResourceUnavailableError if there can be none."""
        found = BatchFile(self._folders)
        self._files.append(found)
        return found

    def raw_file(self) -> SpillFile:
        """The same for bytes of any form."""
        found = SpillFile(self._folders)
        self._files.append(found)
        return found

    def drop(self, file: BatchFile | SpillFile) -> None:
        """Nothing more is read of this file."""
        self._files.remove(file)
        self._closed_bytes += file.size
        file.close()

    @property
    def spilled(self) -> int:
        """How many bytes were written in this attempt."""
        return self._closed_bytes + sum(file.size for file in self._files)

    def close(self) -> None:
        """Gives everything back, on disk and of the managed memory."""
        for file in list(self._files):
            self.drop(file)
        managed, self._managed = self._managed, None
        if managed is not None:
            assert self.limit is not None
            managed.release(self.limit)
