"""The types of sums, products and the like, by Flink's rules: integers keep their width, and the
digits of decimals grow. Above 38 digits the scale shrinks, so that what stands before the point is
kept; of the digits behind it six are kept at least, if there are as many."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.common.logical_types.logical_type import (
    MOST_DIGITS,
    DecimalType,
    IntegerType,
    LogicalType,
    TypeFamily,
)
from flinkpy.common.logical_types.type_merging import as_decimal, common_type

_LEAST_SCALE = 6  # of a quotient, and of what is kept when a result has too many digits


def fitted_decimal(precision: int, scale: int) -> DecimalType:
    """DECIMAL(precision, scale), or what remains of it in 38 digits.

    >>> print(fitted_decimal(39, 10))
    DECIMAL(38, 9)
    """
    if precision <= MOST_DIGITS:
        return DecimalType(precision, scale)
    left_for_scale = MOST_DIGITS - (precision - scale)
    return DecimalType(MOST_DIGITS, max(left_for_scale, min(scale, _LEAST_SCALE)))


def _added(left: DecimalType, right: DecimalType) -> DecimalType:
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return fitted_decimal(whole + scale + 1, scale)


def _multiplied(left: DecimalType, right: DecimalType) -> DecimalType:
    return fitted_decimal(left.precision + right.precision + 1, left.scale + right.scale)


def _divided(left: DecimalType, right: DecimalType) -> DecimalType:
    scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
    return fitted_decimal(left.precision - left.scale + right.scale + scale, scale)


def _remaining(left: DecimalType, right: DecimalType) -> DecimalType:
    scale = max(left.scale, right.scale)
    whole = min(left.precision - left.scale, right.precision - right.scale)
    return fitted_decimal(whole + scale, scale)


_DecimalRule = Callable[[DecimalType, DecimalType], DecimalType]
_OF_DECIMALS: dict[str, _DecimalRule] = {
    "+": _added,
    "-": _added,
    "*": _multiplied,
    "/": _divided,
    "%": _remaining,
}


def arithmetic_type(operator: str, left: LogicalType, right: LogicalType) -> LogicalType | None:
    """The type of ``left operator right`` (one of + - * / %) for two numbers; None if there is
    none: % takes exact numbers only. It may be null if one of them may be.

    >>> from flinkpy.common.logical_types.data_types import DataTypes
    >>> print(arithmetic_type("+", DataTypes.INT(), DataTypes.DECIMAL(10, 2)))
    DECIMAL(13, 2)
    """
    is_nullable = left.is_nullable or right.is_nullable
    result = _arithmetic_type(operator, left, right)
    return None if result is None else result.with_nullable(is_nullable)


def _arithmetic_type(operator: str, left: LogicalType, right: LogicalType) -> LogicalType | None:
    if not (left.is_a(TypeFamily.NUMERIC) and right.is_a(TypeFamily.NUMERIC)):
        return None
    if left.is_a(TypeFamily.EXACT_NUMERIC) and right.is_a(TypeFamily.EXACT_NUMERIC):
        if isinstance(left, IntegerType) and isinstance(right, IntegerType):
            return right if operator == "%" else common_type([left, right])
        return _OF_DECIMALS[operator](as_decimal(left), as_decimal(right))
    return None if operator == "%" else common_type([left, right])


def sum_type(argument: LogicalType) -> LogicalType:
    """The type of SUM: an integer keeps its width and wraps round, a decimal has all digits."""
    if isinstance(argument, DecimalType):
        return DecimalType(MOST_DIGITS, argument.scale, is_nullable=argument.is_nullable)
    return argument


def average_type(argument: LogicalType) -> LogicalType:
    """The type of AVG, STDDEV and VAR: an integer is cut towards zero, a decimal has six digits
    behind the point at least."""
    if isinstance(argument, DecimalType):
        scale = max(_LEAST_SCALE, argument.scale)
        return DecimalType(MOST_DIGITS, scale, is_nullable=argument.is_nullable)
    return argument


def rounded_type(argument: LogicalType, digits: int) -> LogicalType:
    """The type of ROUND and TRUNCATE to a constant number of digits behind the point.

    >>> print(rounded_type(DecimalType(10, 2), 1))
    DECIMAL(10, 1)
    """
    if not isinstance(argument, DecimalType) or digits >= argument.scale:
        return argument
    scale = max(0, digits)
    precision = min(MOST_DIGITS, argument.precision - argument.scale + 1 + scale)
    return DecimalType(precision, scale, is_nullable=argument.is_nullable)
