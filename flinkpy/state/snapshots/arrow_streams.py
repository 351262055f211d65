"""Batches and tables as Arrow streams."""

from __future__ import annotations

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
