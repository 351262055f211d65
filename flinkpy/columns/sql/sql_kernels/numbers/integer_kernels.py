"""Integers in their own width: what is too large wraps round, a quotient is cut towards zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.arrow_of_logical import arrow_of
from flinkpy.columns.sql.call_site import CallSite, Kernel
from flinkpy.columns.sql.sql_kernels.logic_kernels import column_of
from flinkpy.columns.sql.sql_kernels.numbers.decimal_halves import validity_of, with_validity
from flinkpy.columns.sql.sql_meanings.number_rules import DIVISION_BY_ZERO

_FAST: dict[str, Callable[..., Any]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "negate": pc.negate,
    "abs": pc.abs,
}


def integer_kernel(sign: str, site: CallSite) -> Kernel:
    """The kernel of an operation whose result is an integer."""
    result = arrow_of(site.result)
    if sign == "identity":
        return lambda rows, value: column_of(wrapping(value, result), rows)
    if sign in _FAST:
        fast = _FAST[sign]

        def kernel(rows: int, *operands: Any) -> Any:
            return column_of(fast(*(wrapping(each, result) for each in operands)), rows)

        return kernel
    computed_in = max(
        (arrow_of(each) for each in site.arguments), key=lambda kind: int(kind.bit_width)
    )
    divide = _quotient if sign == "/" else _remainder

    def dividing(rows: int, left: Any, right: Any) -> Any:
        left, right = column_of(wrapping(left, computed_in), rows), wrapping(right, computed_in)
        return wrapping(column_of(_divided(divide, left, right), rows), result)

    return dividing


def wrapping(operand: Any, kind: pa.DataType) -> Any:
    """An integer in another width, as Java casts it."""
    if operand.type.equals(kind):
        return operand
    if operand.type.bit_width <= kind.bit_width or isinstance(operand, pa.Scalar):
        return operand.cast(kind, safe=False)
    numbers = np.frombuffer(operand.buffers()[1] or b"", f"i{operand.type.bit_width // 8}")
    numbers = numbers[operand.offset : operand.offset + len(operand)]
    cut = numbers.astype(f"i{kind.bit_width // 8}")
    return with_validity(kind, len(operand), cut, validity_of([operand]))


def _divided(divide: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    if isinstance(right, pa.Scalar) and not right.is_valid:
        return pa.nulls(len(left), left.type)
    try:
        return divide(left, right)
    except pa.ArrowInvalid:
        raise ZeroDivisionError(DIVISION_BY_ZERO) from None


def _quotient(left: Any, right: Any) -> Any:
    found = pc.divide(left, right)
    is_minus_one = pc.equal(right, -1)  # Arrow gives 0 for the least integer by -1
    if isinstance(right, pa.Scalar):
        return pc.negate(left) if is_minus_one.as_py() else found
    if not is_minus_one.true_count:
        return found
    return pc.if_else(is_minus_one, pc.negate(left), found)


def _remainder(left: Any, right: Any) -> Any:
    return pc.subtract(left, pc.multiply(_quotient(left, right), right))
