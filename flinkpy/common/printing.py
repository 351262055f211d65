"""How a value is written by ``print``: the way Flink writes a value of a declared type, Python's own way where nothing was declared.

>>> from flinkpy.common.typeinfo import Types
>>> formatter(Types.TUPLE([Types.STRING(), Types.DOUBLE(), Types.BOOLEAN()]))(("hi", 4, None))
'(hi,4.0,null)'
>>> formatter(None)(("hi", 4))
"('hi', 4)"
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from flinkpy.common.typeinfo import (
    BasicTypeInfo,
    InstantTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from flinkpy.common.types import Row

Format: TypeAlias = Callable[[Any], str]


class formatter:
    """The function from a value to its text; pickles, and works out the type's layout when first called."""

    def __init__(self, type_info: TypeInformation | None) -> None:
        self._type_info = type_info
        self._format: Format | None = None

    def __call__(self, value: Any) -> str:
        if self._format is None:
            self._format = _format_of(self._type_info)
        return self._format(value)

    def __getstate__(self) -> dict[str, Any]:
        return {"_type_info": self._type_info, "_format": None}

    def __repr__(self) -> str:
        return f"formatter({self._type_info!r})"


def _format_of(type_info: TypeInformation | None) -> Format:
    if isinstance(type_info, RowTypeInfo):
        return _row(list(map(_format_of, type_info.field_types)))
    if isinstance(type_info, TupleTypeInfo):
        return _joined(list(map(_format_of, type_info.field_types)))
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        inner = _format_of(type_info.element_type)
        return _or_null(lambda value: f"[{', '.join(map(inner, value))}]")
    if isinstance(type_info, MapTypeInfo):
        of_key, of_value = _format_of(type_info.key_type), _format_of(type_info.value_type)
        return _or_null(lambda value: "{" + ", ".join(f"{of_key(key)}={of_value(each)}" for key, each in value.items()) + "}")
    if isinstance(type_info, BasicTypeInfo):
        return _or_null(_BASIC.get(type_info.name, _instant if isinstance(type_info, InstantTypeInfo) else str))
    return str


def _or_null(inner: Format) -> Format:
    return lambda value: "null" if value is None else inner(value)


def _row(fields: list[Format]) -> Format:
    def write(value: Any) -> str:
        if value is None:
            return "null"
        kind = str(value.get_row_kind()) if isinstance(value, Row) else "+I"
        return f"{kind}[{', '.join(write_field(each) for write_field, each in zip(fields, value))}]"
    return write


def _joined(fields: list[Format]) -> Format:
    return lambda value: "null" if value is None else f"({','.join(write_field(each) for write_field, each in zip(fields, value))})"


def java_double(value: float) -> str:
    """A double as Java writes it.

    >>> [java_double(x) for x in (1, 0.5, 1e10, 1.5e-7, float("inf"))]
    ['1.0', '0.5', '1.0E10', '1.5E-7', 'Infinity']
    """
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        return text if "e" not in text else format(Decimal(text), "f")
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    significant = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) - 1 + int(exponent)
    return f"{'-' if sign else ''}{significant[0]}.{significant[1:] or '0'}E{power}"


def _timestamp(value: datetime.datetime) -> str:
    """As java.sql.Timestamp: a space, and at least one digit of the second's fraction."""
    fraction = f"{value.microsecond:06d}".rstrip("0") or "0"
    return f"{value:%Y-%m-%d %H:%M:%S}.{fraction}"


def _instant(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=value.seconds)
    fraction = f".{value.nanos:09d}".rstrip("0").rstrip(".")
    return f"{moment.isoformat()}{fraction}Z"


def _time_of_day(value: datetime.time) -> str:
    return value.strftime("%H:%M:%S")


_BASIC: dict[str, Format] = {
    "BOOLEAN": lambda value: "true" if value else "false", "DOUBLE": java_double, "FLOAT": java_double,
    "SQL_TIMESTAMP": _timestamp, "SQL_TIME": _time_of_day,
}


class row_formatter(formatter):
    """For rows whose types only the values tell: those of a columnar stream.

    >>> row_formatter()(("UA", 3, 1.5, None, True))
    '+I[UA, 3, 1.5, null, true]'
    """

    def __init__(self) -> None:
        super().__init__(None)
        self._format = None

    def __call__(self, value: Any) -> str:
        return f"+I[{', '.join(map(_by_value, value))}]"


def _by_value(value: Any) -> str:
    if value is None:
        return "null"
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return java_double(value)
    if kind is datetime.datetime:
        return _timestamp(value) if value.tzinfo is None else _instant(value)
    return str(value)
