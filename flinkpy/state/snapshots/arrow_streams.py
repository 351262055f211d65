"""Batches and tables as Arrow streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa


def to_bytes(data: pa.RecordBatch | pa.Table, compression: str | None = None) -> bytes:
    """A batch or table as an Arrow stream. A slice is written without the rest of its buffers.

    >>> data = pa.record_batch({"a": [1, 2, 3]}).slice(1, 1)
    >>> pa.ipc.open_stream(to_bytes(data, "lz4")).read_all().to_pylist()
    [{'a': 2}]
    """
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, data.schema, options=options) as writer:
        writer.write(data)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def write_stream(data: pa.RecordBatch, write: Callable[[Any], object]) -> None:
    """Gives the same bytes to ``write``, part by part."""
    with pa.ipc.new_stream(pa.PythonFile(_Sink(write), "w"), data.schema) as writer:
        writer.write(data)


class _Sink:
    """Arrow writes to it as to a file of Python."""

    closed = False

    def __init__(self, write: Callable[[Any], object]) -> None:
        self.write = write

    def flush(self) -> None:
        """It has been written."""

    def close(self) -> None:
        """Nothing more is written."""


def batches_of(stream: Any) -> Iterator[pa.RecordBatch]:
    """The record batches of a stream, which is bytes or a mapped file."""
    yield from pa.ipc.open_stream(stream)
