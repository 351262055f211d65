"""Estimates of the memory that records take: every few batches a few rows, or a whole batch of
columns, are measured; a running mean is kept. And a way to give freed memory back to the system."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from typing import Any

from flinkpy.core.elements import Batch, ColumnBatch, RowBatch

MEASURED_ROWS = 4  # rows of a batch that is measured
MEASURE_EVERY = 16  # batches between two measurements
_DEPTH = 4
_WIDTH = 32
_SCALARS = frozenset({str, int, float, bytes, bool, type(None)})


class SizeEstimator:
    """Estimates the bytes of batches from a few of their records. One estimator serves batches of
    one kind, such as those of one output."""

    __slots__ = ("_column_rate", "_columns_countdown", "_countdown", "bytes_per_row")

    def __init__(self) -> None:
        self.bytes_per_row = 0.0
        self._column_rate = 0.0
        self._countdown = self._columns_countdown = 0

    def bytes_of(self, batch: Batch) -> int:
        """An estimate of the bytes the batch takes in memory."""
        if type(batch) is RowBatch:
            values, stamps = batch.values, batch.timestamps
            # a single record may be large, so it is always measured
            size = size_of(values[0]) if len(values) == 1 else int(self.bytes_of_rows(values))
            return size if stamps is None else size + 32 * len(stamps)
        assert isinstance(batch, ColumnBatch)
        size = self._bytes_of_columns(batch)
        if batch.timestamps is not None:
            size += batch.timestamps.nbytes
        return size if batch.kinds is None else size + batch.kinds.nbytes

    def bytes_of_rows(self, values: list[Any]) -> float:
        count = len(values)
        if self._countdown:
            self._countdown -= 1
        else:
            self._measure(values)
        return count * self.bytes_per_row

    def bytes_of_column_rows(self, rows: int) -> float:
        """The bytes of ``rows`` rows of columns, from earlier measurements."""
        return rows * self._column_rate

    def _bytes_of_columns(self, batch: ColumnBatch) -> int:
        """Measures only some batches: Arrow takes about 20 µs to count a batch's bytes, and handing
        one over takes 2 µs."""
        rows = len(batch)
        if self._columns_countdown and rows > 1:
            self._columns_countdown -= 1
        else:
            self._columns_countdown = MEASURE_EVERY
            mean = batch.data.nbytes / max(1, rows)
            self._column_rate = mean if mean > self._column_rate else (self._column_rate + mean) / 2
        return int(rows * self._column_rate)

    def _measure(self, values: list[Any]) -> None:
        self._countdown = MEASURE_EVERY
        count = len(values)
        step = max(1, count // MEASURED_ROWS)
        sample = values[step // 2 :: step]
        mean = sum(map(size_of, sample)) / len(sample)
        known = self.bytes_per_row
        # raised at once, lowered slowly: an estimate that is too large is safer than one that is
        # too small
        self.bytes_per_row = mean if mean > known else (known + mean) / 2


def size_of(value: Any, depth: int = _DEPTH) -> int:
    """Roughly the bytes of one record: follows nested containers to a bounded depth, and only the
    first items of long ones.

    >>> size_of("x" * 1000) > 1000
    True
    """
    kind = type(value)
    size = sys.getsizeof(value, 64) + 8
    if kind in _SCALARS or depth == 0:
        return size
    if kind is tuple and len(value) <= _WIDTH:
        # the usual record; the same sum without a call per field
        if _SCALARS.issuperset(map(type, value)):
            return size + sum(map(sys.getsizeof, value)) + 8 * len(value)
        for item in value:
            size += size_of(item, depth - 1)
        return size
    held = getattr(value, "nbytes", None)  # numpy, Arrow
    if type(held) is int:
        return held + 64
    items: Any = None
    if isinstance(value, dict):
        items = [*_first(value), *_first(value.values())]
    elif isinstance(value, (tuple, list, set, frozenset)):
        items = value if len(value) <= _WIDTH else _first(value)
    elif hasattr(value, "__dict__"):
        items = list(value.__dict__.values())
    if not items:
        return size
    inner = sum(size_of(item, depth - 1) for item in items)
    return size + (
        inner * len(value) // _WIDTH
        if isinstance(value, (dict, tuple, list, set, frozenset)) and len(value) > _WIDTH
        else inner
    )


def _first(items: Any) -> list[Any]:
    return [item for _, item in zip(range(_WIDTH), items)]


def give_back_freed() -> None:
    """Gives freed memory back to the system, which Arrow and the C library would keep for what is
    allocated next; takes some 0.3 ms."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # not every C library has the call
        ctypes.CDLL(None).malloc_trim(0)
