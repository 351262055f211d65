"""Columns of bitmaps as one sorted array of codes: the row in the high half of each, a number of
its set in the low half. Set operations over all rows of a batch are one operation over codes."""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.columns.sql.sql_meanings.bitmaps.roaring_format import (
    BYTES_OF_BITS,
    MALFORMED,
    MOST_LISTED,
    containers_of,
    head,
)

Codes: TypeAlias = "npt.NDArray[np.uint64]"
Numbers: TypeAlias = "npt.NDArray[Any]"

_ROW = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


def codes_of(column: pa.Array) -> Codes:
    """The codes of all sets in a column of bitmaps. Raises ValueError for bytes that are none."""
    found = []
    for row, data in enumerate(column.to_pylist()):
        if data is not None:
            numbers = _numbers_of(data)
            found.append(with_rows(np.full(len(numbers), row), numbers))
    return np.concatenate(found) if found else np.empty(0, np.uint64)


def with_rows(rows: npt.NDArray[Any], numbers: npt.NDArray[Any]) -> Codes:
    """The codes of numbers (of 32 bits, with a sign or without) in sets of these rows."""
    unsigned = numbers.astype(np.uint32, copy=False)
    found: Codes = rows.astype(np.uint64) << _ROW | unsigned.astype(np.uint64)
    return found


def rows_of(codes: Codes) -> Numbers:
    """The row of each code."""
    rows: Numbers = (codes >> _ROW).astype(np.int64)
    return rows


def numbers_of(codes: Codes) -> Numbers:
    """The number of each code."""
    numbers: Numbers = (codes & _LOW).astype(np.uint32)
    return numbers


def counts_of(codes: Codes, rows: int) -> Numbers:
    """How many numbers the set of each row has."""
    return np.bincount(rows_of(codes), minlength=rows).astype(np.int64)


def bitmaps_of(codes: Codes, rows: int, is_null: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """The column of these sets: ``codes`` are sorted, and each is there once."""
    ends = np.cumsum(counts_of(codes, rows))
    parts = np.split(numbers_of(codes), ends[:-1]) if rows else []
    missing = np.zeros(rows, np.bool_) if is_null is None else is_null
    return pa.array(
        [None if gone else _bytes_of(each) for each, gone in zip(parts, missing)], pa.binary()
    )


def _numbers_of(data: bytes) -> Numbers:
    try:
        found = [
            np.uint32(key << 16) | _lows(data, count, is_runs, at).astype(np.uint32)
            for key, count, is_runs, at in containers_of(data)
        ]
    except struct.error:
        raise ValueError(MALFORMED) from None
    return np.concatenate(found) if found else np.empty(0, np.uint32)


def _lows(data: bytes, count: int, is_runs: bool, at: int) -> Numbers:
    if is_runs:
        runs = int(np.frombuffer(data, "<u2", 1, at)[0])
        pairs = np.frombuffer(data, "<u2", 2 * runs, at + 2).astype(np.int64).reshape(-1, 2)
        lengths = pairs[:, 1] + 1
        firsts = np.cumsum(lengths) - lengths
        lows: Numbers = np.arange(lengths.sum()) + np.repeat(pairs[:, 0] - firsts, lengths)
        return lows
    if count <= MOST_LISTED:
        return np.frombuffer(data, "<u2", count, at)
    bits = np.frombuffer(data, np.uint8, BYTES_OF_BITS, at)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little"))


def _bytes_of(numbers: npt.NDArray[np.uint32]) -> bytes:
    highs = (numbers >> 16).astype(np.int64)
    starts = np.flatnonzero(np.diff(highs, prepend=-1))
    counts = np.diff(starts, append=len(numbers))
    lows = np.split((numbers & 0xFFFF).astype("<u2"), starts[1:]) if len(starts) else []
    # a run begins where a number does not follow the one before it
    begins = np.diff(numbers.astype(np.int64), prepend=-2) != 1
    begins[starts] = True
    runs = np.add.reduceat(begins, starts) if len(starts) else counts
    is_runs = 2 + 4 * runs < np.minimum(2 * counts, BYTES_OF_BITS)
    bodies = [_runs(each) if few else _body(each) for each, few in zip(lows, is_runs)]
    sizes = [len(each) for each in bodies]
    first = head(highs[starts].tolist(), counts.tolist(), is_runs.tolist(), sizes)
    return b"".join([first, *bodies])


def _runs(lows: npt.NDArray[Any]) -> bytes:
    wide = lows.astype(np.int64)
    firsts = np.flatnonzero(np.diff(wide, prepend=-2) != 1)
    lengths = np.diff(firsts, append=len(wide)) - 1
    pairs = np.stack([wide[firsts], lengths], axis=1).astype("<u2")
    return struct.pack("<H", len(firsts)) + pairs.tobytes()


def _body(lows: npt.NDArray[Any]) -> bytes:
    if len(lows) <= MOST_LISTED:
        return lows.tobytes()
    bits = np.zeros(1 << 16, np.uint8)
    bits[lows] = 1
    return np.packbits(bits, bitorder="little").tobytes()
