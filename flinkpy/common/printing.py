"""How ``print`` writes a value: as Flink writes values of the declared type, or as Python does if
no type was declared.

>>> from flinkpy.common.typeinfo import Types
>>> formatter(Types.TUPLE([Types.STRING(), Types.DOUBLE(), Types.BOOLEAN()]))(("hi", 4, None))
'(hi,4.0,null)'
>>> formatter(None)(("hi", 4))
"('hi', 4)"
"""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Callable, Iterable
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
    """The function from a value to its text. It can be pickled, and examines the type when it is
    first called."""

    def __init__(self, type_info: TypeInformation | None, *, printed: bool = True) -> None:
        # False: written as Java's encoders do, rows too
        self._type_info = type_info
        self._printed = printed
        self._format: Format | None = None

    def __call__(self, value: object) -> str:
        if self._format is None:
            self._format = (
                _format_of(self._type_info) if self._printed else _java_format_of(self._type_info)
            )
        return self._format(value)

    def __getstate__(self) -> dict[str, Any]:
        return {"_type_info": self._type_info, "_printed": self._printed, "_format": None}

    def __repr__(self) -> str:
        return f"formatter({self._type_info!r})"


def _format_of(type_info: TypeInformation | None) -> Format:
    """The format of a whole record. PyFlink itself writes rows, with Python's ``str`` for their
    fields; Java writes all other declared types."""
    return _python_row if isinstance(type_info, RowTypeInfo) else _java_format_of(type_info)


def _python_row(value: Any) -> str:
    if value is None:
        return "null"
    return f"{_kind_of(value)}[{','.join([str(each) for each in value])}]"


def _kind_of(value: Any) -> str:
    return str(value.get_row_kind()) if isinstance(value, Row) else "+I"


def _java_format_of(type_info: TypeInformation | None) -> Format:
    if isinstance(type_info, RowTypeInfo):
        return _row(list(map(_java_format_of, type_info.field_types)))
    if isinstance(type_info, TupleTypeInfo):
        return _joined(list(map(_java_format_of, type_info.field_types)))
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        inner = _java_format_of(type_info.element_type)
        return _or_null(lambda value: f"[{', '.join(map(inner, _items(value)))}]")
    if isinstance(type_info, MapTypeInfo):
        of_key = _java_format_of(type_info.key_type)
        of_value = _java_format_of(type_info.value_type)
        return _or_null(
            lambda value: (
                "{"
                + ", ".join(f"{of_key(key)}={of_value(each)}" for key, each in value.items())
                + "}"
            )
        )
    if isinstance(type_info, BasicTypeInfo):
        return _or_null(
            _BASIC.get(type_info.name, _instant if isinstance(type_info, InstantTypeInfo) else str)
        )
    return str


def _or_null(inner: Format) -> Format:
    return lambda value: "null" if value is None else inner(value)


def _row(fields: list[Format]) -> Format:
    def write(value: Any) -> str:
        if value is None:
            return "null"
        fields_of_it = [write_field(each) for write_field, each in zip(fields, value)]
        return f"{_kind_of(value)}[{', '.join(fields_of_it)}]"

    return write


def _joined(fields: list[Format]) -> Format:
    return lambda value: (
        "null"
        if value is None
        else f"({','.join(write_field(each) for write_field, each in zip(fields, value))})"
    )


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
    """In the format of java.sql.Timestamp: with a space, and at least one decimal of the second."""
    fraction = f"{value.microsecond:06d}".rstrip("0") or "0"
    return f"{value:%Y-%m-%d %H:%M:%S}.{fraction}"


def _instant(value: Any) -> str:
    """In the format of java.time.Instant: in UTC, with as many groups of three decimals as
    needed."""
    if isinstance(value, datetime.datetime):
        utc = (
            value
            if value.tzinfo is None
            else value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        )
        moment, nanos = utc.replace(microsecond=0), utc.microsecond * 1000
    else:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=value.seconds)
        nanos = value.nanos
    digits = f"{nanos:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{moment.isoformat()}{'.' if digits else ''}{digits}Z"


def _items(value: Any) -> Iterable[Any]:
    """The items of an array; those of bytes are Java's, from -128 to 127."""
    return map(_signed, value) if isinstance(value, (bytes, bytearray)) else value


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def java_float(value: float) -> str:
    """A 32-bit float as Java writes it: with the fewest digits that identify it.

    >>> [java_float(x) for x in (110.1, 0.1 + 0.2, 1e10)]
    ['110.1', '0.3', '1.0E10']
    """
    if not math.isfinite(value):
        return java_double(value)
    try:
        single = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return "Infinity" if value > 0 else "-Infinity"
    for digits in range(1, 10):
        shortest = float(f"{single:.{digits}g}")
        if struct.unpack("f", struct.pack("f", shortest))[0] == single:
            return java_double(shortest)
    return java_double(single)


def _time_of_day(value: datetime.time) -> str:
    return value.strftime("%H:%M:%S")


_BASIC: dict[str, Format] = {
    "BOOLEAN": lambda value: "true" if value else "false",
    "DOUBLE": java_double,
    "FLOAT": java_float,
    "SQL_TIMESTAMP": _timestamp,
    "SQL_TIME": _time_of_day,
}


class row_formatter(formatter):
    """The text of rows whose types only their values show, as in a columnar stream.

    >>> row_formatter()(("UA", 3, 1.5, None, True))
    '+I[UA, 3, 1.5, null, true]'
    """

    def __init__(self) -> None:
        super().__init__(None)
        self._format = None

    def __call__(self, value: Any) -> str:
        return f"{_kind_of(value)}[{', '.join([_by_value(each) for each in value])}]"


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
