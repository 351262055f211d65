"""Pairs of rows, in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from flinkpy.relational.relational_operator import ROWS_AT_ONCE


def pair_pieces(counts: npt.NDArray[Any]) -> Iterator[tuple[Any, Any]]:
    """Each row as often as it has partners: positions of rows, and the number of the partner of
    each, from 0.

    >>> [(at.tolist(), nth.tolist()) for at, nth in pair_pieces(np.array([2, 0, 1]))]
    [([0, 0, 2], [0, 1, 0])]
    """
    ends = np.cumsum(counts)
    begins = ends - counts
    total = int(ends[-1]) if len(ends) else 0
    for begin in range(0, total, ROWS_AT_ONCE):
        end = min(begin + ROWS_AT_ONCE, total)
        first, last = np.searchsorted(ends, [begin, end - 1], side="right")
        near = np.arange(first, last + 1)
        given = np.minimum(ends[near], end) - np.maximum(begins[near], begin)
        at = np.repeat(near, given)
        yield at, np.arange(begin, end) - begins[at]
