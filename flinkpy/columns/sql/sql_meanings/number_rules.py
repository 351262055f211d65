"""How numbers of a type behave: integers wrap round, decimals that do not fit are null, floats are
those of Java."""

from __future__ import annotations

import math
import struct
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

from flinkpy.common.logical_types.logical_type import DecimalType

DIVISION_BY_ZERO = "division by zero"
# Every sum, product and shift of decimals of 38 digits is exact in so many
EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
_QUOTIENT = Context(prec=38, rounding=ROUND_HALF_UP)


def wrapped(value: int, bits: int) -> int:
    """The integer in this many bits with a sign.

    >>> wrapped(128, 8)
    -128
    """
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def single(value: float) -> float:
    """The nearest float of 32 bits."""
    try:
        found: float = struct.unpack("f", struct.pack("f", value))[0]
        return found
    except OverflowError:
        return math.copysign(math.inf, value)


def fitted(value: Decimal, type: DecimalType, rounding: str = ROUND_HALF_UP) -> Decimal | None:
    """The value with the type's digits; null if it has too many before the point."""
    found = value.quantize(Decimal(1).scaleb(-type.scale), rounding, EXACT)
    if found.copy_abs() >= Decimal(10) ** (type.precision - type.scale):
        return None
    return found if found else found.copy_abs()  # decimals have no negative zero


def quotient(left: Decimal, right: Decimal) -> Decimal:
    """As Flink divides: 38 digits, halves away from zero."""
    if not right:
        raise ZeroDivisionError(DIVISION_BY_ZERO)
    return _QUOTIENT.divide(left, right)


def remainder(left: Decimal, right: Decimal) -> Decimal:
    """With the sign of the dividend."""
    if not right:
        raise ZeroDivisionError(DIVISION_BY_ZERO)
    return EXACT.remainder(left, right)


def towards_zero(left: int, right: int) -> int:
    """The whole part of a quotient."""
    if right == 0:
        raise ZeroDivisionError(DIVISION_BY_ZERO)
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def whole_remainder(left: int, right: int) -> int:
    """With the sign of the dividend."""
    if right == 0:
        raise ZeroDivisionError(DIVISION_BY_ZERO)
    found = abs(left) % abs(right)
    return -found if left < 0 else found


def float_quotient(left: float, right: float) -> float:
    """As IEEE 754 has it, also by zero."""
    if right:
        return left / right
    if not left or left != left or right != right:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def rounded_to(value: Decimal, places: int, rounding: str) -> Decimal:
    """The value with so many digits behind the point; a negative number: before it."""
    if places >= -value.as_tuple().exponent:  # type: ignore[operator]
        return value
    with localcontext(EXACT):
        if places < -EXACT.prec // 2:
            return Decimal(0)
        found = value.scaleb(places).quantize(Decimal(1), rounding)
        return found.scaleb(-places)


CUT, HALF_UP = ROUND_DOWN, ROUND_HALF_UP


def as_decimal(value: Any) -> Decimal:
    """An integer or a decimal as a decimal."""
    return value if isinstance(value, Decimal) else Decimal(value)
