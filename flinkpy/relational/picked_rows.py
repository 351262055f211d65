"""Some rows of batches of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.relational.relational_operator import one_record_batch, without_columns


def taken(data: pa.RecordBatch, at: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """The rows at these positions, also of a batch without columns."""
    if not data.num_columns:
        return without_columns(len(at))
    return data.take(pa.array(at))


def gathered(
    chunks: Sequence[pa.RecordBatch],
    starts: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    schema: pa.Schema,
) -> pa.RecordBatch:
    """The rows at these places of chunks that begin there, in the order of the places.

    From each chunk only what is wanted: a ``take`` of Arrow's from several chunks makes one array
    of all of them first, which costs as much as the state is large.

    >>> chunks = [pa.record_batch({"n": [10, 11]}), pa.record_batch({"n": [12]})]
    >>> gathered(chunks, np.array([0, 2]), np.array([2, 0]), chunks[0].schema)["n"].to_pylist()
    [12, 10]
    """
    if len(chunks) == 1:
        return taken(chunks[0], places - starts[0])
    which = (np.searchsorted(starts, places, side="right") - 1).astype(np.int16)
    order = np.argsort(which, kind="stable")  # a radix sort, as these are small
    ends = np.cumsum(np.bincount(which, minlength=len(chunks)))
    ordered, begin, parts = places[order], 0, []
    for chunk, start, end in zip(chunks, starts.tolist(), ends.tolist()):
        if end > begin:
            parts.append(taken(chunk, ordered[begin:end] - start))
        begin = end
    if len(parts) == 1:
        return parts[0]  # the order of what is equal is kept
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return taken(one_record_batch(parts, schema), back)


def filtered(data: pa.RecordBatch, mask: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    """The rows for which the mask is true, also of a batch without columns."""
    if not data.num_columns:
        return without_columns(int(mask.sum()))
    return data.filter(pa.array(mask))
