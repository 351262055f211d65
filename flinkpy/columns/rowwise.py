"""What expressions mean, one row at a time, in plain Python. This is the specification: a property
test compares the kernels with it."""

from __future__ import annotations

import datetime
import math
import operator
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

from flinkpy.columns.expression import Alias, Call, Column, Expression, Literal, refuse_sql
from flinkpy.columns.row_functions import moment_functions, nested_functions, text_functions
from flinkpy.core.errors import ProgramError


def evaluate(expression: Expression, row: Mapping[str, Any]) -> Any:
    """The expression's value for a row, which is a mapping from column names to values.

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
    refuse_sql(expression)
    # only the chosen branch is computed, because the other may fail
    if expression.function == "then":
        condition, if_true, if_false = expression.arguments
        return evaluate(if_true if evaluate(condition, row) is True else if_false, row)
    values = [evaluate(each, row) for each in expression.arguments]
    options = expression.stream_options()
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
    return (
        math.nan
        if dividend == 0 or math.isnan(dividend)
        else math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)
    )


def _modulo(left: Any, right: Any) -> Any:
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
        return math.nan if right == 0 or math.isinf(left) else left % right
    return left % right


def _power(left: Any, right: Any) -> float:
    base, exponent = float(left), float(right)
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError):
        # the power of a zero or of a large number is an infinity, that of a negative number may be
        # none
        return (
            math.nan
            if base < 0 and exponent % 1
            else math.copysign(math.inf, base if exponent % 2 == 1 else 1.0)
        )


def _sign(value: Any) -> Any:
    return value if value != value else type(value)((value > 0) - (value < 0))


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _ln(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf if value == 0 else math.nan


def _whole(function: Callable[[Any], int]) -> Callable[[Any], Any]:
    def apply(value: Any) -> Any:
        if isinstance(value, Decimal):
            return Decimal(function(value))
        # -0.0 stays -0.0
        return (
            math.copysign(function(value), value)
            if isinstance(value, float) and math.isfinite(value)
            else value
        )

    return apply


def round_one(value: Any, places: int) -> Any:
    """The number rounded, halves away from zero."""
    if isinstance(value, int):
        if places >= 0:
            return value
        unit = 10**-places
        whole = abs(value) // unit * unit
        return _int64(
            (-1 if value < 0 else 1) * (whole + unit if 2 * (abs(value) - whole) >= unit else whole)
        )
    if isinstance(value, Decimal):
        unit = Decimal(1).scaleb(-places)
        with localcontext(_EXACT):
            return (value / unit).to_integral_value(ROUND_HALF_UP) * unit
    if not math.isfinite(value):
        return value
    # it changes the smallest floats only, and there are no halves among these
    if places > _MOST_PLACES:
        return round(value, places)
    if places < -_MOST_PLACES:
        return math.copysign(0.0, value)
    scale = 10.0 ** abs(places)
    scaled = value * scale if places >= 0 else value / scale
    if not math.isfinite(scaled):
        return value
    floor = math.floor(scaled)
    fraction = scaled - floor
    if fraction == 0:
        return value
    nearest = math.copysign(
        math.floor(scaled + 0.5) if fraction != 0.5 else math.ceil(abs(scaled)), scaled
    )
    found = nearest / scale if places >= 0 else nearest * scale
    if math.isinf(found):
        raise OverflowError("overflow occurred during rounding")
    return found


def _and(left: Any, right: Any) -> Any:
    return (
        False
        if left is False or right is False
        else None
        if left is None or right is None
        else True
    )


def _or(left: Any, right: Any) -> Any:
    return (
        True if left is True or right is True else None if left is None or right is None else False
    )


def _floor_divide(left: Any, right: Any) -> Any:
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
        return left // right if right else _divide(left, right)
    return _int64(left // right)


def _first_best(is_better: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def best(*values: Any) -> Any:
        chosen, *others = _alike(values)
        for value in others:
            chosen = value if is_better(value, chosen) else chosen
        return chosen

    return best


def _is_greater(value: Any, other: Any) -> bool:
    """NaN is the greatest."""
    return bool(other == other and (value != value or value > other))


def _is_in(value: Any, *choices: Any) -> bool:
    return any(value == each for each in choices)


def _is_less(value: Any, other: Any) -> bool:
    return bool(value == value and (other != other or value < other))


def _alike(values: Iterable[Any]) -> list[Any]:
    """The values; the numbers among them as floats if one is a float, as in SQL."""
    listed = list(values)
    if not any(isinstance(value, float) for value in listed):
        return listed
    return [float(value) if isinstance(value, (int, Decimal)) else value for value in listed]


def _numbers(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operation with a float is computed with floats; on integers and decimals it is exact."""

    def apply(left: Any, right: Any) -> Any:
        left, right = _alike((left, right))
        with localcontext(_EXACT):
            return _int64(operation(left, right))

    return apply


def cast_one(value: Any, to: Any) -> Any:
    """The value in another type. Raises ValueError, ArithmeticError or KeyError if it cannot be
    one."""
    if isinstance(value, str):
        value = value.strip(" ") if to.name not in ("STRING", "CHAR") else value
        if to.name in _OF_TEXT:
            return _OF_TEXT[to.name](value)
    change: Callable[[Any], Any] = _CASTS.get(to.name, _text)
    return change(value)


def try_cast(value: Any, to: Any) -> Any:
    """The value in another type; None if it cannot be one."""
    try:
        return cast_one(value, to)
    except (ValueError, ArithmeticError, KeyError):
        return None


def shown_moment(value: Any) -> str:
    """A datetime or a time as text, with three, six or nine decimals of the second if it has any.

    >>> (
    ...     shown_moment(datetime.datetime(2024, 1, 2, 3, 4, 5)),
    ...     shown_moment(datetime.time(3, 4, 5, 120_000)),
    ... )
    ('2024-01-02 03:04:05', '03:04:05.120')
    """
    fraction = 1000 * value.microsecond + getattr(value, "nanosecond", 0)  # pandas has nanoseconds
    digits = (
        "seconds"
        if not fraction
        else "milliseconds"
        if not fraction % 10**6
        else "microseconds"
        if not fraction % 1000
        else "nanoseconds"
    )
    shown: str = (
        value.isoformat(" ", digits)
        if isinstance(value, datetime.datetime)
        else value.isoformat(digits)
    )
    return shown


def _text(value: Any) -> str:
    if isinstance(value, (datetime.datetime, datetime.time)):
        return shown_moment(value)
    if isinstance(value, bytes):
        return value.decode()
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _whole_number(value: Any) -> int:
    """The value as an integer. A datetime becomes milliseconds since 1970; without a zone it is
    taken as UTC."""
    if isinstance(value, datetime.datetime):
        return (_with_zone(value) - _EPOCH) // _MILLISECOND
    if isinstance(value, datetime.timedelta):
        return value // _MILLISECOND
    if isinstance(value, str) and re.fullmatch("[+-]?[0-9]+", value) is None:
        raise ValueError(f"{value!r} is no whole number")
    return int(value)


def _integer(bits: int) -> Callable[[Any], int]:
    def cast(value: Any) -> int:
        if bits < 64 and isinstance(value, (datetime.datetime, datetime.timedelta)):
            raise TypeError("a TIMESTAMP becomes a BIGINT, and no other number")
        number = _whole_number(value)
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise OverflowError(f"{number} does not fit")
        return number

    return cast


def _with_zone(value: datetime.datetime) -> datetime.datetime:
    return value if value.tzinfo is not None else value.replace(tzinfo=datetime.timezone.utc)


def _timestamp(value: Any) -> datetime.datetime:
    """The timestamp without zone; the local time if there is a zone."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day)
    return _instant(value).replace(tzinfo=None)


def _instant(value: Any) -> datetime.datetime:
    if isinstance(value, (bool, float, Decimal, datetime.time, datetime.timedelta)):
        raise TypeError(f"{value!r} becomes no TIMESTAMP")
    if isinstance(value, int):
        return _EPOCH + value * _MILLISECOND
    return _with_zone(
        value
        if isinstance(value, datetime.datetime)
        else datetime.datetime(value.year, value.month, value.day)
    )


def _date(value: Any) -> datetime.date:
    return value.date() if isinstance(value, datetime.datetime) else value


def _time(value: Any) -> datetime.time:
    return value.time() if isinstance(value, datetime.datetime) else value


def _truth(value: Any) -> bool:
    if isinstance(value, (datetime.date, datetime.time, datetime.timedelta)):
        raise TypeError(f"{value!r} is neither true nor false")
    return bool(value)


def _float_of_text(text: str) -> float:
    return float(text.replace("_", "no number"))  # Python would ignore the underscore


def _single(value: Any) -> float:
    """The nearest float of 32 bits."""
    if isinstance(value, int):
        import numpy as np

        return float(np.int64(value).astype(np.float32))  # rounded once
    try:
        found: float = struct.unpack("f", struct.pack("f", float(value)))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return found


def _decimal_of_text(text: str) -> Decimal:
    if re.fullmatch(r"[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?", text) is None:
        raise ValueError(f"{text!r} is no number")
    return Decimal(text)


def _whole_decimal(value: int) -> Decimal:
    if abs(value) >= 10**38:
        raise OverflowError(f"{value} has more than 38 digits")
    return Decimal(value)


def _decimal(value: Decimal, is_rounded: bool = False) -> Decimal:
    """With up to 38 digits, 18 of them behind the point; only a float is rounded."""
    with localcontext(_EXACT):
        found = value.quantize(Decimal("1e-18"), ROUND_HALF_UP)
    if found.is_nan() or abs(found) >= 10**20 or (found != value and not is_rounded):
        raise ValueError(f"{value} does not fit")
    return found


def _instant_of_text(text: str) -> datetime.datetime:
    """Text such as 2024-05-31 12:30:00+02:00; the zone must be there."""
    found = re.fullmatch(
        r"(?P<local>.*)(Z|(?P<sign>[+-])(?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2})?)", text
    )
    if found is None:
        raise ValueError(f"{text!r} is no date and time with a zone")
    local = datetime.datetime.fromisoformat(_like_iso(found["local"], _MOMENT))
    ahead = datetime.timedelta(hours=int(found["hours"] or 0), minutes=int(found["minutes"] or 0))
    return (local + ahead if found["sign"] == "-" else local - ahead).replace(
        tzinfo=datetime.timezone.utc
    )


def _like_iso(text: str, pattern: str) -> str:
    """The text with six decimals of the second, which all versions of Python can read."""
    if re.fullmatch(pattern, text) is None:
        raise ValueError(f"{text!r} is no date or time")
    whole, point, fraction = text.partition(".")
    return whole + point + (fraction.ljust(6, "0")[:6] if point else "")


_EXACT = Context(prec=76)
_MOST_PLACES = 308  # powers of ten up to this one are floats
_DAY, _TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?"
_MOMENT = f"{_DAY}[ T]([0-9]{{2}}|{_TIME})"
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_CASTS: dict[str, Callable[[Any], Any]] = {
    "BYTE": _integer(8),
    "SHORT": _integer(16),
    "INT": _integer(32),
    "LONG": _integer(64),
    "BIG_INT": lambda value: _whole_decimal(int(value)),
    "BIG_DEC": lambda value: _decimal(Decimal(value), isinstance(value, float)),
    "DOUBLE": float,
    "FLOAT": _single,
    "BOOLEAN": _truth,
    "SQL_TIMESTAMP": _timestamp,
    "INSTANT": _instant,
    "SQL_DATE": _date,
    "SQL_TIME": _time,
}
# as in Flink
TRUTHS = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}
_OF_TEXT: dict[str, Callable[[str], Any]] = {
    "BOOLEAN": lambda text: TRUTHS[text.lower()],
    "BIG_INT": lambda text: _whole_decimal(_whole_number(text)),
    "BIG_DEC": lambda text: _decimal(_decimal_of_text(text)),
    "DOUBLE": _float_of_text,
    "FLOAT": lambda text: _single(_float_of_text(text)),
    "SQL_DATE": lambda text: datetime.date.fromisoformat(_like_iso(text, _DAY)),
    "SQL_TIMESTAMP": lambda text: datetime.datetime.fromisoformat(
        _like_iso(text, f"{_DAY}|{_MOMENT}")
    ),
    "INSTANT": lambda text: _instant_of_text(text),
    "SQL_TIME": lambda text: datetime.time.fromisoformat(_like_iso(text, _TIME)),
}

_STRICT: dict[str, Callable[..., Any]] = {
    "+": _numbers(moment_functions.plus),
    "-": _numbers(moment_functions.minus),
    "*": _numbers(operator.mul),
    "/": _divide,
    "**": _power,
    "%": _modulo,
    "negate": lambda value: _int64(-value),
    "abs": lambda value: _int64(abs(value)),
    "sign": _sign,
    "sqrt": lambda value: math.sqrt(value) if value >= 0 else math.nan,
    "exp": _exp,
    "ln": _ln,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "round": round_one,
    "is_nan": lambda value: value != value,
    "==": _numbers(operator.eq),
    "!=": _numbers(operator.ne),
    "<": _numbers(operator.lt),
    "<=": _numbers(operator.le),
    ">": _numbers(operator.gt),
    ">=": _numbers(operator.ge),
    "in_": lambda value, values: _is_in(*_alike((value, *values))),
    "not": lambda value: not value,
    "//": _floor_divide,
    "greatest": _first_best(_is_greater),
    "least": _first_best(_is_less),
    "cast": cast_one,
    "try_cast": try_cast,
    **text_functions.STRICT,
    **moment_functions.STRICT,
    **nested_functions.STRICT,
}

_WITH_NULLS: dict[str, Callable[..., Any]] = {
    "is_null": lambda value: value is None,
    "is_not_null": lambda value: value is not None,
    "is_true": lambda value: value is True,
    "is_false": lambda value: value is False,
    "&": _and,
    "|": _or,
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "concat_ws": lambda *texts, separator: separator.join(
        text for text in texts if text is not None
    ),
    **nested_functions.WITH_NULLS,
}

FUNCTIONS = _STRICT.keys() | _WITH_NULLS.keys() | {"then"}
