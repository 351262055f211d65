"""Which rows of two tables have equal keys: positions of all pairs, by numbering the keys and counting, without a look at single values.

About as fast as ``pyarrow.Table.join``, which was the other choice: but that one says nothing about order, joins no nulls (rows do), refuses keys of
different integer types, and columns of lists beside the key.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SPARE = 1 << 16  # whole numbers are their own numbering while their range is not much above the number of rows


def matching_pairs(left: list[Any], right: list[Any]) -> tuple[Any, Any]:
    """Positions (left, right) of all pairs whose key columns are equal: by left position, then by right position.

    >>> left, right = matching_pairs([pa.chunked_array([[3, 1, 3]])], [pa.chunked_array([[3, 2, 3]])])
    >>> left.tolist(), right.tolist()
    ([0, 0, 2, 2], [0, 2, 0, 2])
    """
    codes_left, codes_right, count = _codes(left[0], right[0])
    for one, other in zip(left[1:], right[1:]):
        more_left, more_right, more = _codes(one, other)
        codes_left, codes_right, count = _combined(codes_left * more + more_left, codes_right * more + more_right)
    return _pairs(codes_left, codes_right, count)


def _pairs(left: Any, right: Any, count: int) -> tuple[Any, Any]:
    per_key = np.bincount(right, minlength=count)
    partners = per_key[left]
    if len(right) and per_key.max() == 1:  # keys are unique on the right: one look-up each
        position = np.zeros(count, dtype=np.int64)
        position[right] = np.arange(len(right))
        found = np.nonzero(partners)[0]
        return found, position[left[found]]
    order = np.argsort(right.astype(np.uint16) if count <= 1 << 16 else right, kind="stable")  # numpy sorts 16 bits by radix
    starts = np.cumsum(per_key) - per_key
    rows = np.repeat(np.arange(len(left)), partners)
    first_pair = np.cumsum(partners) - partners  # where the pairs of each left row begin
    within = np.arange(len(rows)) - first_pair[rows]
    return rows, order[starts[left[rows]] + within]


def _codes(left: Any, right: Any) -> tuple[Any, Any, int]:
    """Equal values of both columns get equal numbers, from 0 to below the third result."""
    common = _common_type(left.type, right.type)
    left, right = _cast(left, common), _cast(right, common)
    if pa.types.is_integer(common) and not left.null_count and not right.null_count and len(left) and len(right):
        ours, theirs = left.to_numpy(), right.to_numpy()
        low, high = min(int(ours.min()), int(theirs.min())), max(int(ours.max()), int(theirs.max()))
        if high - low < 4 * (len(ours) + len(theirs)) + _SPARE:
            return ours - low, theirs - low, high - low + 1
    together = pa.chunked_array([*left.chunks, *right.chunks], common).combine_chunks()
    encoded = together.dictionary_encode(null_encoding="encode")
    numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers[: len(left)], numbers[len(left) :], max(1, len(encoded.dictionary))


def _combined(left: Any, right: Any) -> tuple[Any, Any, int]:
    """Numbers made of several columns, made small again."""
    distinct, numbers = np.unique(np.concatenate((left, right)), return_inverse=True)
    return numbers[: len(left)], numbers[len(left) :], max(1, len(distinct))


def key_type(left: Any, right: Any) -> Any:
    """The type in which both key columns are compared, or None where they never could be equal."""
    if pa.types.is_dictionary(left):
        left = left.value_type
    if pa.types.is_dictionary(right):
        right = right.value_type
    if left == right:
        return left
    if all(pa.types.is_integer(each) for each in (left, right)):
        return None if pa.uint64() in (left, right) else pa.int64()
    if all(pa.types.is_string(each) or pa.types.is_large_string(each) for each in (left, right)):
        return pa.large_string()
    return None


def _common_type(left: Any, right: Any) -> Any:
    common = key_type(left, right)
    if common is None:
        raise TypeError(f"{left} and {right} cannot be compared")
    return common


def _cast(column: Any, wanted: Any) -> Any:
    if column.type != wanted:
        column = column.cast(wanted)
    if pa.types.is_floating(wanted):
        column = pc.add(column, pa.scalar(0.0, wanted))  # zeros of both signs are equal
    return column
