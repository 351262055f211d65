"""Columns of times as milliseconds, and back."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from flinkpy.core.errors import ProgramError

_PER_MILLISECOND = {"ms": 1, "us": 1_000, "ns": 1_000_000}


def milliseconds(column: pa.Array, name: str) -> Any:
    """The times as int64. A time that is null is an error, as in Flink."""
    if column.null_count:
        raise ProgramError(
            f"the time column {name!r} is null in a row, which then has no place in time: leave "
            f"such rows out, by WHERE {name} IS NOT NULL before the window or the watermark"
        )
    values = column.view(pa.int64()).to_numpy()
    factor = _PER_MILLISECOND[column.type.unit]
    return values if factor == 1 else values // factor


def times_of(moments: Any, kind: pa.DataType) -> pa.Array:
    """Milliseconds as a column of this type."""
    factor = _PER_MILLISECOND[kind.unit]
    return pa.array(moments if factor == 1 else moments * factor, pa.int64()).view(kind)
