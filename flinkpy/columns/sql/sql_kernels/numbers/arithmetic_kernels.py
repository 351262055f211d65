"""Arithmetic over whole columns, chosen by the type of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.kernels.operand_types import bring
from flinkpy.columns.sql.arrow_of_logical import arrow_of
from flinkpy.columns.sql.call_site import CallSite, Kernel, KernelOf
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_kernels.logic_kernels import column_of
from flinkpy.columns.sql.sql_kernels.numbers.decimal_kernels import decimal_kernel
from flinkpy.columns.sql.sql_kernels.numbers.integer_kernels import integer_kernel
from flinkpy.columns.sql.sql_kernels.numbers.temporal_kernels import temporal_kernel
from flinkpy.common.logical_types.logical_type import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LogicalType,
    TypeFamily,
)

_FLOAT: dict[str, Callable[..., Any]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "/": pc.divide,
    "negate": pc.negate,
    "identity": lambda values: values,
    "abs": pc.abs,
}


def _arithmetic(name: str, sign: str) -> KernelOf:
    def choose(site: CallSite) -> Kernel:
        result = site.result
        if isinstance(result, IntegerType):
            return integer_kernel(sign, site)
        if isinstance(result, (FloatType, DoubleType)) and sign in _FLOAT:
            return floating(_FLOAT[sign], result)
        if isinstance(result, DecimalType) and sign in ("+", "-", "*", "/", "%"):
            return decimal_kernel(name, site)
        if isinstance(result, DecimalType) and result == site.arguments[0].with_nullable(
            result.is_nullable
        ):
            operate = _FLOAT[sign]
            return lambda rows, value: column_of(operate(value), rows)
        if not result.is_a(TypeFamily.NUMERIC):
            return temporal_kernel(name, sign, site)
        return by_value(name)(site)

    return choose


def floating(function: Callable[..., Any], result: LogicalType) -> Kernel:
    """A function of floats, for any numbers: they are brought to the type of the result."""
    kind = arrow_of(result)

    def kernel(rows: int, *operands: Any) -> Any:
        return column_of(function(*(as_floats(each, kind) for each in operands)), rows)

    return kernel


def as_floats(operand: Any, kind: pa.DataType) -> Any:
    """Numbers as the nearest floats."""
    if operand.type.equals(kind):
        return operand
    if pa.types.is_decimal(operand.type):
        change = bring(operand.type, pa.float64())
        operand = operand if change is None else change(operand)
    return operand.cast(kind, safe=False)


ARITHMETIC_KERNELS: dict[str, KernelOf] = {
    "+": _arithmetic("+", "+"),
    "-": _arithmetic("-", "-"),
    "*": _arithmetic("*", "*"),
    "/": _arithmetic("/", "/"),
    "%": _arithmetic("%", "%"),
    "MOD": _arithmetic("%", "%"),
    "- (unary)": _arithmetic("- (unary)", "negate"),
    "+ (unary)": _arithmetic("+ (unary)", "identity"),
    "ABS": _arithmetic("ABS", "abs"),
}
