"""Kernels for arithmetic and rounding."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.kernels.decimals import capped, with_room
from flinkpy.columns.kernels.moments import date_plus
from flinkpy.columns.kernels.operand_types import (
    FLOAT,
    INT,
    Kernel,
    Types,
    common_number,
    is_text,
    wide,
    with_casts,
)
from flinkpy.columns.kernels.text import concat
from flinkpy.columns.rowwise import round_one

_EXACT_PLACES = 10  # from 11 on Arrow gives other floats than the nearest


def arithmetic(operation: str, checked: Kernel, floating: Kernel) -> Callable[[Types], Kernel]:
    def choose(types: Types) -> Kernel:
        wanted = common_number(types)
        if pa.types.is_decimal(wanted):
            return (
                checked
                if any(map(pa.types.is_null, types))
                else capped(operation, types) or checked
            )
        return with_casts(floating if wanted == FLOAT else checked, types, wanted)

    return choose


def plus(types: Types) -> Kernel:
    if all(is_text(kind) or pa.types.is_null(kind) for kind in types) and any(map(is_text, types)):
        return concat(types)
    if any(pa.types.is_temporal(kind) for kind in types):
        return (
            date_plus(types, 1)
            if _is_date_and_interval(types)
            else _with_interval(pc.add_checked, types)
        )
    return arithmetic("+", pc.add_checked, pc.add)(types)


def _is_date_and_interval(types: Types) -> bool:
    return any(map(pa.types.is_date, types)) and any(map(pa.types.is_duration, types))


def _with_interval(kernel: Kernel, types: Types) -> Kernel:
    """Raises TypeError for what is neither an interval nor the distance of two moments, where Arrow
    would name its function."""
    try:
        kernel(*(pa.array([], kind) for kind in types))
    except pa.ArrowNotImplementedError:
        raise TypeError(
            'a date or timestamp takes an interval, such as lit(1).day or col("n").hours'
        ) from None
    return kernel


def minus(types: Types) -> Kernel:
    if any(pa.types.is_temporal(kind) for kind in types):
        return (
            date_plus(types, -1)
            if _is_date_and_interval(types)
            else _with_interval(pc.subtract_checked, types)
        )
    return arithmetic("-", pc.subtract_checked, pc.subtract)(types)


def divide(types: Types) -> Kernel:
    for kind in types:
        wide(kind)
    return with_casts(pc.divide, types, FLOAT)


def power(types: Types) -> Kernel:
    for kind in types:
        wide(kind)
    return with_casts(pc.power, types, FLOAT)


def modulo(types: Types) -> Kernel:
    """Computed by numpy: its remainder has the divisor's sign, and it divides by a constant with a
    multiplication."""
    wanted = common_number(types)
    if pa.types.is_decimal(wanted):
        raise TypeError("% of decimals is not there; cast them to DOUBLE")
    return with_casts(_integer_modulo if wanted == INT else _float_modulo, types, wanted)


def floor_divide(types: Types) -> Kernel:
    wanted = common_number(types)
    if pa.types.is_decimal(wanted):
        raise TypeError("// of decimals is not there; cast them to DOUBLE")
    return with_casts(_integer_floor if wanted == INT else _float_floor, types, wanted)


def _integer_floor(left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar) -> Any:
    """Rounds towards minus infinity, as Python does. Raises ZeroDivisionError and OverflowError."""
    left, right = _arrays(left, right)
    missing = pc.or_(left.is_null(), right.is_null())
    values = _numpy(pc.if_else(missing, 0, left), 0)
    divisors = _numpy(pc.if_else(missing, 1, right), 1)
    if not divisors.all():
        raise ZeroDivisionError("integer division by zero")
    if ((values == np.iinfo(np.int64).min) & (divisors == -1)).any():
        raise OverflowError("integer overflow")
    return _masked(values // divisors, missing)


def _float_floor(left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar) -> Any:
    left, right = _arrays(left, right)
    missing = pc.or_(left.is_null(), right.is_null())
    with np.errstate(all="ignore"):
        found = np.floor_divide(_numpy(left, 0.0), _numpy(right, 1.0))
    return _masked(found, missing)


def _arrays(left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar) -> tuple[Any, Any]:
    length = len(right) if isinstance(left, pa.Scalar) else len(left)
    one, other = (
        pa.repeat(each, length) if isinstance(each, pa.Scalar) else each for each in (left, right)
    )
    return one, other


def _integer_modulo(left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar) -> Any:
    if isinstance(right, pa.Scalar):
        divisor, missing = right.as_py(), left.is_null() if left.null_count else None
        if divisor is None:
            return pa.nulls(len(left), INT)
        if divisor == 0:
            if left.null_count == len(left):
                return pa.nulls(len(left), INT)
            raise ZeroDivisionError("integer modulo by zero")
        values = _numpy(left, 0)
        return _masked(
            values - values // divisor * divisor
            if divisor not in (-1, 1)
            else np.zeros_like(values),
            missing,
        )
    length, missing = len(right), pc.is_null(pc.add(left, right))
    values = (left.as_py() or 0) if isinstance(left, pa.Scalar) else _numpy(left, 0)
    divisors = _numpy(pc.if_else(missing, 1, right), 1)
    if not divisors.all():
        raise ZeroDivisionError("integer modulo by zero")
    with np.errstate(over="ignore"):
        return _masked(np.broadcast_to(np.remainder(values, divisors), length), missing)


def _float_modulo(left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar) -> Any:
    length = len(right) if isinstance(left, pa.Scalar) else len(left)
    missing = pc.is_null(pc.add(left, right))
    values, divisors = [
        _none_to_nan(each.as_py()) if isinstance(each, pa.Scalar) else _numpy(each, float("nan"))
        for each in (left, right)
    ]
    with np.errstate(all="ignore"):
        result = np.broadcast_to(np.remainder(values, divisors), length)
    return _masked(
        result, pa.repeat(missing, length) if isinstance(missing, pa.Scalar) else missing
    )


def _none_to_nan(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _numpy(values: pa.Array | pa.Scalar, instead_of_null: Any) -> Any:
    return (values.fill_null(instead_of_null) if values.null_count else values).to_numpy()


def _masked(values: pa.Array | pa.Scalar, missing: Any) -> Any:
    """The numpy array as an Arrow array, null where ``missing``."""
    array = pa.array(values)
    return array if missing is None else pc.if_else(missing, pa.scalar(None, array.type), array)


def of_number(checked: Kernel, floating: Kernel) -> Callable[[Types], Kernel]:
    def choose(types: Types) -> Kernel:
        wanted = common_number(types)
        return with_casts(floating if wanted == FLOAT else checked, types, wanted)

    return choose


def of_float(kernel: Kernel) -> Callable[[Types], Kernel]:
    def choose(types: Types) -> Kernel:
        wide(types[0])
        return with_casts(kernel, types, FLOAT)

    return choose


def sign(types: Types) -> Kernel:
    wanted = common_number([*types, INT])  # a decimal has room for 1
    return with_casts(lambda values: pc.sign(values).cast(wanted), types, wanted)


def to_whole(kernel: Kernel) -> Callable[[Types], Kernel]:
    """floor and ceil; integers stay as they are."""

    def choose(types: Types) -> Kernel:
        if pa.types.is_temporal(types[0]):
            raise TypeError('of a date or a time it needs a unit, such as "day"')
        wanted = wide(types[0])
        if pa.types.is_decimal(wanted):
            return with_room(kernel, wanted)
        return with_casts((lambda values: values) if wanted == INT else kernel, types, wanted)

    return choose


def round_to(types: Types, places: int) -> Kernel:
    wanted = wide(types[0])
    if pa.types.is_decimal(wanted):
        if -places > wanted.precision - wanted.scale:  # less than half of the unit
            return _nothing_left
        return with_room(lambda values: _round(values, places), wanted)
    if wanted == INT and places >= 0:
        return with_casts(lambda values: values, types, INT)
    return with_casts(lambda values: _round_number(values, places), types, wanted)


def _round(values: pa.Array | pa.Scalar, places: int) -> Any:
    return pc.round(values, ndigits=places, round_mode="half_towards_infinity")


def _nothing_left(values: pa.Array | pa.Scalar) -> Any:
    return pc.if_else(
        values.is_valid(), pa.scalar(decimal.Decimal(0), values.type), pa.scalar(None, values.type)
    )


def _round_number(values: pa.Array | pa.Scalar, places: int) -> Any:
    """One by one where Arrow refuses what leaves 64 bits on the way, or has no exact power of
    ten."""
    if abs(places) <= _EXACT_PLACES:
        try:
            return _round(values, places)
        except pa.ArrowInvalid:
            pass
    return pa.array(
        [None if value is None else round_one(value, places) for value in values.to_pylist()],
        values.type,
    )
