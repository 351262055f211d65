"""Arithmetic of decimals whose exact result may have more digits than Arrow's types, with Flink's
rules for the digits of the result.

The values of a batch usually have far fewer digits than their type allows. Where the largest ones
prove that 38 digits are enough, Arrow computes in 128 bits; otherwise in 256 bits, which hold every
exact result."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.kernels.operand_types import Types, digits_of

_MOST = 38  # digits, as in Flink
_MOST_WIDE = 76
_KEPT_BEHIND = 6  # this many digits after the point are kept even if the result then overflows
Binary = Callable[[Any, Any], Any]


def capped(operation: str, types: Types) -> Binary | None:
    """The kernel, if the exact result could have more than 38 digits; None if Arrow's own kernel
    will do. As in Flink the result then has 38 digits: digits after the point are rounded away
    first, but six of them are kept, and a result that does not fit is an error."""
    if any(pa.types.is_decimal256(kind) for kind in types):
        return None
    (before, behind), (other_before, other_behind) = map(digits_of, types)
    if operation == "*":
        scale = behind + other_behind
        digits = before + other_before + scale
        if digits < _MOST:  # Arrow needs one more
            return None
    else:
        scale = max(behind, other_behind)
        digits = max(before, other_before) + scale + 1
        if digits <= _MOST:
            return None
    scale = scale if digits <= _MOST else max(_MOST - (digits - scale), min(scale, _KEPT_BEHIND))
    kind = pa.decimal128(_MOST, scale)
    exact = _product if operation == "*" else _sum(pc.add if operation == "+" else pc.subtract)

    def kernel(left: Any, right: Any) -> Any:
        return rescaled(exact(_decimals(left), _decimals(right)), kind)

    return kernel


def rescaled(values: pa.Array, kind: pa.DataType) -> Any:
    """The decimals in another type, with halves rounded away from zero. Raises ArrowInvalid if one
    does not fit."""
    fewer = values.type.scale - kind.scale
    if fewer > 0:
        if _digits(values) > kind.precision + fewer:
            raise pa.ArrowInvalid(f"a result has more digits than {kind}")
        values = rounded(with_type(values, _widest(values.type, values.type.scale)), kind.scale)
    return values.cast(kind)


def rounded(values: Any, scale: int) -> Any:
    """Decimals with fewer digits behind the point, halves away from zero. Arrow rounds 256 bits
    wrongly where a long row of nines carries: there a half is added, and the rest cut off."""
    kind = values.type
    if not pa.types.is_decimal256(kind):
        return pc.round(values, ndigits=scale, round_mode="half_towards_infinity")
    digits = pa.decimal256(75, 0)  # their unit does not matter, and a type with 76 has no room
    values = with_type(values, digits)
    half = pa.scalar(decimal.Decimal(5).scaleb(kind.scale - scale - 1), digits)
    is_negative = pc.less(values, pa.scalar(decimal.Decimal(0), digits))
    moved = pc.if_else(is_negative, pc.subtract(values, half), pc.add(values, half))
    moved = with_type(moved, pa.decimal256(76, kind.scale))
    cut = pc.CastOptions(target_type=pa.decimal256(76, scale), allow_decimal_truncate=True)
    return pc.cast(moved, options=cut)


def _product(left: Any, right: Any) -> Any:
    digits, other_digits = _digits(left), _digits(right)
    if digits + other_digits < _MOST:
        return pc.multiply(
            with_type(left, pa.decimal128(digits, left.type.scale)),
            with_type(right, pa.decimal128(other_digits, right.type.scale)),
        )
    left, right = (
        each.cast(pa.decimal256(each.type.precision, each.type.scale)) for each in (left, right)
    )
    if left.type.precision + right.type.precision == _MOST_WIDE:  # Arrow needs one more
        left = with_type(left, pa.decimal256(_MOST - 1, left.type.scale))
    return pc.multiply(left, right)


def _sum(operate: Binary) -> Binary:
    def kernel(left: Any, right: Any) -> Any:
        scale = max(left.type.scale, right.type.scale)
        digits = max(_digits(each) + scale - each.type.scale for each in (left, right))
        if digits < _MOST:
            narrow = [
                with_type(each, pa.decimal128(_digits(each), each.type.scale))
                for each in (left, right)
            ]
            return operate(*narrow)
        # As one more digit than 76 is never needed, the type of the operands has one less
        wide = [
            with_type(
                each.cast(pa.decimal256(_MOST_WIDE, scale)), pa.decimal256(_MOST_WIDE - 1, scale)
            )
            for each in (left, right)
        ]
        return operate(*wide)

    return kernel


def _widest(kind: pa.DataType, scale: int) -> Any:
    """The type of most digits that has the same number of bits."""
    return (
        pa.decimal256(_MOST_WIDE, scale)
        if pa.types.is_decimal256(kind)
        else pa.decimal128(_MOST, scale)
    )


def _decimals(values: pa.Array) -> Any:
    """Decimals of 128 bits: as they are, or made of integers or shorter decimals."""
    kind = values.type
    if pa.types.is_decimal128(kind):
        return values
    before, behind = digits_of(kind)
    return values.cast(pa.decimal128(before + behind, behind))


def _digits(values: pa.Array) -> int:
    """The number of digits of the longest value, without the point; at least 1."""
    if isinstance(values, pa.Scalar):
        values = pa.array([values], values.type)
    ends = pc.min_max(with_type(values, _widest(values.type, 0))).as_py().values()
    return max(1 if end is None else len(end.as_tuple().digits) for end in ends)


def with_type(values: pa.Array, kind: pa.DataType) -> Any:
    """The same digits under another precision or scale. Nothing is checked or copied."""
    if isinstance(values, pa.Scalar):
        return with_type(pa.array([values], values.type), kind)[0]
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([with_type(chunk, kind) for chunk in values.chunks], kind)
    return pa.Array.from_buffers(
        kind, len(values), values.buffers(), values.null_count, values.offset
    )


def with_room(kernel: Callable[[Any], Any], kind: pa.DataType) -> Callable[[Any], Any]:
    """A kernel that rounds, with a wider type. The result may need one digit more than the operand,
    and Arrow's kernels return 0 if the type does not have it."""
    room = pa.decimal128 if kind.precision < _MOST else pa.decimal256
    wider = room(min(kind.precision + 1, 76), kind.scale)
    if kind.precision == _MOST:  # a result that fits into 38 digits keeps the type
        return lambda values: kernel(values.cast(wider)).cast(kind)
    return lambda values: kernel(values.cast(wider))
