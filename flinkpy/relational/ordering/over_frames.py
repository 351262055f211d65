"""The frames of OVER: for each row the rows around it, as places in the order of its partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.core.errors import ProgramError
from flinkpy.relational.ordering.partitioned_rows import PartitionedRows
from flinkpy.relational.relational_operator import plain
from flinkpy.sql.rex.relational_terms import Frame
from flinkpy.sql.rex.rex_nodes import SortKey

_MS_PER_DAY = 86_400_000
_UNITS_PER_MS = {"s": 0.001, "ms": 1, "us": 1_000, "ns": 1_000_000}


@dataclass(frozen=True)
class FrameBounds:
    """For each place the first place of its frame, and the one behind its last."""

    first: Any
    behind: Any


def bounds_of(
    rows: PartitionedRows, frame: Frame, keys: Sequence[SortKey], columns: Sequence[pa.Array]
) -> FrameBounds:
    """The frames of the rows, whose ``columns`` are in their order."""
    if frame.unit == "ROWS":
        places = np.arange(len(rows.order))
        first = rows.starts if frame.lower is None else places + _whole(frame.lower)
        behind = rows.ends if frame.upper is None else places + _whole(frame.upper) + 1
    else:
        first = (
            rows.starts if frame.lower is None else _range_bound(rows, frame.lower, keys, columns)
        )
        behind = (
            rows.ends
            if frame.upper is None
            else _range_bound(rows, frame.upper, keys, columns, is_upper=True)
        )
    first = np.clip(first, rows.starts, rows.ends)
    return FrameBounds(first, np.maximum(np.clip(behind, rows.starts, rows.ends), first))


def _whole(offset: object) -> int:
    if not isinstance(offset, int):
        raise ProgramError(f"a frame of ROWS is a whole number of rows, not {offset!r}")
    return offset


def _range_bound(
    rows: PartitionedRows,
    offset: object,
    keys: Sequence[SortKey],
    columns: Sequence[pa.Array],
    *,
    is_upper: bool = False,
) -> Any:
    if offset == 0:
        return rows.peer_ends if is_upper else rows.peer_starts
    if len(keys) != 1:
        raise ProgramError("a frame of RANGE with an offset needs one sort key")
    column = plain(columns[keys[0].index])
    values, distance = _comparable(column, offset)
    if keys[0].descending:
        values = -values
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    null_code = is_null if not keys[0].nulls_first else ~is_null
    found = _searched(rows.numbers, null_code, values, values + distance, after=is_upper)
    peers = rows.peer_ends if is_upper else rows.peer_starts
    return np.where(is_null, peers, found)


def _searched(
    partitions: npt.NDArray[Any],
    nulls: npt.NDArray[Any],
    values: npt.NDArray[Any],
    targets: npt.NDArray[Any],
    *,
    after: bool,
) -> Any:
    """For each place how many places stand before its target: those of earlier partitions, and
    those of its own whose value is less (``after``: or equal). One sort of values and targets."""
    count = len(values)
    # at equal values the targets come behind the values, or before them
    tag = np.repeat(np.array([0, 1] if after else [1, 0], np.int8), count)
    order = np.lexsort(
        (tag, np.concatenate((values, targets)), np.tile(nulls, 2), np.tile(partitions, 2))
    )
    is_value = order < count
    before = np.cumsum(is_value)
    found = np.empty(count, np.int64)
    found[order[~is_value] - count] = before[~is_value]
    return found


def _comparable(column: pa.Array, offset: object) -> tuple[Any, Any]:
    """The values as numbers, and the offset in their unit. Offsets of times are milliseconds."""
    kind = column.type
    if pa.types.is_decimal(kind):
        column, offset = column.cast(pa.float64()), float(str(offset))
    elif pa.types.is_date32(kind):
        column, offset = column.view(pa.int32()), _scaled(offset, 1 / _MS_PER_DAY)
    elif pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        column, offset = column.view(width), _scaled(offset, _UNITS_PER_MS[kind.unit])
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise ProgramError(f"a frame of RANGE with an offset cannot be over {kind}")
    if isinstance(offset, Decimal):
        offset = float(offset) if pa.types.is_floating(kind) else int(offset)
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64), offset


def _scaled(offset: object, factor: float) -> int:
    if not isinstance(offset, int):
        raise ProgramError(f"the offset of a frame over times is in milliseconds, not {offset!r}")
    return int(offset * factor)
