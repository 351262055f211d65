"""The windows in which a time lies, and what stands in the columns of a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.errors import ProgramError
from flinkpy.relational.relational_operator import plain
from flinkpy.relational.row_times import times_of
from flinkpy.sql.rex.relational_terms import WindowKind, WindowSpec


def windows_of(window: WindowSpec, times: Any) -> tuple[Any, Any, Any]:
    """For each window of each time: the position of the time, and where the window begins and
    ends; the windows of a time stand beside each other, the earliest first."""
    rows = np.arange(len(times))
    if window.kind is WindowKind.TUMBLE:
        starts = times - (times - window.offset) % window.size
        return rows, starts, starts + window.size
    if window.step is None or window.kind is WindowKind.SESSION:
        raise ProgramError(f"a row alone does not say its {window.kind.value} window")
    if window.kind is WindowKind.HOP:
        most = -(-window.size // window.step)
        last = times - (times - window.offset) % window.step
        back = np.arange(most - 1, -1, -1) * window.step
        begins = last[:, None] - back
        ends = begins + window.size
        is_in = ends > times[:, None]
    else:
        first = times - (times - window.offset) % window.size
        ends = first[:, None] + np.arange(1, window.size // window.step + 1) * window.step
        begins = np.broadcast_to(first[:, None], ends.shape)
        is_in = ends > times[:, None]
    return np.repeat(rows, is_in.sum(axis=1)), begins[is_in], ends[is_in]


def window_start_of(window: WindowSpec, end: int) -> int:
    """Where the window of this kind that ends there begins."""
    if window.step is None or window.kind is not WindowKind.CUMULATE:
        return end - window.size
    last = end - 1
    return last - (last - window.offset) % window.size


def times_in(window: WindowSpec, end: int, time: int, size: int) -> dict[str, Any]:
    """The columns of so many rows of the window that ends there, and whose time is given."""
    moments = {"start": window_start_of(window, end), "end": end, "time": time}
    return {f"window_{word}": np.full(size, at, np.int64) for word, at in moments.items()}


def with_times(
    columns: Sequence[pa.Array], words: Sequence[str], times: Mapping[str, Any], schema: pa.Schema
) -> pa.RecordBatch:
    """The columns, and behind them of the windows what ``words`` names."""
    kinds = [field.type for field in schema]
    added = [times_of(times[word], kind) for word, kind in zip(words, kinds[len(columns) :])]
    conformed = [
        array if array.type == kind else plain(array).cast(kind)
        for array, kind in zip([*columns, *added], kinds)
    ]
    return pa.RecordBatch.from_arrays(conformed, schema=schema)
