"""Comparisons over whole columns."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.arrays_of_values import array_of_values
from flinkpy.columns.sql.arrow_of_logical import arrow_of
from flinkpy.columns.sql.call_site import VARYING, CallSite, Kernel, KernelOf
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_kernels.logic_kernels import BOOL, column_of, inverted
from flinkpy.columns.sql.sql_kernels.numbers.arithmetic_kernels import as_floats
from flinkpy.columns.sql.sql_kernels.numbers.decimal_halves import (
    array_of_column,
    halves_of,
    integers_of,
    validity_of,
)
from flinkpy.columns.sql.sql_kernels.numbers.decimal_kernels import ColumnKernel, aligned
from flinkpy.common.logical_types.logical_type import (
    DecimalType,
    LogicalType,
    NullType,
    RowType,
    TypeFamily,
)

DOUBLE = pa.float64()
_MOST_WIDE = 76
_ARROW: dict[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def is_nested(kind: LogicalType) -> bool:
    """Whether values have parts, which Arrow does not compare."""
    return bool(kind.children) or isinstance(kind, RowType)


def comparison(sign: str) -> KernelOf:
    """``= <> < <= > >=`` of any two types that SQL compares."""

    def choose(site: CallSite) -> Kernel:
        left, right = site.arguments
        if any(isinstance(each, NullType) for each in site.arguments):
            return lambda rows, *operands: pa.nulls(rows, BOOL)
        if any(each.is_a(TypeFamily.APPROXIMATE_NUMERIC) for each in site.arguments):
            return _of_floats(sign)
        if any(isinstance(each, DecimalType) for each in site.arguments):
            return _of_decimals(sign, left, right)
        if is_nested(left) or is_nested(right):
            return by_value(sign)(site)
        compare = _ARROW[sign]
        return lambda rows, one, other: column_of(compare(one, other), rows)

    return choose


def _of_floats(sign: str) -> Kernel:
    compare = _ARROW[sign]

    def kernel(rows: int, left: Any, right: Any) -> Any:
        kind = left.type if left.type.equals(right.type) else DOUBLE
        left, right = as_floats(left, kind), as_floats(right, kind)
        found = column_of(compare(left, right), rows)
        if sign in ("<", ">"):
            return found
        is_nan = _both_nan(left, right)
        if is_nan is None:
            return found
        is_nan = column_of(is_nan, rows)
        if sign == "<>":
            return pc.and_not(found, is_nan)
        return pc.or_(found, is_nan)

    return kernel


def _both_nan(left: Any, right: Any) -> Any:
    """Where both are NaN; None: nowhere."""
    nans = []
    for each in sorted((left, right), key=lambda one: isinstance(one, pa.Array)):
        is_nan = pc.is_nan(each)
        there = is_nan.as_py() if isinstance(is_nan, pa.Scalar) else is_nan.true_count
        if not there:
            return None
        nans.append(is_nan)
    return pc.and_(*nans)


def _of_decimals(sign: str, left: LogicalType, right: LogicalType) -> Kernel:
    """Compared in 64 bits if all values of the batch fit, else in 256."""
    compare = _ARROW[sign]

    def compute(rows: int, one: Any, other: Any) -> Any:
        if any(isinstance(each, pa.Scalar) and not each.is_valid for each in (one, other)):
            return pa.nulls(rows, BOOL)
        halves = halves_of(one, left), halves_of(other, right)
        pair = None if halves[0] is None or halves[1] is None else aligned(halves[0], halves[1])
        if pair is None:
            wide = _in_256(array_of_column(one), array_of_column(other))
            return column_of(compare(*wide), rows)
        integers = [integers_of(each, validity_of([of])) for each, of in zip(pair, (one, other))]
        return column_of(compare(*integers), rows)

    return ColumnKernel(compute)


def _in_256(*operands: Any) -> list[Any]:
    decimals = [
        each.cast(pa.decimal128(19, 0)) if pa.types.is_integer(each.type) else each
        for each in operands
    ]
    scale = max(each.type.scale for each in decimals)
    return [each.cast(pa.decimal256(_MOST_WIDE, scale)) for each in decimals]


def _distinct(is_distinct: bool) -> KernelOf:
    """IS [NOT] DISTINCT FROM: null equals null."""

    def choose(site: CallSite) -> Kernel:
        if any(isinstance(each, NullType) for each in site.arguments):
            return lambda rows, left, right: _both_null(rows, left, right, is_distinct)
        compare = comparison("=")(site)

        def kernel(rows: int, left: Any, right: Any) -> Any:
            found = compare(rows, left, right)
            if found.null_count:
                both = pc.and_(column_of(pc.is_null(left), rows), pc.is_null(right))
                found = pc.if_else(found.is_valid(), found, both)
            return pc.invert(found) if is_distinct else found

        return kernel

    return choose


def _both_null(rows: int, left: Any, right: Any, is_distinct: bool) -> Any:
    found = pc.equal(column_of(pc.is_null(left), rows), pc.is_null(right))
    return pc.invert(found) if is_distinct else found


def _between(site: CallSite) -> Kernel:
    value, low, high = site.arguments
    reaches = comparison("<=")(CallSite((low, value), site.result))
    stays = comparison("<=")(CallSite((value, high), site.result))
    if not site.options.get("symmetric"):
        return lambda rows, each, least, most: pc.and_kleene(
            reaches(rows, least, each), stays(rows, each, most)
        )
    reaches_high = comparison("<=")(CallSite((high, value), site.result))
    stays_low = comparison("<=")(CallSite((value, low), site.result))

    def kernel(rows: int, each: Any, least: Any, most: Any) -> Any:
        found = pc.and_kleene(reaches(rows, least, each), stays(rows, each, most))
        swapped = pc.and_kleene(reaches_high(rows, most, each), stays_low(rows, each, least))
        return pc.or_kleene(found, swapped)

    return kernel


def _is_in(site: CallSite) -> Kernel:
    """A look-up in a set if all choices are constants of the value's type."""
    value = site.arguments[0]
    choices = site.constants[1:]
    is_constant = len(choices) == len(site.arguments) - 1 and VARYING not in choices
    same_type = all(arrow_of(each) in (arrow_of(value), pa.null()) for each in site.arguments[1:])
    if not (is_constant and same_type) or is_nested(value) or isinstance(value, NullType):
        return _any_equal(site)
    known = [each for each in choices if each is not None]
    has_null = len(known) < len(choices)
    has_nan = any(each != each for each in known)
    if value.is_a(TypeFamily.APPROXIMATE_NUMERIC) and 0.0 in known:
        known += [0.0, -0.0]  # Arrow compares bits
    wanted = array_of_values(known, value)

    def kernel(rows: int, operand: Any, *_: Any) -> Any:
        found = pc.is_in(operand, value_set=wanted)
        if has_nan:
            found = pc.or_(found, pc.fill_null(pc.is_nan(operand), False))
        found = column_of(found, rows)
        if has_null:
            found = pc.if_else(found, found, pa.scalar(None, BOOL))
        missing = column_of(pc.is_null(operand), rows)
        return pc.if_else(missing, pa.scalar(None, BOOL), found)

    return kernel


def _any_equal(site: CallSite) -> Kernel:
    value = site.arguments[0]
    compares = [
        comparison("=")(CallSite((value, each), site.result)) for each in site.arguments[1:]
    ]

    def kernel(rows: int, operand: Any, *choices: Any) -> Any:
        found = [each(rows, operand, choice) for each, choice in zip(compares, choices)]
        return functools.reduce(pc.or_kleene, found)

    return kernel


def _best(sign: str) -> KernelOf:
    """GREATEST and LEAST: null if one is null; of equal values the first."""

    def choose(site: CallSite) -> Kernel:
        name = "GREATEST" if sign == ">" else "LEAST"
        kind = arrow_of(site.result)
        alike = all(arrow_of(each).equals(kind) for each in site.arguments)
        if not alike or is_nested(site.result) or isinstance(site.result, NullType):
            return by_value(name)(site)
        compare: Kernel
        if pa.types.is_floating(kind):
            compare = functools.partial(_comes_before, is_after=sign == ">")
        else:
            compare = comparison(sign)(CallSite((site.result, site.result), site.result))

        def kernel(rows: int, *operands: Any) -> Any:
            found = column_of(operands[0], rows)
            for each in operands[1:]:
                found = pc.if_else(compare(rows, each, found), each, found)
            return found

        return kernel

    return choose


def _comes_before(rows: int, left: Any, right: Any, *, is_after: bool) -> Any:
    """Where the left float stands before the right one in order, or after it: NaN comes behind all
    numbers, and -0.0 before 0.0."""
    one, other = column_of(left, rows), column_of(right, rows)
    places = _places(one), _places(other)
    found = places[0] > places[1] if is_after else places[0] < places[1]
    missing = pc.or_(one.is_null(), other.is_null()).to_numpy(zero_copy_only=False)
    return pa.array(found, mask=missing)


def _places(column: Any) -> Any:
    """Integers in the order of these floats: their bits, turned round below zero."""
    values = column.to_numpy(zero_copy_only=False)
    values = np.where(np.isnan(values), np.nan, values).astype(values.dtype)
    bits = values.view(np.int64 if values.dtype.itemsize == 8 else np.int32)
    return np.where(bits < 0, np.bitwise_xor(bits, np.iinfo(bits.dtype).max), bits)


COMPARISON_KERNELS: dict[str, KernelOf] = {
    **{sign: comparison(sign) for sign in _ARROW},
    "IS DISTINCT FROM": _distinct(True),
    "IS NOT DISTINCT FROM": _distinct(False),
    "BETWEEN": _between,
    "NOT BETWEEN": inverted(_between),
    "IN": _is_in,
    "NOT IN": inverted(_is_in),
    "GREATEST": _best(">"),
    "LEAST": _best("<"),
}
