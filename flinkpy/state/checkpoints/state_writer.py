"""Writes what one subtask, or one coordinator, saves for one checkpoint. Used off the task's thread, by one thread at a
time.

Small state stays in its handle, and reaches the manifest that way. All larger state of the subtask goes into one file,
piece after piece: many small files are what object stores are slowest at. The file appears when the writer is closed,
and that is before anybody is told of it. """

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TypeAlias

from flinkpy.core.errors import EngineError, ResourceUnavailableError
from flinkpy.core.options import checkpointing as options
from flinkpy.graph.checkpoints import StateHandle
from flinkpy.state.checkpoints.file_store import Chunk, FileStore, NewFile
from flinkpy.state.checkpoints.locations import join

State: TypeAlias = Chunk | Iterable[Chunk]


class StateWriter(ABC):
    """As a context it is closed at the end, and aborted by an error."""

    def __init__(self) -> None:
        self._is_open = True

    def write(self, state: State) -> StateHandle:
        """Writes one piece of state. Its handle may be given away once the writer is closed. An error aborts the
        writer."""
        if not self._is_open:
            raise EngineError("state is written with a writer that was closed or aborted")
        try:
            return self._write(_chunks(state))
        except BaseException:
            self.abort()
            raise

    @abstractmethod
    def _write(self, chunks: Iterator[memoryview]) -> StateHandle: ...

    def close(self) -> None:
        """Everything is written, and its handles are good."""
        if not self._is_open:
            raise EngineError("a writer of state is closed that was closed or aborted before")
        self._is_open = False

    def abort(self) -> None:
        """Removes what was written, also after ``close``; its handles are good for nothing then."""
        self._is_open = False

    def __enter__(self) -> StateWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.abort()
        elif self._is_open:
            self.close()


class InlineStateWriter(StateWriter):
    """Leaves all state in its handles, which the JobManager keeps in its memory; therefore no piece is larger than
    ``limit`` bytes.

    >>> InlineStateWriter(100).write(b"abc")
    StateHandle(length=3, checksum=891568578, data=b'abc', path=None, offset=0)
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def _write(self, chunks: Iterator[memoryview]) -> StateHandle:
        gathered = bytearray()
        for chunk in chunks:
            if len(gathered) + len(chunk) > self._limit:
                raise ResourceUnavailableError(
                    f"state of more than {self._limit} bytes is too large for a checkpoint in the JobManager's memory: "
                    f"set {options.CHECKPOINT_DIRECTORY.key} and {options.CHECKPOINT_STORAGE.key}: filesystem to keep "
                    f"checkpoints in files, or raise {options.CHECKPOINT_MAX_STATE.key}")
            gathered += chunk
        return StateHandle(len(gathered), zlib.crc32(gathered), data=bytes(gathered))


class FileStateWriter(StateWriter):
    """Writes state from ``threshold`` bytes on to the file ``file_name`` in the checkpoint's folder."""

    def __init__(self, store: FileStore, folder: str, file_name: str, threshold: int) -> None:
        super().__init__()
        self._store, self._location, self._file_name = store, join(folder, file_name), file_name
        self._threshold = threshold
        self._file: NewFile | None = None
        self._appeared = False
        self._end = 0  # of what the file holds

    def _write(self, chunks: Iterator[memoryview]) -> StateHandle:
        offset, checksum, small = self._end, 0, bytearray()
        for chunk in chunks:
            checksum = zlib.crc32(chunk, checksum)
            if self._end == offset and len(small) + len(chunk) < self._threshold:
                small += chunk
                continue
            if small:
                self._append(small)
                small = bytearray()
            self._append(chunk)
        if self._end == offset:
            return StateHandle(len(small), checksum, data=bytes(small))
        return StateHandle(self._end - offset, checksum, path=self._file_name, offset=offset)

    def _append(self, chunk: Chunk) -> None:
        if self._file is None:
            self._file = self._store.create(self._location)
        self._file.write(chunk)
        self._end += len(chunk)

    def close(self) -> None:
        super().close()
        if self._file is not None:
            self._file.close()
            self._appeared = True

    def abort(self) -> None:
        super().abort()
        file, self._file = self._file, None
        if self._appeared:
            self._appeared = False
            self._store.delete(self._location)
        elif file is not None:
            file.discard()


def _chunks(state: State) -> Iterator[memoryview]:
    """The bytes of the state, without copying them. Empty chunks are left out."""
    for chunk in (state,) if isinstance(state, (bytes, bytearray, memoryview)) else state:
        view = memoryview(chunk).cast("B")
        if view:
            yield view
