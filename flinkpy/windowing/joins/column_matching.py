"""Finds the rows of two tables with equal keys: the positions of all pairs, by numbering the keys
and counting.

This is about as fast as ``pyarrow.Table.join``, which was not used because it promises no order,
and refuses keys of different integer types and tables with list columns."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.operators.columnar.joined_columns import key_type
from flinkpy.operators.columnar.key_index import encoded

# Integers are their own numbers if their range exceeds four times the number of rows by at most
# this.
_SPARE = 1 << 16


def matching_pairs(left: list[Any], right: list[Any]) -> tuple[Any, Any]:
    """Positions (left, right) of all pairs with equal key columns, ordered by left position, then
    by right position. Null equals nothing.

    >>> left, right = matching_pairs(
    ...     [pa.chunked_array([[3, 1, 3]])], [pa.chunked_array([[3, 2, 3]])]
    ... )
    >>> left.tolist(), right.tolist()
    ([0, 0, 2, 2], [0, 2, 0, 2])
    """
    ours, left = _without_nulls(left)
    theirs, right = _without_nulls(right)
    at_left, at_right = _pairs(*_codes(left, right))
    return at_left if ours is None else ours[at_left], at_right if theirs is None else theirs[
        at_right
    ]


def _without_nulls(columns: list[Any]) -> tuple[Any, list[Any]]:
    """The positions of the rows without a null in their key (None: all rows), and the columns of
    these rows."""
    with_nulls = [column for column in columns if column.null_count]
    if not with_nulls:
        return None, columns
    there = functools.reduce(pc.and_, [column.is_valid() for column in with_nulls])
    return np.flatnonzero(there.to_numpy()), [column.filter(there) for column in columns]


def _pairs(left: Any, right: Any, count: int) -> tuple[Any, Any]:
    per_key = np.bincount(right, minlength=count)
    partners = per_key[left]
    # keys are unique on the right, so one look-up per left row is enough
    if len(right) and per_key.max() == 1:
        position = np.zeros(count, dtype=np.int64)
        position[right] = np.arange(len(right))
        found = np.nonzero(partners)[0]
        return found, position[left[found]]
    # numpy sorts 16 bits by radix
    order = np.argsort(right.astype(np.uint16) if count <= 1 << 16 else right, kind="stable")
    starts = np.cumsum(per_key) - per_key
    rows = np.repeat(np.arange(len(left)), partners)
    first_pair = np.cumsum(partners) - partners  # the index of each left row's first pair
    within = np.arange(len(rows)) - first_pair[rows]
    return rows, order[starts[left[rows]] + within]


def _codes(left: list[Any], right: list[Any]) -> tuple[Any, Any, int]:
    """Numbers for the keys of both sides, equal for equal keys; and a number above all of them."""
    common = [_common_type(one.type, other.type) for one, other in zip(left, right)]
    if len(common) == 1 and pa.types.is_integer(common[0]) and len(left[0]) and len(right[0]):
        ours, theirs = _cast(left[0], common[0]).to_numpy(), _cast(right[0], common[0]).to_numpy()
        low, high = min(int(ours.min()), int(theirs.min())), max(int(ours.max()), int(theirs.max()))
        if high - low < 4 * (len(ours) + len(theirs)) + _SPARE:
            return ours - low, theirs - low, high - low + 1
    together = [
        _whole(_cast(one, kind), _cast(other, kind))
        for one, other, kind in zip(left, right, common)
    ]
    found = encoded(together)
    numbers = found.codes.astype(np.int64)
    return numbers[: len(left[0])], numbers[len(left[0]) :], max(1, found.count)


def _whole(left: Any, right: Any) -> Any:
    whole = pa.chunked_array([*left.chunks, *right.chunks], left.type).combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _common_type(left: object, right: object) -> Any:
    common = key_type(left, right)
    if common is None:
        raise TypeError(f"{left} and {right} cannot be compared")
    return common


def _cast(column: Any, wanted: object) -> Any:
    return column if column.type == wanted else column.cast(wanted)
