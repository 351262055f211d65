"""Columns as arrays of numpy, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.columns.values.numpy_types import numpy_type
from flinkpy.relational.relational_operator import plain


def all_present(columns: Sequence[pa.Array]) -> Any:
    """Where no column is null; None: everywhere."""
    found = None
    for column in columns:
        if column.null_count:
            present = column.is_valid().to_numpy(zero_copy_only=False)
            found = present if found is None else found & present
    return found


def numbers_of(column: pa.Array) -> tuple[Any, Any]:
    """A column's values (anything where there is none), and where there is one (None: everywhere).
    Times, dates and intervals are whole numbers in their own unit."""
    column = plain(column)
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    present = all_present([column])
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)
    if present is not None:
        column = column.fill_null(False if pa.types.is_boolean(kind) else 0)
    return column.to_numpy(zero_copy_only=False), present


def wrapped(
    values: npt.NDArray[Any], kind: pa.DataType, is_null: npt.NDArray[Any] | None
) -> pa.Array:
    """The values as a column of this type, null where ``is_null``. Integers that are too large wrap
    round; floats become integers as casts of SQL make them: cut, and at most the largest."""
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return wrapped(values, width, is_null).view(kind)
    dtype = numpy_type(kind)
    if dtype.kind == "i" and values.dtype.kind == "f":
        values = _cut_to(values, dtype)
    with np.errstate(over="ignore"):
        values = values.astype(dtype, copy=False)
    if is_null is not None and not is_null.any():
        is_null = None
    return pa.array(values, kind, mask=is_null, from_pandas=False)


def _cut_to(values: npt.NDArray[Any], dtype: Any) -> Any:
    limits = np.iinfo(dtype)
    values = np.where(np.isnan(values), 0.0, values)
    found = np.clip(values, -(2.0**63), 2.0**63 - 1024).astype(np.int64)
    return np.clip(
        np.where(values >= 2.0**63, np.iinfo(np.int64).max, found), limits.min, limits.max
    )
