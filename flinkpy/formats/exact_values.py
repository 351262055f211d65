"""Values of rows as values of their declared type: an equal value of any class is taken, anything
else is refused with a ValueError, so that no format changes a value on its way into bytes. Columns
do the same (``columns.values``)."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from flinkpy.columns.values.exact_arrays import is_missing, named_fields
from flinkpy.columns.values.literals import python_value
from flinkpy.common.time import Instant
from flinkpy.common.typeinfo import BasicTypeInfo, RowTypeInfo, TypeInformation, Types
from flinkpy.common.types import Row
from flinkpy.core.errors import ProgramError
from flinkpy.formats.parsed_texts import bounds, in_range, short_float

Exactly: TypeAlias = Callable[[Any], Any]

_CONVERSION_ERRORS = (ValueError, TypeError, ArithmeticError)


def is_bytes_type(type_info: TypeInformation) -> bool:
    """Whether its values are ``bytes``."""
    return type_info == Types.PRIMITIVE_ARRAY(Types.BYTE())


def exactly(type_info: TypeInformation) -> Exactly | None:
    """What gives an equal value of the type's own class, or raises ValueError; None for types whose
    values have parts.

    >>> exactly(Types.INT())(2.0), exactly(Types.DOUBLE())(2)
    (2, 2.0)
    >>> exactly(Types.INT())(2.9)
    Traceback (most recent call last):
        ...
    ValueError: 2.9 (float) is no value of Types.INT()
    """
    convert = (
        _bytes
        if is_bytes_type(type_info)
        else _of_basic(type_info)
        if isinstance(type_info, BasicTypeInfo)
        else None
    )
    if convert is None:
        return None

    own, (low, high) = _OWN_CLASS.get(getattr(type_info, "name", "BYTES")), bounds(type_info)
    within = None if low is None or high is None else range(low, high + 1)

    def of_any_class(given: object) -> Any:
        if given.__class__ is own and (within is None or given in within):
            return given
        value = None if is_missing(given) else _of_python(given)
        try:
            return None if value is None else convert(value)
        except _Misfit:
            raise ValueError(
                f"{given!r:.80} ({type(given).__name__}) is no value of {type_info!r}"
            ) from None

    return of_any_class


# The classes whose values need no look, but for the range of integers
_OWN_CLASS: dict[str, type] = {
    **dict.fromkeys(("BYTE", "SHORT", "INT", "LONG", "BIG_INT"), int),
    "STRING": str,
    "CHAR": str,
    "BOOLEAN": bool,
    "DOUBLE": float,
    "BIG_DEC": Decimal,
    "SQL_DATE": datetime.date,
    "BYTES": bytes,
}


class _Misfit(ValueError):
    """The value is none of the type."""


def _of_python(value: object) -> Any:
    try:
        return python_value(value)
    except ProgramError as error:
        raise ValueError(str(error)) from None


def _of_basic(type_info: BasicTypeInfo) -> Exactly:
    if bounds(type_info) != (None, None):
        check = in_range(type_info)
        return lambda value: check(_whole(value))
    return _EXACTLY[type_info.name]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _Misfit
    return str.__str__(value)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise _Misfit
    return value


def _number(value: object) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise _Misfit
    return value


def _whole(value: object) -> int:
    number = _number(value)
    if isinstance(number, int):
        return int(number)
    if not math.isfinite(number) or int(number) != number:
        raise _Misfit
    return int(number)


def _double(value: object) -> float:
    number = _number(value)
    if isinstance(number, Decimal) and number.is_nan():
        return math.nan
    try:
        nearest = float(number)
    except OverflowError:
        raise _Misfit from None
    if nearest != number and nearest == nearest:
        raise _Misfit
    return nearest


def _float(value: object) -> float:
    """A float may be rounded, because the type asks for few digits; an integer may not."""
    number = _double(value)
    short = short_float(number)
    if not isinstance(value, float) and short != number and number == number:
        raise _Misfit
    return short


def _decimal(value: object) -> Decimal:
    return value if type(value) is Decimal else Decimal(_number(value))


def _bytes(value: object) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise _Misfit
    return bytes(value)


def _date(value: object) -> datetime.date:
    if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
        raise _Misfit
    return value


def _time(value: object) -> datetime.time:
    if not isinstance(value, datetime.time) or value.tzinfo is not None:
        raise _Misfit
    return value


def _moment(value: object) -> datetime.datetime:
    if not isinstance(value, datetime.datetime):
        raise _Misfit
    if getattr(value, "nanosecond", 0):
        raise ValueError(f"{value!r:.80} has parts of microseconds")
    return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value


def _timestamp(value: object) -> datetime.datetime:
    moment = _moment(value)
    if moment.utcoffset() is not None:
        raise ValueError(
            f"{value!r:.80} has a zone, and the type has none; declare Types.INSTANT()"
        )
    return moment


def _instant(value: object) -> datetime.datetime | Instant:
    if isinstance(value, Instant):
        return value
    moment = _moment(value)
    if moment.utcoffset() is None:
        raise ValueError(
            f"{value!r:.80} has no zone, and an instant needs one; declare Types.SQL_TIMESTAMP()"
        )
    return moment


_EXACTLY: dict[str, Exactly] = {
    "STRING": _text,
    "CHAR": _text,
    "BOOLEAN": _boolean,
    "BIG_INT": _whole,
    "DOUBLE": _double,
    "FLOAT": _float,
    "BIG_DEC": _decimal,
    "SQL_DATE": _date,
    "SQL_TIME": _time,
    "SQL_TIMESTAMP": _timestamp,
    "INSTANT": _instant,
}


# -- values with parts -----------------------------------------------------------------------------


def fields_in_order(type_info: RowTypeInfo) -> Callable[[Any], Sequence[Any]]:
    """What gives the fields of a row of the type: by name from a dict, a named row, a named tuple
    or a dataclass, else by position."""
    names = tuple(type_info.field_names)

    def in_order(value: object) -> Sequence[Any]:
        if type(value) is tuple and len(value) == len(names):
            return value
        if isinstance(value, Row) and value._fields == names:
            return value._values
        named = named_fields(value)
        if named is None or (not isinstance(value, dict) and not set(names) & set(named)):
            return _by_position(elements(value) if named is None else list(named.values()), value)
        more = [name for name in named if name not in names]
        if more:
            raise ValueError(f"{value!r:.80} has a field {more[0]!r}, and its type has not")
        if len(named) < len(names):
            raise ValueError(
                f"{value!r:.80} has no field {next(name for name in names if name not in named)!r}"
            )
        return [named[name] for name in names]

    def _by_position(listed: list[Any], value: object) -> list[Any]:
        if len(listed) != len(names):
            raise ValueError(
                f"{value!r:.80} has {len(listed)} fields instead of {len(names)}: "
                f"{', '.join(names)}"
            )
        return listed

    return in_order


def elements(value: object) -> list[Any]:
    """The elements of a list, a tuple, a row or an array."""
    if isinstance(
        value, (str, bytes, bytearray, memoryview, Mapping, set, frozenset)
    ) or not isinstance(value, Iterable):
        raise ValueError(f"{value!r:.80} ({type(value).__name__}) is no list")
    return list(value)


def entries(value: object) -> list[tuple[Any, Any]]:
    """The keys and values of a dict."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{value!r:.80} ({type(value).__name__}) is no dict")
    return list(value.items())


def each_converted(
    names: Sequence[str], converts: Sequence[Exactly], values: Sequence[Any]
) -> list[Any]:
    """The converted values of a row's fields. A ValueError names the field."""
    try:
        return [convert(value) for convert, value in zip(converts, values)]
    except _CONVERSION_ERRORS:
        for name, convert, value in zip(names, converts, values):
            in_field(name, convert)(value)
        raise


def in_field(name: str, convert: Exactly) -> Exactly:
    """The conversion, whose ValueErrors name the field."""

    def converted(value: object) -> Any:
        try:
            return convert(value)
        except _CONVERSION_ERRORS as error:
            raise ValueError(f"field {name!r}: {error}") from None

    return converted
