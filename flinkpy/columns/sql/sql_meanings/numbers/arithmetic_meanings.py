"""Arithmetic: in the type of the result, with Flink's rules for what does not fit."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flinkpy.columns.sql.call_site import CallSite, Meaning, MeaningOf
from flinkpy.columns.sql.sql_meanings.moments.temporal_arithmetic import temporal_arithmetic
from flinkpy.columns.sql.sql_meanings.null_rules import strict
from flinkpy.columns.sql.sql_meanings.number_rules import (
    EXACT,
    as_decimal,
    fitted,
    float_quotient,
    quotient,
    remainder,
    single,
    towards_zero,
    whole_remainder,
    wrapped,
)
from flinkpy.common.logical_types.logical_type import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
)


@dataclass(frozen=True)
class Operation:
    """An operation of arithmetic for each kind of number."""

    sign: str
    of_integers: Callable[..., int]
    of_floats: Callable[..., float]
    of_decimals: Callable[..., Any]


def arithmetic(operation: Operation) -> MeaningOf:
    """The operation in the type of the result."""

    def choose(site: CallSite) -> Meaning:
        result = site.result
        if isinstance(result, IntegerType):
            bits = result.bits
            return strict(lambda *values: wrapped(operation.of_integers(*values), bits))
        if isinstance(result, DoubleType):
            return strict(lambda *values: operation.of_floats(*map(float, values)))
        if isinstance(result, FloatType):
            return strict(lambda *values: single(operation.of_floats(*map(single, values))))
        if isinstance(result, DecimalType):
            kind = result
            return strict(
                lambda *values: fitted(operation.of_decimals(*map(as_decimal, values)), kind)
            )
        return temporal_arithmetic(operation.sign, site)

    return choose


def _float_remainder(left: float, right: float) -> float:
    if not right or math.isinf(left) or left != left or right != right:
        return math.nan
    return math.fmod(left, right)


PLUS = Operation("+", operator.add, operator.add, EXACT.add)
MINUS = Operation("-", operator.sub, operator.sub, EXACT.subtract)
TIMES = Operation("*", operator.mul, operator.mul, EXACT.multiply)
DIVIDE = Operation("/", towards_zero, float_quotient, quotient)
REMAINDER = Operation("%", whole_remainder, _float_remainder, remainder)
NEGATION = Operation("negate", operator.neg, operator.neg, EXACT.minus)
IDENTITY = Operation("identity", operator.pos, operator.pos, lambda value: value)
ABSOLUTE = Operation("abs", abs, math.fabs, lambda value: value.copy_abs())

ARITHMETIC_MEANINGS: dict[str, MeaningOf] = {
    "+": arithmetic(PLUS),
    "-": arithmetic(MINUS),
    "*": arithmetic(TIMES),
    "/": arithmetic(DIVIDE),
    "%": arithmetic(REMAINDER),
    "MOD": arithmetic(REMAINDER),
    "- (unary)": arithmetic(NEGATION),
    "+ (unary)": arithmetic(IDENTITY),
    "ABS": arithmetic(ABSOLUTE),
}
