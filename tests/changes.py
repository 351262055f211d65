"""Batches of columns whose rows have kinds, for tests that follow them along a path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from flinkpy.common.types import RowKind
from flinkpy.core.elements import Batch, ColumnBatch

SCHEMA = pa.schema([("n", pa.int64()), ("x", pa.float64()), ("s", pa.string())])
NUMBERS = st.none() | st.sampled_from([float("nan"), -0.0, 0.0, float("inf")]) | st.floats()
KINDS = st.integers(0, 3)


@st.composite
def changes(
    draw: st.DrawFn, min_size: int = 0, stamped: bool | None = None, max_size: int = 12
) -> ColumnBatch:
    """A batch of ``SCHEMA``, cut out of a larger one; ``n`` is its rows' number."""
    count = draw(st.integers(min_size, max_size))
    before = draw(st.integers(0, 3))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=before + count, max_size=before + count))

    arrays = [
        pa.array(range(before + count), pa.int64()),
        pa.array(column(NUMBERS), pa.float64()),
        pa.array(column(st.none() | st.text("ab", max_size=2)), pa.string()),
    ]
    has_stamps = draw(st.booleans()) if stamped is None else stamped
    kinds = draw(st.none() | st.just([0] * (before + count)) | st.just(...))
    if kinds is ...:
        kinds = column(KINDS)
    return ColumnBatch(
        pa.RecordBatch.from_arrays(arrays, schema=SCHEMA),
        np.array(column(st.integers(0, 9)), np.int64) if has_stamps else None,
        None if kinds is None else np.array(kinds, np.int8),
    ).slice(before)


def shown(batches: Iterable[Batch]) -> list[tuple[Any, ...]]:
    """Each row with its kind and event time: NaN is equal to NaN here, and -0.0 not to 0.0."""
    found = []
    for batch in batches:
        assert isinstance(batch, ColumnBatch)
        assert batch.kinds is None or batch.kinds.any(), "inserts only, and yet not None"
        kinds = [0] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        stamps = [None] * len(batch) if batch.timestamps is None else batch.timestamps.tolist()
        assert len(kinds) == len(stamps) == len(batch)
        for row, stamp, kind in zip(batch.data.to_pylist(), stamps, kinds):
            found.append((str(RowKind(kind)), stamp, repr(tuple(row.values()))))
    return found
