"""The types that aggregates of columns are computed in, for all who compute them: running ones and those of windows."""

from __future__ import annotations

import decimal
import operator
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from flinkpy.core.errors import ProgramError
from flinkpy.table.kernels import is_text, wide

_EXACT = decimal.Context(prec=76, traps=[decimal.Inexact])  # as long as Arrow's decimals get; Python's own context rounds to 28 digits


def computed_in(kind: str, input_type: Any) -> Any:
    """The type in which a sum, avg, min or max of a column is kept; ProgramError for what there is none of.

    >>> computed_in("sum", pa.int8()), computed_in("sum", pa.decimal128(3, 2)), computed_in("max", pa.large_string())
    (DataType(int64), Decimal128Type(decimal128(38, 2)), DataType(string))
    """
    if kind in ("sum", "avg"):
        return summed(kind, input_type)
    if pa.types.is_integer(input_type) or pa.types.is_floating(input_type):
        return wide(input_type)
    if is_text(input_type):
        return pa.string()
    if not (pa.types.is_temporal(input_type) or pa.types.is_boolean(input_type) or pa.types.is_decimal(input_type)):
        raise ProgramError(f"{kind} of {input_type} is not there; cast it")
    return input_type


def summed(kind: str, input_type: Any) -> Any:
    """The type of a sum: the widest of its numbers. Sums of decimals have up to 38 digits, as in Flink."""
    if pa.types.is_decimal(input_type):
        return pa.decimal256(76, input_type.scale) if pa.types.is_decimal256(input_type) else pa.decimal128(38, input_type.scale)
    try:
        return wide(input_type)
    except TypeError:
        raise ProgramError(f"{kind} needs numbers, this is {input_type}") from None


def adding(kind: Any) -> Callable[[Any, Any], Any]:
    """The exact addition of Python values of that type."""
    return _EXACT.add if pa.types.is_decimal(kind) else operator.add
