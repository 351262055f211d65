"""Arithmetic of decimals whose exact result has more digits than Arrow's types, with Flink's rules
for the digits of the result."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from flinkpy.columns.kernels.operand_types import Types, digits_of

_EXACT = decimal.Context(prec=200, rounding=decimal.ROUND_HALF_UP)
_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": _EXACT.add,
    "-": _EXACT.subtract,
    "*": _EXACT.multiply,
}
_MOST = 38  # digits, as in Flink
_KEPT_BEHIND = 6  # this many digits after the point are kept even if the result then overflows


def capped(operation: str, types: Types) -> Callable[[Any, Any], Any] | None:
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
    unit = decimal.Decimal(1).scaleb(-scale)
    operate = _OPERATIONS[operation]

    def result(one: Any, other: Any) -> Any:
        if one is None or other is None:
            return None
        return operate(decimal.Decimal(one), decimal.Decimal(other)).quantize(unit, context=_EXACT)

    def kernel(left: Any, right: Any) -> Any:
        length = len(right) if isinstance(left, pa.Scalar) else len(left)
        return pa.array(map(result, _listed(left, length), _listed(right, length)), kind)

    return kernel


def _listed(values: Any, length: int) -> list[Any]:
    return [values.as_py()] * length if isinstance(values, pa.Scalar) else values.to_pylist()


def with_room(kernel: Callable[[Any], Any], kind: Any) -> Callable[[Any], Any]:
    """A kernel that rounds, with a wider type. The result may need one digit more than the operand,
    and Arrow's kernels return 0 if the type does not have it."""
    room = pa.decimal128 if kind.precision < _MOST else pa.decimal256
    wider = room(min(kind.precision + 1, 76), kind.scale)
    if kind.precision == _MOST:  # a result that fits into 38 digits keeps the type
        return lambda values: kernel(values.cast(wider)).cast(kind)
    return lambda values: kernel(values.cast(wider))
