"""Functions of numbers over whole columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.call_site import CallSite, Kernel, KernelOf
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_kernels.logic_kernels import column_of
from flinkpy.columns.sql.sql_kernels.moment_kernels import to_unit
from flinkpy.columns.sql.sql_kernels.numbers.arithmetic_kernels import floating
from flinkpy.columns.sql.sql_kernels.numbers.decimal_halves import (
    Halves,
    array_of_column,
    decimals_of,
    halves_of,
    rounded_quotient,
)
from flinkpy.columns.sql.sql_kernels.numbers.decimal_kernels import ColumnKernel
from flinkpy.common.logical_types.logical_type import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    TypeFamily,
)

DOUBLE = pa.float64()


def _floating(function: Callable[..., Any]) -> KernelOf:
    return lambda site: floating(function, DoubleType())


def _hyperbolic(name: str) -> KernelOf:
    """Older releases of Arrow have no hyperbolic functions."""
    function = getattr(pc, name.lower(), None)
    return by_value(name) if function is None else _floating(function)


def _power(base: Any, exponent: Any) -> Any:
    found = pc.power(base, exponent)
    # Java gives NaN where C gives 1: for an exponent that is NaN, and for 1 raised to infinity
    is_infinite = pc.and_(pc.equal(pc.abs(base), 1.0), pc.is_inf(exponent))
    return pc.if_else(pc.or_(pc.is_nan(exponent), is_infinite), math.nan, found)


def _log2(value: Any) -> Any:
    return pc.divide(pc.ln(value), math.log(2.0))


def _log(*values: Any) -> Any:
    if len(values) == 1:
        return pc.ln(values[0])
    return pc.divide(pc.ln(values[1]), pc.ln(values[0]))


def _cotangent(value: Any) -> Any:
    return pc.divide(1.0, pc.tan(value))


def _multiplied(factor: float) -> Callable[[Any], Any]:
    return lambda value: pc.multiply(value, factor)


def _to_whole(name: str, function: Callable[[Any], Any]) -> KernelOf:
    """CEIL and FLOOR of numbers."""

    def choose(site: CallSite) -> Kernel:
        if "unit" in site.options:
            return to_unit(name)(site)
        if isinstance(site.result, (FloatType, DoubleType)):
            return floating(function, site.result)
        if isinstance(site.result, IntegerType):
            return lambda rows, value: column_of(value, rows)
        if isinstance(site.result, DecimalType) and isinstance(site.arguments[0], DecimalType):
            return _of_decimals(by_value(name)(site), site, _WHOLE[name])
        return by_value(name)(site)

    return choose


def _round(name: str) -> KernelOf:
    """ROUND and TRUNCATE: of decimals to a constant place behind the point in 64 bits."""

    def choose(site: CallSite) -> Kernel:
        slow = by_value(name)(site)
        source, result = site.arguments[0], site.result
        places = site.constant(1) if len(site.arguments) == 2 else 0
        if not isinstance(source, DecimalType) or not isinstance(result, DecimalType):
            return slow
        if not isinstance(places, int) or places != result.scale or places > source.scale:
            return slow
        return _of_decimals(slow, site, _WHOLE[name])

    return choose


def _of_decimals(slow: Kernel, site: CallSite, divide: Callable[[Any, int], Any]) -> Kernel:
    """Digits that are taken off the end, if 64 bits hold all of them."""
    source, kind = site.arguments[0], site.result
    assert isinstance(source, DecimalType)
    assert isinstance(kind, DecimalType)
    unit = 10 ** (source.scale - kind.scale)

    def compute(rows: int, value: Any, *places: Any) -> Any:
        is_column = not isinstance(value, pa.Scalar)
        halves = halves_of(value, source) if is_column and unit < 1 << 62 else None
        if halves is None or not rows:
            return slow(rows, array_of_column(value), *places)
        values = divide(np.asarray(halves.values), unit) if unit > 1 else halves.values
        return decimals_of(Halves(values, kind.scale, halves.reach // unit + 1), kind, [value])

    return ColumnKernel(compute)


def _cut(values: Any, unit: int) -> Any:
    sizes = np.abs(values) // unit
    return np.where(values < 0, -sizes, sizes)


_WHOLE: dict[str, Callable[[Any, int], Any]] = {
    "FLOOR": lambda values, unit: values // unit,
    "CEIL": lambda values, unit: -(-values // unit),
    "ROUND": rounded_quotient,
    "TRUNCATE": _cut,
}


def _sign(site: CallSite) -> Kernel:
    if not site.result.is_a(TypeFamily.APPROXIMATE_NUMERIC):
        return by_value("SIGN")(site)

    def kernel(rows: int, value: Any) -> Any:
        value = column_of(value, rows)
        is_zero = pc.equal(value, 0)  # keeps its sign
        return pc.if_else(is_zero, value, pc.sign(value))

    return kernel


def _rand(site: CallSite) -> Kernel:
    if site.arguments:
        return by_value("RAND")(site)
    generator = np.random.default_rng()
    return lambda rows: pa.array(generator.random(rows))


def _constant(value: float) -> KernelOf:
    return lambda site: lambda rows: pa.repeat(pa.scalar(value), rows)


_BY_VALUE = ("BIN", "HEX", "UNHEX", "RAND_INTEGER", "UUID")

NUMBER_KERNELS: dict[str, KernelOf] = {
    "POWER": _floating(_power),
    "SQRT": _floating(pc.sqrt),
    "LN": _floating(pc.ln),
    "LOG": _floating(_log),
    "LOG2": _floating(_log2),
    "LOG10": _floating(pc.log10),
    "EXP": _floating(pc.exp),
    "SIN": _floating(pc.sin),
    "SINH": _hyperbolic("SINH"),
    "COS": _floating(pc.cos),
    "COSH": _hyperbolic("COSH"),
    "TAN": _floating(pc.tan),
    "TANH": _hyperbolic("TANH"),
    "COT": _floating(_cotangent),
    "ASIN": _floating(pc.asin),
    "ACOS": _floating(pc.acos),
    "ATAN": _floating(pc.atan),
    "ATAN2": _floating(pc.atan2),
    "DEGREES": _floating(_multiplied(180.0 / math.pi)),
    "RADIANS": _floating(_multiplied(math.pi / 180.0)),
    "PI": _constant(math.pi),
    "E": _constant(math.e),
    "CEIL": _to_whole("CEIL", pc.ceil),
    "FLOOR": _to_whole("FLOOR", pc.floor),
    "ROUND": _round("ROUND"),
    "TRUNCATE": _round("TRUNCATE"),
    "SIGN": _sign,
    "RAND": _rand,
    **{name: by_value(name) for name in _BY_VALUE},
}
