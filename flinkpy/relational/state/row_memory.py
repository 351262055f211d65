"""How much memory rows may take, and files for those beyond."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.core.files.spill_file import SpillFile
from flinkpy.core.options.engine import spill_folders
from flinkpy.core.options.schema import read
from flinkpy.core.options.state import (
    COLUMNS_MEMORY,
    ROCKSDB_OBJECTS,
    STATE_BACKEND,
    StateBackendKind,
)
from flinkpy.operators.columnar.array_memory import ArrayMemory
from flinkpy.relational.picked_rows import filtered
from flinkpy.state.snapshots.arrow_streams import write_stream

_WORTH_A_FILE = 1 << 20  # bytes
_LARGEST_CHUNK = 256 << 20  # bytes of a chunk, which has twice its size while it is made


@dataclass(eq=False)
class Chunk:
    """Rows that lie together. ``numbers`` are those that the rows were given; ``alive`` says which
    rows are still there: it alone changes. The data may lie in a mapped file."""

    start: int  # the address of the first row
    data: pa.RecordBatch
    numbers: npt.NDArray[np.int32]
    alive: npt.NDArray[np.bool_]
    gone: int = 0
    is_mapped: bool = False
    digest: str = ""  # of the rows, once they were saved as a chunk
    is_frozen: bool = False  # whether somebody else has ``alive``

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def data_bytes(self) -> int:
        """How large the data is."""
        size: int = self.data.nbytes
        return size

    @property
    def rest_bytes(self) -> int:
        """How large the rows are that are there, by estimate."""
        return self.data_bytes * (len(self) - self.gone) // len(self)

    def freeze(self) -> Any:
        """Which rows are there now, whatever happens later; None: all. Nothing is copied before a
        row goes."""
        if not self.gone:
            return None
        self.is_frozen = True
        return self.alive

    def drop(self, at: npt.NDArray[Any]) -> None:
        """The rows at these positions are gone."""
        if self.is_frozen:
            self.alive, self.is_frozen = self.alive.copy(), False
        self.alive[at] = False
        self.gone += len(at)

    def rest(self) -> tuple[pa.RecordBatch, npt.NDArray[np.int32]]:
        """The rows that are there, and their numbers."""
        if not self.gone:
            return self.data, self.numbers
        return filtered(self.data, self.alive), self.numbers[self.alive]

    def lie_in_files(self, memory: RowMemory) -> None:
        """The data goes to a file; so do the numbers, if the memory has no room for them."""
        self.data = memory.mapped(self.data)
        numbers = memory.arrays.empty(len(self), np.int32)
        numbers[:] = self.numbers
        self.numbers = numbers
        self.is_mapped = True


class RowsTogether(Protocol):
    """Rows that go to a file together."""

    @property
    def is_mapped(self) -> bool: ...

    @property
    def data_bytes(self) -> int: ...

    def lie_in_files(self, memory: RowMemory) -> None:
        """The data goes to a file of this memory."""
        ...


class RowMemory:
    """The memory that the chunks of some row stores, and the arrays that find their rows, may take
    together: ``limit`` bytes, or any number. Chunks beyond it, the largest ones first as they are
    merged most seldom, lie in files under ``folders``. These have no names, so each is gone with
    its chunk, however the process ends."""

    def __init__(self, limit: int | None = None, folders: Sequence[str] = ()) -> None:
        self.limit = limit
        self.arrays = ArrayMemory(None if limit is None else limit // 2, folders)
        """Those that find rows: they may take half of the limit."""
        self.folders = tuple(folders)
        self._of_stores: list[Sequence[RowsTogether]] = []

    @staticmethod
    def configured(values: Mapping[str, Any]) -> RowMemory:
        """As the options of the job say."""
        limit = read(values, COLUMNS_MEMORY)
        if limit is None and read(values, STATE_BACKEND) is StateBackendKind.ROCKSDB:
            limit = read(values, ROCKSDB_OBJECTS)
        return RowMemory(limit, spill_folders(values))

    @property
    def chunk_bytes(self) -> int:
        """How large chunks may become by merging."""
        if self.limit is None:
            return _LARGEST_CHUNK
        return max(_WORTH_A_FILE, min(_LARGEST_CHUNK, self.limit))

    def watch(self, chunks: Sequence[RowsTogether]) -> None:
        """The chunks of another store, which changes the list when it has others."""
        self._of_stores.append(chunks)

    def relieve(self) -> None:
        """Maps chunks until the others fit. Called when a store has other chunks, so it costs
        nothing for a row. Raises ResourceUnavailableError if the disk fails."""
        if self.limit is None:
            return
        there = self._in_memory()
        used = self.arrays.used + sum(each.data_bytes for each in there)
        for chunk in there:
            if used <= self.limit:
                break
            chunk.lie_in_files(self)
            used -= chunk.data_bytes

    def free(self) -> None:
        """The process is short of memory: maps all chunks that are worth a file, as if nothing
        fitted. What comes later has its memory again."""
        for chunk in self._in_memory():
            if chunk.data_bytes < _WORTH_A_FILE:
                break
            chunk.lie_in_files(self)

    def _in_memory(self) -> list[RowsTogether]:
        """The chunks that are in no file, the largest first."""
        there = [each for chunks in self._of_stores for each in chunks if not each.is_mapped]
        return sorted(there, key=lambda each: each.data_bytes, reverse=True)

    def mapped(self, data: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows in a file, in the form of Arrow's IPC, without a copy in memory."""
        file = SpillFile(self.folders)
        write_stream(data, lambda part: file.append([part]))
        return pa.ipc.open_stream(pa.py_buffer(file.mapped())).read_next_batch()
