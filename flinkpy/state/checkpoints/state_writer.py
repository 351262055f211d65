"""Writes what one subtask, or one coordinator, saves for one checkpoint. Used off the task's
thread, by one thread at a time.

Small state stays in its handle, and reaches the manifest that way. All larger state of the subtask
goes into one file, piece after piece: many small files are what object stores are slowest at. The
file appears when the writer is closed, and that is before anybody is told of it.

What later checkpoints may use too is shared: it goes into files beside the checkpoints. The name of
such a file is never used twice, so it stands for its bytes, and a file that is deleted late is
never a newer one."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TypeAlias

from flinkpy.core.errors import EngineError, ResourceUnavailableError
from flinkpy.core.options import checkpointing as options
from flinkpy.graph.checkpoints import SHARED, StateHandle
from flinkpy.state.checkpoints.compression import ZSTD, compressed
from flinkpy.state.checkpoints.file_store import Chunk, FileStore, NewFile
from flinkpy.state.checkpoints.locations import folder_of, join, shared_folder

State: TypeAlias = Chunk | Iterable[Chunk]

_CHUNK = 1 << 20


class FileOnDisk(Iterable[bytes]):
    """A file of this machine's disk, as state to write: in chunks, and nobody changes it while
    there is a link to it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __iter__(self) -> Iterator[bytes]:
        with open(self.path, "rb", buffering=0) as opened:
            while chunk := opened.read(_CHUNK):
                yield chunk


class CountedFile:
    """A file in the making that knows how long it is, and its checksum. pyarrow writes to it;
    ``close`` leaves it to the StateWriter to have the file appear."""

    closed = False

    def __init__(self, name: str, location: str, file: NewFile) -> None:
        self.name = name
        self.location = location
        self._file = file
        self.length = self.checksum = 0

    def write(self, chunk: Chunk) -> None:
        """Appends these bytes."""
        view = memoryview(chunk).cast("B")
        self._file.write(view)
        self.checksum = zlib.crc32(view, self.checksum)
        self.length += len(view)

    def flush(self) -> None:
        """Nothing: the store decides."""

    def close(self) -> None:
        """Nothing more is written."""

    def appear(self) -> None:
        """From now on the file is there."""
        self._file.close()

    def discard(self) -> None:
        """Gives the file up, if it has not appeared."""
        self._file.discard()


class StateWriter(ABC):
    """As a context it is closed at the end, and aborted by an error. With ``compresses`` what it
    writes is compressed, but for files of this machine's disk, which are linked and not copied
    where that is possible."""

    def __init__(self, *, compresses: bool = False) -> None:
        self._is_open, self._compresses = True, compresses

    def write(self, state: State) -> StateHandle:
        """Writes one piece of state. Its handle may be given away once the writer is closed. An
        error aborts the writer."""
        if not self._is_open:
            raise EngineError("state is written with a writer that was closed or aborted")
        try:
            if self._compresses:
                return replace(self._write(_views(compressed(_chunks(state)))), codec=ZSTD)
            return self._write(_chunks(state))
        except BaseException:
            self.abort()
            raise

    def share(self, states: Sequence[State]) -> tuple[StateHandle, ...]:
        """Writes these pieces of state into one file of their own, which later checkpoints may use
        too. Pieces that are small together stay in their handles. An error aborts the writer."""
        if not self._is_open:
            raise EngineError("state is written with a writer that was closed or aborted")
        try:
            if self._compresses and not any(isinstance(state, FileOnDisk) for state in states):
                packed = [compressed(_chunks(state)) for state in states]
                return tuple(replace(handle, codec=ZSTD) for handle in self._share(packed))
            return self._share(states)
        except BaseException:
            self.abort()
            raise

    def write_together(self, pieces: Sequence[Sequence[Chunk]]) -> list[StateHandle]:
        """Writes many pieces of which each may be small and their sum large: all of them as one
        large one is written."""
        if not self._is_open:
            raise EngineError("state is written with a writer that was closed or aborted")
        try:
            if self._compresses:
                packed = [list(_views(compressed(piece))) for piece in pieces]
                return [replace(handle, codec=ZSTD) for handle in self._write_together(packed)]
            return self._write_together([list(_chunks(piece)) for piece in pieces])
        except BaseException:
            self.abort()
            raise

    @abstractmethod
    def _write(self, chunks: Iterator[memoryview]) -> StateHandle: ...

    @abstractmethod
    def _share(self, states: Sequence[State]) -> tuple[StateHandle, ...]: ...

    @abstractmethod
    def _write_together(self, pieces: list[list[memoryview]]) -> list[StateHandle]: ...

    def create_file(self, name: str) -> CountedFile:
        """A file of its own in the checkpoint's folder, for what others than flinkpy read. It
        appears when this writer is closed."""
        raise EngineError("state in the JobManager's memory has no files")

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
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.abort()
        elif self._is_open:
            self.close()


class InlineStateWriter(StateWriter):
    """Leaves all state in its handles, which the JobManager keeps in its memory; therefore no piece
    is larger than ``limit`` bytes.

    >>> InlineStateWriter(100).write(b"abc")
    StateHandle(length=3, checksum=891568578, data=b'abc', path=None, offset=0, codec=None)
    """

    def __init__(self, limit: int, *, compresses: bool = False) -> None:
        super().__init__(compresses=compresses)
        self._limit = limit

    def _write(self, chunks: Iterator[memoryview]) -> StateHandle:
        gathered = bytearray()
        for chunk in chunks:
            if len(gathered) + len(chunk) > self._limit:
                raise ResourceUnavailableError(
                    f"state of more than {self._limit} bytes is too large for a "
                    "checkpoint in the JobManager's memory: "
                    f"set {options.CHECKPOINT_DIRECTORY.key} and "
                    f"{options.CHECKPOINT_STORAGE.key}: filesystem to keep "
                    f"checkpoints in files, or raise {options.CHECKPOINT_MAX_STATE.key}"
                )
            gathered += chunk
        return StateHandle(len(gathered), zlib.crc32(gathered), data=bytes(gathered))

    def _share(self, states: Sequence[State]) -> tuple[StateHandle, ...]:
        return tuple(self._write_together([list(_chunks(state)) for state in states]))

    def _write_together(self, pieces: list[list[memoryview]]) -> list[StateHandle]:
        # refused if they are too large together
        self._write(chunk for piece in pieces for chunk in piece)
        return [self._write(iter(piece)) for piece in pieces]


class FileStateWriter(StateWriter):
    """Writes state from ``threshold`` bytes on to the file ``file_name`` in the checkpoint's
    folder, and what is shared to new files under names that ``new_name`` gives; without it, nothing
    is shared."""

    def __init__(
        self,
        store: FileStore,
        folder: str,
        file_name: str,
        threshold: int,
        new_name: Callable[[], str] | None = None,
        *,
        compresses: bool = False,
    ) -> None:
        super().__init__(compresses=compresses)
        self._shared_folder, self._new_name = shared_folder(folder_of(folder)), new_name
        self._appeared: list[str] = []  # the locations of files
        self._store = store
        self._location = join(folder, file_name)
        self._file_name = file_name
        self._folder, self._threshold = folder, threshold
        self._file: NewFile | None = None
        self._more: list[CountedFile] = []
        self._end = 0  # of what the file holds

    def _write(self, chunks: Iterator[memoryview]) -> StateHandle:
        return self._write_from(self._threshold, chunks)

    def _write_together(self, pieces: list[list[memoryview]]) -> list[StateHandle]:
        is_small = sum(len(chunk) for piece in pieces for chunk in piece) < self._threshold
        return [
            self._write_from(self._threshold if is_small else 0, iter(piece)) for piece in pieces
        ]

    def _write_from(self, threshold: int, chunks: Iterator[memoryview]) -> StateHandle:
        offset, checksum, small = self._end, 0, bytearray()
        for chunk in chunks:
            checksum = zlib.crc32(chunk, checksum)
            if self._end == offset and len(small) + len(chunk) < threshold:
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

    def _share(self, states: Sequence[State]) -> tuple[StateHandle, ...]:
        if self._new_name is None:
            return tuple(self._write(_chunks(state)) for state in states)
        name, file, small, end = self._new_name(), None, bytearray(), 0
        spans: list[tuple[int, int, int]] = []  # length, checksum and offset of each piece
        location = join(self._shared_folder, name)
        try:
            for state in states:
                offset, checksum = end, 0
                for chunk in _chunks(state):
                    checksum, end = zlib.crc32(chunk, checksum), end + len(chunk)
                    if file is None and end < self._threshold:
                        small += chunk
                        continue
                    if file is None:
                        file = self._store.create(location)
                        if isinstance(state, FileOnDisk) and len(states) == 1:
                            file.is_as(state.path)
                        file.write(small)
                    file.write(chunk)
                spans.append((end - offset, checksum, offset))
            if file is not None:
                file.close()
        except BaseException:
            if file is not None:
                file.discard()
            raise
        if file is None:
            return tuple(
                StateHandle(length, crc, data=bytes(small[start : start + length]))
                for length, crc, start in spans
            )
        self._appeared.append(location)
        return tuple(
            StateHandle(length, crc, path=SHARED + name, offset=start)
            for length, crc, start in spans
        )

    def create_file(self, name: str) -> CountedFile:
        location = join(self._folder, name)
        made = CountedFile(name, location, self._store.create(location))
        self._more.append(made)
        return made

    def close(self) -> None:
        super().close()
        try:
            for each in self._more:
                each.appear()
                self._appeared.append(each.location)
            if self._file is not None:
                self._file.close()
                self._appeared.append(self._location)
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        super().abort()
        file, self._file = self._file, None
        more, self._more = self._more, []
        for each in (*more, *(() if file is None else (file,))):
            each.discard()
        while self._appeared:
            self._store.delete(self._appeared.pop())


def _views(chunks: Iterable[bytes]) -> Iterator[memoryview]:
    return map(memoryview, chunks)


def _chunks(state: State) -> Iterator[memoryview]:
    """The bytes of the state, without copying them. Empty chunks are left out."""
    for chunk in (state,) if isinstance(state, (bytes, bytearray, memoryview)) else state:
        view = memoryview(chunk).cast("B")
        if view:
            yield view
