"""The order of rows by several columns. Each column becomes arrays of whole numbers that sort as
its values do, so one stable sort of numbers serves all types and all directions.

NaN is greater than all other floats, and the zeros of both signs are equal. Text sorts by its
bytes, as in Flink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.aggregates.wide_integers import WIDE, of_decimals
from flinkpy.core.errors import ProgramError
from flinkpy.relational.relational_operator import plain
from flinkpy.sql.rex.rex_nodes import SortKey

_SAMPLED = 8  # one of so many rows tells whether values repeat
_FEWEST_SAMPLED = 256
_ALL_BUT_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)


def sorted_positions(codes: Sequence[Any], rows: int) -> Any:
    """The positions of the rows in the order of these arrays, of which the first counts most; equal
    rows stay in their order."""
    if not codes:
        return np.arange(rows)
    if len(codes) == 1:
        return np.argsort(codes[0], kind="stable")
    return np.lexsort(codes[::-1])


def codes_of(columns: Sequence[pa.Array], keys: Sequence[SortKey]) -> list[Any]:
    """The arrays by which the rows of these columns sort, the first counts most.

    >>> columns = [pa.array([2, None, 1]), pa.array(["a", "b", "c"])]
    >>> sorted_positions(codes_of(columns, [SortKey(0, descending=True)]), 3).tolist()
    [1, 0, 2]
    """
    return [code for key in keys for code in _codes_of_key(columns[key.index], key)]


def new_values(codes: Sequence[Any], rows: int) -> Any:
    """For rows in order: whether each differs from the one before; the first does."""
    found = np.zeros(rows, np.bool_)
    found[:1] = True
    for code in codes:
        found[1:] |= code[1:] != code[:-1]
    return found


def _codes_of_key(column: pa.Array, key: SortKey) -> list[Any]:
    column = plain(column)
    codes = [] if pa.types.is_null(column.type) else ascending_codes(column)
    if key.descending:
        codes = [~code for code in codes]
    if not column.null_count or pa.types.is_null(column.type):
        return codes
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    codes = [np.where(is_null, code.dtype.type(0), code) for code in codes]
    return [(~is_null if key.nulls_first else is_null).view(np.int8), *codes]


def ascending_codes(column: pa.Array) -> list[Any]:
    """Arrays of whole numbers that sort as the values; nulls have any number."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return [column.fill_null(False).to_numpy(zero_copy_only=False).view(np.int8)]
    if pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        kind = column.type
    if pa.types.is_integer(kind):
        return [column.fill_null(0).to_numpy(zero_copy_only=False)]
    if pa.types.is_floating(kind):
        return [_float_codes(column.cast(pa.float64()).fill_null(0).to_numpy())]
    if pa.types.is_decimal128(kind):
        present = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
        digits = of_decimals(column, present)
        if digits.dtype != WIDE:
            return [digits]
        return [digits["middle"].view(np.int64), digits["low"]]
    if pa.types.is_struct(kind):
        return [code for part in column.flatten() for code in ascending_codes(plain(part))]
    if pa.types.is_nested(kind):
        raise ProgramError(f"rows cannot be sorted by values of the type {kind}")
    return [_text_codes(column)]


def _text_codes(column: pa.Array) -> Any:
    """A dictionary makes few values of many rows cheap to sort. If most values are there once, it
    would take more memory than the column and more time than to sort the texts."""
    part = column.slice(0, len(column) // _SAMPLED)
    if len(part.unique()) > 0.9 * len(part) >= _FEWEST_SAMPLED:
        return pc.rank(column, tiebreaker="dense").to_numpy()
    encoded = column.dictionary_encode(null_encoding="encode")
    ranks = np.empty(len(encoded.dictionary), np.int32)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(ranks), dtype=np.int32)
    return ranks[encoded.indices.to_numpy()]


def _float_codes(values: npt.NDArray[Any]) -> Any:
    values = np.where(np.isnan(values), np.nan, values + 0.0)
    bits = values.view(np.int64)
    return np.where(bits < 0, bits ^ _ALL_BUT_SIGN, bits)
