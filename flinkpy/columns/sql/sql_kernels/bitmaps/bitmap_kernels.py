"""Functions of bitmaps over whole columns: set operations over the codes of all rows at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.sql.call_site import CallSite, Kernel, KernelOf
from flinkpy.columns.sql.sql_kernels.bitmaps.bitmap_columns import (
    bitmaps_of,
    codes_of,
    counts_of,
    numbers_of,
    with_rows,
)
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_kernels.logic_kernels import column_of


def _build(site: CallSite) -> Kernel:
    def kernel(rows: int, arrays: Any) -> Any:
        column = column_of(arrays, rows)
        # the lists that are null have no elements here, and those of a slice begin at 0
        counts = column.value_lengths().fill_null(0).to_numpy()
        elements, owners = column.flatten(), np.repeat(np.arange(rows), counts)
        present = elements.is_valid().to_numpy(zero_copy_only=False)
        numbers = elements.filter(elements.is_valid()).to_numpy()
        codes = np.unique(with_rows(owners[present], numbers))
        return bitmaps_of(codes, rows, _nulls(column))

    return kernel


def _from_bytes(site: CallSite) -> Kernel:
    """Reads and writes: equal sets have equal bytes from here on."""

    def kernel(rows: int, given: Any) -> Any:
        column = column_of(given, rows)
        return bitmaps_of(np.unique(codes_of(column)), rows, _nulls(column))

    return kernel


def _to_array(site: CallSite) -> Kernel:
    def kernel(rows: int, bitmaps: Any) -> Any:
        column = column_of(bitmaps, rows)
        codes = codes_of(column)
        ends = np.append(0, np.cumsum(counts_of(codes, rows))).astype(np.int32)
        # a null offset makes the list null
        offsets = pa.array(ends, mask=np.append(_nulls(column), False))
        return pa.ListArray.from_arrays(offsets, pa.array(numbers_of(codes).view(np.int32)))

    return kernel


def _cardinality(site: CallSite) -> Kernel:
    def kernel(rows: int, bitmaps: Any) -> Any:
        column = column_of(bitmaps, rows)
        return pa.array(counts_of(codes_of(column), rows), mask=_nulls(column))

    return kernel


def _of_two(operation: Callable[..., Any]) -> KernelOf:
    def choose(site: CallSite) -> Kernel:
        def kernel(rows: int, left: Any, right: Any) -> Any:
            one, other = column_of(left, rows), column_of(right, rows)
            is_null = _nulls(one) | _nulls(other)
            codes = operation(codes_of(one), codes_of(other))
            return bitmaps_of(codes, rows, is_null)

        return kernel

    return choose


def _nulls(column: Any) -> Any:
    return column.is_null().to_numpy(zero_copy_only=False)


BITMAP_KERNELS: dict[str, KernelOf] = {
    "BITMAP_BUILD": _build,
    "BITMAP_FROM_BYTES": _from_bytes,
    "BITMAP_TO_BYTES": lambda site: lambda rows, bitmaps: column_of(bitmaps, rows),
    "BITMAP_TO_ARRAY": _to_array,
    "BITMAP_TO_STRING": by_value("BITMAP_TO_STRING"),
    "BITMAP_CARDINALITY": _cardinality,
    "BITMAP_AND": _of_two(lambda one, other: np.intersect1d(one, other, assume_unique=True)),
    "BITMAP_OR": _of_two(np.union1d),
    "BITMAP_XOR": _of_two(lambda one, other: np.setxor1d(one, other, assume_unique=True)),
    "BITMAP_ANDNOT": _of_two(lambda one, other: np.setdiff1d(one, other, assume_unique=True)),
}
