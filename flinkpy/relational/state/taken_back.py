"""Which rows are there, after some were added and some taken back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.operators.columnar.key_index import encoded


def contents(data: pa.RecordBatch) -> Any:
    """A number for each row; equal rows have equal numbers."""
    if not data.num_columns or not data.num_rows:
        return np.zeros(data.num_rows, np.int64)
    return encoded(data.columns).codes


def taken_back(groups: Any, places: Any, is_added: Any) -> tuple[Any, Any]:
    """Rows of a group are equal; in the order of ``places`` each is added, or takes back the first
    one that is there. Says which of the added ones stay, and which of the others find none.

    >>> stay, found_none = taken_back(
    ...     np.array([0, 0, 0, 1]), np.arange(4), np.array([True, True, False, False])
    ... )
    >>> stay.tolist(), found_none.tolist()
    ([False, True, False, False], [False, False, False, True])
    """
    count = len(groups)
    stay, found_none = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    if not count:
        return stay, found_none
    order = np.lexsort((places, groups))
    groups, added = groups[order], is_added[order]
    begins = np.append(True, groups[1:] != groups[:-1])
    numbers, starts = np.cumsum(begins) - 1, np.flatnonzero(begins)
    ends = np.append(starts[1:], count) - 1
    steps = np.where(added, 1, -1)
    total = np.cumsum(steps)
    balance = total - (total[starts] - steps[starts])[numbers]
    # how far the balance has gone below zero: so many found none. Groups lie below each other, so
    # that the least of one says nothing about the next
    apart = numbers * (2 * count + 2)
    least = np.minimum(np.minimum.accumulate(balance - apart) + apart, 0)
    before = np.append(0, least[:-1])
    before[starts] = 0
    found_none[order] = least < before
    standing = balance[ends] - least[ends]
    added_so_far = np.cumsum(added)
    nth = added_so_far - (added_so_far[starts] - added[starts])[numbers]
    gone = nth[ends] - standing
    stay[order] = added & (nth > gone[numbers])
    return stay, found_none
