"""Record batches in a spill file, in the form of Arrow's IPC, compressed with LZ4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from flinkpy.core.files.spill_file import SpillFile

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


class Place(NamedTuple):
    """Where a batch lies in its file, and how large it is in memory."""

    offset: int
    length: int
    rows: int
    nbytes: int


class BatchFile:
    """A file for batches of any schema, which are read by their place.

    >>> file = BatchFile()
    >>> place = file.append(pa.record_batch({"a": [1, 2]}))
    >>> file.read(place).to_pydict()
    {'a': [1, 2]}
    >>> file.close()
    """

    def __init__(self, folders: Sequence[str] = ()) -> None:
        self._file = SpillFile(folders)

    @property
    def size(self) -> int:
        """How many bytes were written."""
        return self._file.size

    def append(self, data: pa.RecordBatch) -> Place:
        """Writes a batch; of a slice only its own rows. Raises ResourceUnavailableError if the disk
        fails."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, data.schema, options=_COMPRESSED) as writer:
            writer.write_batch(data)
        written = sink.getvalue()
        return Place(self._file.append([written]), written.size, data.num_rows, data.nbytes)

    def read(self, place: Place) -> pa.RecordBatch:
        """The batch at this place."""
        data = self._file.read(place.offset, place.length)
        return pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()

    def close(self) -> None:
        """Frees the space. May be called more than once."""
        self._file.close()
