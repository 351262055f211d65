"""What expressions mean, one row at a time, in plain Python: the specification the kernels are held against by a property test."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from flinkpy.core.errors import ProgramError
from flinkpy.table.expression import Alias, Call, Column, Expression, Literal


def evaluate(expression: Expression, row: Mapping[str, Any]) -> Any:
    """The expression's value for a row, given as a mapping of column names to values.

    >>> from flinkpy.table.expressions import col
    >>> evaluate(col("a") * 2 + 1, {"a": 20}), evaluate(col("a") > 1, {"a": None})
    (41, None)
    """
    if isinstance(expression, Alias):
        return evaluate(expression.expression, row)
    if isinstance(expression, Column):
        return row[expression.column]
    if isinstance(expression, Literal):
        return expression.value
    if not isinstance(expression, Call):
        raise ProgramError(f"{expression!r} cannot be computed row by row")
    if expression.function == "then":  # the other branch is not computed: it may stand for what cannot be
        condition, if_true, if_false = expression.arguments
        return evaluate(if_true if evaluate(condition, row) is True else if_false, row)
    values = [evaluate(each, row) for each in expression.arguments]
    options = dict(expression.options)
    if expression.function in _WITH_NULLS:
        return _WITH_NULLS[expression.function](*values, **options)
    if any(value is None for value in values):
        return None
    return _STRICT[expression.function](*values, **options)


def _int64(value: Any) -> Any:
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise OverflowError("integer overflow")
    return value


def _divide(left: Any, right: Any) -> float:
    dividend, divisor = float(left), float(right)
    if divisor:
        return dividend / divisor
    return math.nan if dividend == 0 or math.isnan(dividend) else math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)


def _modulo(left: Any, right: Any) -> Any:
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
        return math.nan if right == 0 or math.isinf(left) else left % right
    return left % right


def _sign(value: Any) -> Any:
    return value if value != value else type(value)((value > 0) - (value < 0))


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _ln(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf if value == 0 else math.nan


def _whole(function: Callable[[float], int]) -> Callable[[Any], Any]:
    return lambda value: float(function(value)) if isinstance(value, float) and math.isfinite(value) else value


def _round(value: Any, places: int) -> Any:
    if isinstance(value, int):
        if places >= 0:
            return value
        unit = 10 ** -places
        whole = abs(value) // unit * unit
        return _int64(int(math.copysign(1, value)) * (whole + unit if abs(value) - whole >= unit / 2 else whole))
    scale = 10.0 ** abs(places)
    scaled = value * scale if places >= 0 else value / scale
    if not math.isfinite(scaled):
        return value
    floor = math.floor(scaled)
    fraction = scaled - floor
    if fraction == 0:
        return value
    nearest = float(math.floor(scaled + 0.5)) if fraction != 0.5 else math.copysign(math.ceil(abs(scaled)), scaled)
    return nearest / scale if places >= 0 else nearest * scale


def _and(left: Any, right: Any) -> Any:
    return False if left is False or right is False else None if left is None or right is None else True


def _or(left: Any, right: Any) -> Any:
    return True if left is True or right is True else None if left is None or right is None else False


def _like(text: str, pattern: str) -> bool:
    wanted = "".join({"%": ".*", "_": "."}.get(sign, re.escape(sign)) for sign in pattern)
    return re.fullmatch(wanted, text, re.DOTALL) is not None


def _cast(value: Any, to: Any) -> Any:
    target = to.name
    if target in ("BYTE", "SHORT", "INT", "LONG"):
        number = int(value)
        bits = {"BYTE": 8, "SHORT": 16, "INT": 32, "LONG": 64}[target]
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise OverflowError(f"{number} does not fit")
        return number
    if target == "DOUBLE":
        return float(value)
    if target == "BOOLEAN":
        return {"true": True, "false": False, "1": True, "0": False}[value.lower()] if isinstance(value, str) else bool(value)
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


_STRICT: dict[str, Callable[..., Any]] = {
    "+": lambda left, right: _int64(left + right), "-": lambda left, right: _int64(left - right), "*": lambda left, right: _int64(left * right),
    "/": _divide, "%": _modulo, "negate": lambda value: _int64(-value), "abs": lambda value: _int64(abs(value)), "sign": _sign,
    "sqrt": lambda value: math.sqrt(value) if value >= 0 else math.nan, "exp": _exp, "ln": _ln,
    "floor": _whole(math.floor), "ceil": _whole(math.ceil), "round": _round,
    "==": lambda left, right: left == right, "!=": lambda left, right: left != right, "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right, ">": lambda left, right: left > right, ">=": lambda left, right: left >= right,
    "in_": lambda value, values: value in values, "not": lambda value: not value,
    "upper": str.upper, "lower": str.lower, "char_length": len,
    "substring": lambda text, begin, length: text[begin - 1:] if length is None else text[begin - 1: begin - 1 + length],
    "trim": lambda text: text.strip(" "), "trim_leading": lambda text: text.lstrip(" "), "trim_trailing": lambda text: text.rstrip(" "),
    "like": _like, "startswith": lambda text, pattern: text.startswith(pattern), "endswith": lambda text, pattern: text.endswith(pattern),
    "replace": lambda text, search, replacement: text.replace(search, replacement),
    "concat": lambda *texts: "".join(texts), "cast": _cast,
}

_WITH_NULLS: dict[str, Callable[..., Any]] = {
    "is_null": lambda value: value is None, "is_not_null": lambda value: value is not None,
    "is_true": lambda value: value is True, "is_false": lambda value: value is False, "&": _and, "|": _or,
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "concat_ws": lambda *texts, separator: separator.join(text for text in texts if text is not None),
}
