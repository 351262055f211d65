"""Constants in expressions: which values are allowed, and the conversion of numpy's values to
Python's."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

from flinkpy.core.errors import ProgramError

_CLASSES = (
    bool,
    int,
    float,
    str,
    bytes,
    decimal.Decimal,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    type(None),
)


def is_literal(value: object) -> bool:
    """Whether the value can be a constant in an expression."""
    return isinstance(value, _CLASSES)


def python_value(value: Any) -> Any:
    """The Python value that equals a value of numpy or pandas; None for NaT. Raises ProgramError
    for a value with fractions of a microsecond, and for a decimal that is no finite number.

    >>> import numpy
    >>> python_value(numpy.int8(3)), python_value(numpy.datetime64("NaT"))
    (3, None)
    """
    if isinstance(value, datetime.datetime) and value != value:
        return None
    if getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0):  # of pandas
        raise ProgramError(f"{value!r} cannot stand in an expression: it has parts of microseconds")
    if isinstance(value, decimal.Decimal) and not value.is_finite():
        raise ProgramError(
            f"{value!r} cannot stand in an expression: decimals in columns are finite; NaN "
            "and infinities are floats"
        )
    if not hasattr(value, "item") or type(value).__module__ != "numpy":
        return value
    found, kind = value.item(), type(value).__name__
    if kind not in ("datetime64", "timedelta64") or not isinstance(found, int):
        return found
    in_micros = value.astype(f"{kind}[us]")
    if in_micros != value and in_micros == in_micros:
        raise ProgramError(f"{value!r} cannot stand in an expression: it has parts of microseconds")
    return in_micros.item()
