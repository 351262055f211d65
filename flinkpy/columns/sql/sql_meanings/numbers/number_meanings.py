"""Functions of numbers: rounding, roots, logarithms, angles, and texts of digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from flinkpy.columns.sql.call_site import CallSite, Meaning, MeaningOf
from flinkpy.columns.sql.sql_meanings.moments.moment_unit_meanings import rounded_to_unit
from flinkpy.columns.sql.sql_meanings.null_rules import strict, strictly
from flinkpy.columns.sql.sql_meanings.number_rules import (
    CUT,
    HALF_UP,
    as_decimal,
    fitted,
    float_quotient,
    rounded_to,
    single,
    wrapped,
)
from flinkpy.common.logical_types.logical_type import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
)


def _floating(function: Callable[..., float]) -> MeaningOf:
    """A function of floats of 64 bits. Where it is not defined it gives NaN."""

    def computed(*values: Any) -> float:
        try:
            return function(*map(float, values))
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return strictly(computed)


def power(base: float, exponent: float) -> float:
    """As in Java: NaN if the exponent is NaN, and where 1 is raised to infinity."""
    if exponent != exponent or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan
    try:
        return math.pow(base, exponent)
    except OverflowError:
        is_negative = base < 0 and exponent % 2 == 1
        return -math.inf if is_negative else math.inf
    except ValueError:
        if base == 0:  # to a negative power
            is_odd = exponent % 2 == 1
            return math.copysign(math.inf, base) if is_odd else math.inf
        return math.nan


def ln(value: float) -> float:
    """The natural logarithm; minus infinity of 0."""
    return math.log(value) if value else -math.inf


def log10(value: float) -> float:
    """The logarithm to base 10; minus infinity of 0."""
    return math.log10(value) if value else -math.inf


def log2(value: float) -> float:
    """The logarithm to base 2, as a quotient of natural ones."""
    return _ln(value) / math.log(2.0)


def log(*values: float) -> float:
    """``LOG(value)``, or ``LOG(base, value)``."""
    if len(values) == 1:
        return _ln(values[0])
    return float_quotient(_ln(values[1]), _ln(values[0]))


def _ln(value: float) -> float:
    try:
        return ln(value)
    except ValueError:
        return math.nan


def sinh(value: float) -> float:
    """The hyperbolic sine; infinite where it is too large."""
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def cotangent(value: float) -> float:
    """One by the tangent."""
    return float_quotient(1.0, math.tan(value))


# -- rounding --------------------------------------------------------------------------------------


def _to_whole(function: Callable[[Any], int]) -> MeaningOf:
    """CEIL and FLOOR of numbers."""

    def of_float(value: float) -> float:
        if value != value or math.isinf(value):
            return value
        return math.copysign(float(function(value)), value)

    def choose(site: CallSite) -> Meaning:
        result = site.result
        if "unit" in site.options:
            return rounded_to_unit(site, upwards=function is math.ceil)
        if isinstance(result, DecimalType):
            kind = result
            return strict(lambda value: fitted(Decimal(function(value)), kind))
        return strict(of_float if isinstance(result, (FloatType, DoubleType)) else lambda v: v)

    return choose


def rounding(mode: str) -> MeaningOf:
    """ROUND and TRUNCATE. A float is rounded as the shortest text that shows it."""

    def choose(site: CallSite) -> Meaning:
        result = site.result

        def of_integer(value: int, places: int = 0) -> int:
            assert isinstance(result, IntegerType)
            return wrapped(int(rounded_to(Decimal(value), min(places, 0), mode)), result.bits)

        def of_decimal(value: Any, places: int = 0) -> Decimal | None:
            assert isinstance(result, DecimalType)
            return fitted(rounded_to(as_decimal(value), places, mode), result)

        def of_float(value: float, places: int = 0) -> float:
            if value != value or math.isinf(value):
                return value
            found = float(rounded_to(Decimal(repr(value)), places, mode)) + 0.0  # no -0.0
            return single(found) if isinstance(result, FloatType) else found

        if isinstance(result, IntegerType):
            return strict(of_integer)
        return strict(of_decimal if isinstance(result, DecimalType) else of_float)

    return choose


def sign(site: CallSite) -> Meaning:
    """-1, 0 or 1 in the type of the argument; NaN and zeros of floats as they are."""
    result = site.result
    if isinstance(result, DecimalType):
        kind = result
        return strict(lambda value: fitted(Decimal((value > 0) - (value < 0)), kind))
    if isinstance(result, IntegerType):
        return strict(lambda value: (value > 0) - (value < 0))
    return strict(lambda value: math.copysign(1.0, value) if value and value == value else value)


# -- digits ----------------------------------------------------------------------------------------


def binary_text(value: int) -> str:
    """The digits to base 2; a negative number as its 64 bits."""
    return format(value % (1 << 64), "b")


def hexadecimal_text(value: Any) -> str:
    """The digits to base 16 of a number, or of the bytes of a text."""
    if isinstance(value, str):
        return value.encode().hex().upper()
    return format(value % (1 << 64), "X")


def bytes_of_hexadecimal(text: str) -> bytes | None:
    """The bytes of digits to base 16; null if there are others. Of an odd number of digits the
    first is replaced by a zero byte."""
    padding, digits = (b"\0", text[1:]) if len(text) % 2 else (b"", text)
    try:
        return padding + bytes.fromhex(digits) if digits.isalnum() or not digits else None
    except ValueError:
        return None


NUMBER_MEANINGS: dict[str, MeaningOf] = {
    "POWER": _floating(power),
    "SQRT": _floating(math.sqrt),
    "LN": _floating(ln),
    "LOG": _floating(log),
    "LOG2": _floating(log2),
    "LOG10": _floating(log10),
    "EXP": _floating(math.exp),
    "SIN": _floating(math.sin),
    "SINH": _floating(sinh),
    "COS": _floating(math.cos),
    "COSH": _floating(math.cosh),
    "TAN": _floating(math.tan),
    "TANH": _floating(math.tanh),
    "COT": _floating(cotangent),
    "ASIN": _floating(math.asin),
    "ACOS": _floating(math.acos),
    "ATAN": _floating(math.atan),
    "ATAN2": _floating(math.atan2),
    "DEGREES": _floating(math.degrees),
    "RADIANS": _floating(math.radians),
    "PI": lambda site: lambda: math.pi,
    "E": lambda site: lambda: math.e,
    "CEIL": _to_whole(math.ceil),
    "FLOOR": _to_whole(math.floor),
    "ROUND": rounding(HALF_UP),
    "TRUNCATE": rounding(CUT),
    "SIGN": sign,
    "BIN": strictly(binary_text),
    "HEX": strictly(hexadecimal_text),
    "UNHEX": strictly(bytes_of_hexadecimal),
}
