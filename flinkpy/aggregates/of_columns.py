"""Aggregates of columns: the types they are computed in, and how values become those of their groups, for running ones and those of windows.

Nulls are left out. A not-a-number is the greatest of all values, and makes every sum one. Of equal values the first stays.
"""

from __future__ import annotations

import decimal
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.conversion import python_values
from flinkpy.columns.kinds import as_computed, is_text, wide
from flinkpy.core.errors import ProgramError

_EXACT = decimal.Context(prec=76, traps=[decimal.Inexact])  # as long as Arrow's decimals get; Python's own context rounds to 28 digits
_LIMIT = 1 << 63
_EXACT_FLOATS = 1 << 53  # whole numbers below are floats exactly
_LOW = 32


def computed_in(kind: str, input_type: Any) -> Any:
    """The type in which a sum, avg, min or max of a column is kept; ProgramError for what there is none of.

    >>> computed_in("sum", pa.int8()), computed_in("sum", pa.decimal128(3, 2)), computed_in("max", pa.large_string())
    (DataType(int64), Decimal128Type(decimal128(38, 2)), DataType(string))
    """
    if kind in ("sum", "avg"):
        return summed(kind, input_type)
    if pa.types.is_integer(input_type) or pa.types.is_floating(input_type):
        return input_type if pa.types.is_uint64(input_type) else wide(input_type)
    if is_text(input_type):
        return pa.string()
    if pa.types.is_decimal32(input_type) or pa.types.is_decimal64(input_type):
        return pa.decimal128(input_type.precision, input_type.scale)
    if not (counting(input_type) is not None or pa.types.is_boolean(input_type) or pa.types.is_decimal(input_type)):
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


def smaller(one: Any, other: Any) -> bool:
    """In the order in which a not-a-number is the greatest."""
    return bool(one < other or (other != other and one == one))


def larger(one: Any, other: Any) -> bool:
    """In the same order."""
    return smaller(other, one)


def check_sums(sums: Any) -> None:
    """OverflowError if one of these exact sums leaves 64 bits."""
    if any(not -_LIMIT <= value < _LIMIT for value in sums):
        raise OverflowError("a sum leaves 64 bits; cast the column to DataTypes.DOUBLE()")


def first_zeros(best: Any, values: Any, codes: Any) -> Any:
    """``best``, of floats, with the zeros that came first: numpy does not say whether it takes 0.0 or -0.0 of both."""
    at = np.flatnonzero(values == 0)
    if len(at) and np.signbit(values[at]).any():
        group = np.zeros(len(at), np.int64) if codes is None else codes[at]
        first = np.zeros(len(best))
        first[group[::-1]] = values[at[::-1]]  # the last assignment counts: the first zero
        best = np.where(best == 0, first, best)
    return best


def counting(kind: Any) -> Any:
    """The whole numbers that moments of this type are counted in; None for other types. Python's moments are slower, and have no nanoseconds."""
    if not pa.types.is_temporal(kind) or pa.types.is_interval(kind):
        return None
    return pa.int32() if kind.bit_width == 32 else pa.int64()


class ColumnAggregate:
    """One aggregate over columns. ``keeps_type``: a minimum has the column's own type.

    Values are numpy arrays: of 64-bit numbers (moments are counted), of Python's integers where sums for ``avg`` leave these, of Python values else.
    """

    def __init__(self, kind: str, input_type: Any, keeps_type: bool = False) -> None:
        self.kind = kind
        self.computed_in = pa.int64() if kind == "count" else computed_in(kind, input_type)
        self.result_type = {"count": pa.int64(), "avg": pa.float64()}.get(kind, self.computed_in)
        if keeps_type and kind in ("min", "max"):
            self.result_type = input_type
        self._counting = counting(self.computed_in)
        self._is_float = self.computed_in == pa.float64()
        self.is_number = self._counting is not None or self._is_float or bool(pa.types.is_integer(self.computed_in))
        self.dtype: Any = object
        if self.is_number:
            self.dtype = np.int64 if self._counting is not None else self.computed_in.to_pandas_dtype()
        self.nothing: Any = self._neutral() if self.is_number else None

    def _neutral(self) -> Any:
        """What changes nothing."""
        if self.kind not in ("min", "max"):
            return -0.0 if self._is_float else 0
        if self._is_float:
            return np.nan if self.kind == "min" else -np.inf
        return np.iinfo(self.dtype).max if self.kind == "min" else np.iinfo(self.dtype).min

    def taken_in(self, column: Any) -> tuple[Any, Any]:
        """Counts (None: one each) and values (None: only counted) of the records of a column."""
        nulls = column.null_count
        counts = column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64) if nulls else None
        if self.kind == "count":
            return counts, None
        if pa.types.is_decimal(column.type) and self.computed_in == pa.int64():  # what ``saved`` made of sums beyond 64 bits
            return counts, np.array([self.nothing if value is None else int(value) for value in column.to_pylist()], dtype=object)
        column = as_computed(column, self.computed_in)
        if not self.is_number:
            values = np.empty(len(column), dtype=object)
            values[:] = python_values(column)
            return counts, values
        if self._counting is not None:
            column = column.view(self._counting).cast(pa.int64())
        return counts, (column.fill_null(self.nothing) if nulls else column).to_numpy(zero_copy_only=False)

    @staticmethod
    def counted(counts: Any, size: int, codes: Any, groups: int) -> Any:
        """How many values each group has, of ``size`` records; ``codes`` says the group of each (None: there is one)."""
        if counts is None:
            return np.array([size]) if codes is None else np.bincount(codes, minlength=groups)
        return np.array([counts.sum()]) if codes is None else np.bincount(codes, counts, groups).astype(np.int64)

    def combined(self, values: Any, codes: Any, groups: int) -> Any:
        """What the values of each group make together."""
        if not self.is_number:
            return self._one_by_one(values, codes, groups)
        if self.kind in ("sum", "avg"):
            return self._sums(values, codes, groups)
        if self.kind == "min":
            pick: Any = np.fmin if self._is_float else np.minimum  # the first takes the other of a number and none
        else:
            pick = np.maximum
        with np.errstate(invalid="ignore"):  # not-a-numbers are meant
            if codes is None:
                best = np.array([pick.reduce(values)])
            else:
                best = np.full(groups, self.nothing, dtype=values.dtype)
                pick.at(best, codes, values)
        return first_zeros(best, values, codes) if self._is_float else best

    def result(self, counts: Any, values: Any) -> Any:
        """The aggregate of each group as an Arrow array; null where there was no value."""
        if self.kind == "count":
            return pa.array(counts)
        if self.kind == "avg":
            return self._means(counts, values)
        array = self.saved(counts, values)
        return array if array.type == self.result_type else array.cast(self.result_type)

    def saved(self, counts: Any, values: Any) -> Any:
        """The values as an Arrow array that ``taken_in`` understands."""
        if not self.is_number:
            return pa.array(values.tolist(), self.computed_in)
        if values.dtype == object:
            return pa.array(list(map(decimal.Decimal, values.tolist())), pa.decimal128(38, 0), mask=counts == 0)
        if self._counting is None:
            return pa.array(values, self.computed_in, mask=counts == 0)
        return pa.array(values, pa.int64(), mask=counts == 0).cast(self._counting).view(self.computed_in)

    def _means(self, counts: Any, values: Any) -> Any:
        """Sums divided by counts, rounded once."""
        if not self.is_number:
            return pa.array([float(value / count) if count else None for value, count in zip(values, counts.tolist())], pa.float64())
        means, divisors = np.empty(len(values)), np.maximum(counts, 1)
        is_large = np.zeros(len(values), np.bool_) if self._is_float else (values >= _EXACT_FLOATS) | (values <= -_EXACT_FLOATS)
        if is_large.any():
            means[is_large] = values[is_large].astype(object) / divisors[is_large].astype(object)
            means[~is_large] = values[~is_large].astype(np.float64) / divisors[~is_large]
        else:
            means = values / divisors
        return pa.array(means.astype(np.float64, copy=False), mask=counts == 0)

    def _sums(self, values: Any, codes: Any, groups: int) -> Any:
        if self._is_float:  # both go from first to last
            return np.cumsum(values)[-1:] if codes is None else self._added(values, codes, groups)
        if values.dtype == object or max(abs(int(values.min())), abs(int(values.max()))) * len(values) >= _LIMIT:
            exact = self._exact_sums(values, codes, groups)
            if self.kind == "sum":
                check_sums(exact)
            return exact.astype(np.int64) if all(-_LIMIT <= value < _LIMIT for value in exact) else exact
        return self._added(values, codes, groups)

    def _exact_sums(self, values: Any, codes: Any, groups: int) -> Any:
        """As Python's integers: the sums of both halves of the numbers stay within 64 bits."""
        if values.dtype == object:
            return self._one_by_one(values, codes, groups)
        high, low = (self._added(half, codes, groups).astype(object) for half in (values >> _LOW, values & ((1 << _LOW) - 1)))
        return high * (1 << _LOW) + low

    def _added(self, values: Any, codes: Any, groups: int) -> Any:
        with np.errstate(invalid="ignore", over="ignore"):  # infinities of both signs make a not-a-number, large floats an infinity, as everywhere
            if codes is None:
                return np.array([values.sum()])
            sums = np.full(groups, self.nothing, values.dtype)
            np.add.at(sums, codes, values)
            return sums

    def _one_by_one(self, values: Any, codes: Any, groups: int) -> Any:
        choose = {"min": smaller, "max": larger}.get(self.kind)
        plus, found = adding(self.computed_in), np.full(groups, self.nothing, dtype=object)
        for code, value in zip([0] * len(values) if codes is None else codes.tolist(), values.tolist()):
            if value is not None:
                current = found[code]
                if current is None:
                    found[code] = value
                elif choose is None:
                    found[code] = plus(current, value)
                elif choose(value, current):
                    found[code] = value
        return found
