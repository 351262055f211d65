"""Exact arithmetic of decimals: in 64 bits where the batch's extremes prove that it is exact, else
in 256 bits; a division that is larger still, value by value. What does not fit the result's type is
null."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.kernels.decimals import rounded, with_type
from flinkpy.columns.sql.call_site import CallSite
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_kernels.numbers.decimal_halves import (
    MOST_IN_A_HALF,
    Halves,
    array_of_column,
    decimals_of,
    digits_of_type,
    halves_of,
    numbers_of_pool,
    rounded_quotient,
    validity_of,
)
from flinkpy.columns.sql.sql_meanings.number_rules import DIVISION_BY_ZERO
from flinkpy.common.logical_types.logical_type import DecimalType

_LIMIT = 1 << 63
_MOST_WIDE = 76


@dataclass(frozen=True)
class ColumnKernel:
    """A kernel that takes and gives decimals in either form (``compute``). Called as any other
    kernel it takes and gives arrays."""

    compute: Callable[..., Any]

    def __call__(self, rows: int, *operands: Any) -> Any:
        return array_of_column(self.compute(rows, *operands))


def decimal_kernel(name: str, site: CallSite) -> ColumnKernel:
    """The kernel of ``+ - * / %`` whose result is a decimal."""
    assert isinstance(site.result, DecimalType)
    kind = site.result
    narrow = _NARROW[name]
    wide = _WIDE.get(name)
    fallback = by_value(name)(site)

    def compute(rows: int, left: Any, right: Any) -> Any:
        if rows == 0 or _is_null(left) or _is_null(right):
            return pa.nulls(rows, pa.decimal128(kind.precision, kind.scale))
        one = halves_of(left, site.arguments[0])
        other = halves_of(right, site.arguments[1])
        if one is not None and other is not None:
            found = narrow(one, other, kind, (left, right))
            if found is None:
                found = narrow(one.tightened(), other.tightened(), kind, (left, right))
            if found is not None:
                return decimals_of(_spread(found, rows), kind, (left, right))
        left, right = array_of_column(left), array_of_column(right)
        if wide is None:
            return fallback(rows, left, right)
        return fitted(wide(_in_256(left, site, 0), _in_256(right, site, 1)), kind, rows)

    return ColumnKernel(compute)


def _is_null(operand: Any) -> bool:
    return isinstance(operand, pa.Scalar) and not operand.is_valid


def _spread(found: Halves, rows: int) -> Halves:
    """Two constants give one value, which stands in every row."""
    if np.ndim(found.values):
        return found
    return Halves(np.full(rows, found.values, np.int64), found.scale, found.reach)


# -- 64 bits ---------------------------------------------------------------------------------------


def aligned(one: Halves, other: Halves) -> tuple[Halves, Halves] | None:
    """Both with the same number of digits behind the point; None if that may leave 64 bits."""
    scale = max(one.scale, other.scale)
    left, right = one.times(scale - one.scale), other.times(scale - other.scale)
    return None if left is None or right is None else (left, right)


def _summing(operate: Callable[[Any, Any], Any]) -> Callable[..., Halves | None]:
    def narrow(one: Halves, other: Halves, kind: DecimalType, operands: Any) -> Halves | None:
        pair = aligned(one, other)
        if pair is None:
            return None
        left, right = pair
        reach = left.reach + right.reach
        if reach >= _LIMIT:
            return None
        values = _computed(operate, left.values, right.values)
        return in_scale(Halves(values, left.scale, reach), kind)

    return narrow


def _multiplying(one: Halves, other: Halves, kind: DecimalType, operands: Any) -> Halves | None:
    reach = one.reach * other.reach
    if reach >= _LIMIT:
        return None
    values = _computed(np.multiply, one.values, other.values)
    return in_scale(Halves(values, one.scale + other.scale, reach), kind)


def _computed(operate: Callable[..., Any], left: Any, right: Any) -> Any:
    rows = max(np.size(left), np.size(right))
    if np.ndim(left) == 0 and np.ndim(right) == 0:
        return operate(left, right)
    return operate(left, right, out=numbers_of_pool(rows))


def in_scale(found: Halves, kind: DecimalType) -> Halves | None:
    """With the digits behind the point that a type has; None if that may leave 64 bits."""
    fewer = found.scale - kind.scale
    if fewer <= 0:
        return found.times(-fewer)
    if fewer > MOST_IN_A_HALF:
        return None
    unit = 10**fewer
    values = rounded_quotient(np.asarray(found.values), unit)
    return Halves(values, kind.scale, found.reach // unit + 1)


def _dividing(one: Halves, other: Halves, kind: DecimalType, operands: Any) -> Halves | None:
    divisors = _divisors(other, operands)
    grown = one.times(kind.scale - one.scale + other.scale)
    if grown is None:
        return None
    sizes, units = np.abs(grown.values), np.abs(divisors)
    whole, rest = np.divmod(sizes, units)
    whole += rest >= units - rest  # a half goes away from zero
    is_negative = (grown.values < 0) != (divisors < 0)
    return Halves(np.where(is_negative, -whole, whole), kind.scale, grown.reach + 1)


def _remaining(one: Halves, other: Halves, kind: DecimalType, operands: Any) -> Halves | None:
    divisors = _divisors(other, operands)
    pair = aligned(one, Halves(divisors, other.scale, max(other.reach, 1)))
    if pair is None:
        return None
    left, right = pair
    rest = Halves(np.fmod(left.values, right.values), left.scale, min(left.reach, right.reach))
    return in_scale(rest, kind)


def _divisors(other: Halves, operands: Any) -> Any:
    """The divisors, with 1 where a row has no value. Raises ZeroDivisionError for a row that
    has."""
    divisors = np.asarray(other.values)
    if divisors.all():
        return divisors
    validity = validity_of(operands)
    if validity is None:
        raise ZeroDivisionError(DIVISION_BY_ZERO)
    divisors = np.where(validity.to_numpy(zero_copy_only=False), divisors, 1)
    if not divisors.all():
        raise ZeroDivisionError(DIVISION_BY_ZERO)
    return divisors


_NARROW: dict[str, Callable[..., Halves | None]] = {
    "+": _summing(np.add),
    "-": _summing(np.subtract),
    "*": _multiplying,
    "/": _dividing,
    "%": _remaining,
}


# -- 256 bits --------------------------------------------------------------------------------------


def _in_256(operand: Any, site: CallSite, at: int) -> Any:
    """An operand as decimals of 256 bits with as many digits as its type."""
    digits, scale = digits_of_type(site.arguments[at])
    if pa.types.is_integer(operand.type):
        operand = operand.cast(pa.decimal128(digits, 0))
    return operand.cast(pa.decimal256(digits, scale))


def _wide_sum(operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def wide(left: Any, right: Any) -> Any:
        # A sum of numbers of 38 digits has at most 77; 76 would need 38 digits behind the point
        # on one side and 38 before it on the other, and then the sum has no carry beyond them
        scale = max(left.type.scale, right.type.scale)
        pair = [
            with_type(each.cast(pa.decimal256(_MOST_WIDE, scale)), pa.decimal256(75, scale))
            for each in (left, right)
        ]
        return operate(*pair)

    return wide


def _wide_product(left: Any, right: Any) -> Any:
    if left.type.precision + right.type.precision >= _MOST_WIDE:  # Arrow needs one more
        left = with_type(left, pa.decimal256(left.type.precision - 1, left.type.scale))
    return pc.multiply(left, right)


_WIDE: dict[str, Callable[[Any, Any], Any]] = {
    "+": _wide_sum(pc.add),
    "-": _wide_sum(pc.subtract),
    "*": _wide_product,
}


def fitted(values: Any, kind: DecimalType, rows: int) -> Any:
    """Decimals of 256 bits in the result's type, halves away from zero; null what does not fit."""
    if isinstance(values, pa.Scalar):
        values = pa.repeat(values, rows)
    fewer = values.type.scale - kind.scale
    values = with_type(values, pa.decimal256(_MOST_WIDE, values.type.scale))
    if fewer > 0:
        values = rounded(values, kind.scale)
    bound = decimal.Decimal(10) ** (kind.precision - kind.scale)
    limit = pa.scalar(bound, pa.decimal256(_MOST_WIDE, values.type.scale))
    fits = pc.less(pc.abs(values), limit)
    values = pc.if_else(fits, values, pa.scalar(None, values.type))
    return values.cast(pa.decimal128(kind.precision, kind.scale))
