"""Functions that write JSON: JSON_OBJECT, JSON_ARRAY, JSON_STRING, JSON_QUOTE and their like. The
option ``json_arguments`` has the positions of arguments that are JSON already."""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from flinkpy.columns.sql.call_site import CallSite, Meaning, MeaningOf
from flinkpy.columns.sql.sql_meanings.casts.texts_of_values import double_text, float_text
from flinkpy.columns.sql.sql_meanings.json_texts.json_reading_meanings import (
    compact,
    decimal_text,
    in_order,
    parsed,
)
from flinkpy.columns.sql.sql_meanings.null_rules import strict, strictly
from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    MultisetType,
    NullType,
    RowType,
    TimestampType,
    TimeType,
    TypeFamily,
)
from flinkpy.core.errors import ProgramError

Json: TypeAlias = Callable[[Any], str]
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "/": "\\/",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}
_LAST_CONTROLS = range(0x7F, 0xA0)


def json_of(kind: LogicalType) -> Json:
    """Writes values of the type as JSON; null is null."""
    write = _json_of(kind)
    return lambda value: "null" if value is None else write(value)


def _json_of(kind: LogicalType) -> Json:
    if isinstance(kind, ArrayType):
        element = json_of(kind.element)
        return lambda values: f"[{','.join(map(element, values))}]"
    if isinstance(kind, RowType):
        fields = [(compact(each.name), json_of(each.type)) for each in kind.fields]
        return lambda row: _object([(n, write(each)) for (n, write), each in zip(fields, row)])
    if isinstance(kind, (MapType, MultisetType)):
        if not kind.children[0].is_a(TypeFamily.CHARACTER_STRING):
            raise ProgramError(f"JSON has names for keys: {kind.text()} has keys that are no texts")
        value = json_of(kind.value) if isinstance(kind, MapType) else str
        return lambda entries: _object(
            [(compact(key), value(entries[key])) for key in sorted(entries)]
        )
    if kind.is_a(TypeFamily.CHARACTER_STRING):
        return compact
    if kind.is_a(TypeFamily.BINARY_STRING):
        return lambda value: compact(base64.b64encode(value).decode("ascii"))
    found = _FLAT.get(type(kind)) or (str if isinstance(kind, IntegerType) else None)
    if found is None:
        raise ProgramError(f"{kind.text()} cannot be written as JSON; CAST it to STRING")
    return found


def _object(pairs: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{name}:{value}" for name, value in pairs) + "}"


def _number(write: Callable[[float], str]) -> Json:
    """As Java's BigDecimal is written; NaN and infinities are texts in JSON."""

    def written(value: float) -> str:
        text = write(value)
        return decimal_text(Decimal(text)) if math.isfinite(value) else compact(text)

    return written


def _moment(moment: datetime.datetime) -> str:
    if moment.tzinfo is None:
        return compact(_iso(moment))
    return compact(_iso(moment.astimezone(datetime.timezone.utc).replace(tzinfo=None)) + "Z")


def _iso(moment: datetime.datetime) -> str:
    return moment.isoformat(timespec="auto" if moment.microsecond % 1000 else "milliseconds")


_FLAT: dict[type[LogicalType], Json] = {
    BooleanType: lambda value: "true" if value else "false",
    DoubleType: _number(double_text),
    FloatType: _number(float_text),
    DecimalType: decimal_text,
    DateType: lambda day: compact(day.isoformat()),
    TimeType: lambda time: compact(time.isoformat()),
    TimestampType: _moment,
    LocalZonedTimestampType: _moment,
    NullType: lambda value: "null",
}


def _writers(site: CallSite) -> list[Json]:
    ready = site.options.get("json_arguments", ())
    assert isinstance(ready, tuple)
    return [_as_it_is if at in ready else json_of(kind) for at, kind in enumerate(site.arguments)]


def _as_it_is(value: str | None) -> str:
    return "null" if value is None else value


def _json_object(site: CallSite) -> Meaning:
    """Names are in their order as texts; of equal names the last one counts."""
    writers = _writers(site)
    keeps_null = site.options.get("on_null", "NULL") == "NULL"

    def written(*operands: Any) -> str:
        found: dict[str, str] = {}
        for at in range(0, len(operands), 2):
            name, value = operands[at], operands[at + 1]
            if name is None:
                raise ValueError("a name of JSON_OBJECT is null")
            if value is not None or keeps_null:
                found[name] = writers[at + 1](value)
        return _object([(compact(name), found[name]) for name in sorted(found)])

    return written


def _json_array(site: CallSite) -> Meaning:
    writers = _writers(site)
    keeps_null = site.options.get("on_null", "ABSENT") == "NULL"

    def written(*values: Any) -> str:
        parts = [
            write(each) for write, each in zip(writers, values) if each is not None or keeps_null
        ]
        return f"[{','.join(parts)}]"

    return written


def _json_string(site: CallSite) -> Meaning:
    return strict(_json_of(site.arguments[0]))


def _json(text: str) -> str:
    return compact(in_order(parsed(text)))


def _json_quote(text: str) -> str:
    return '"' + "".join(map(_quoted, text)) + '"'


def _quoted(sign: str) -> str:
    escaped = _ESCAPES.get(sign)
    if escaped is not None:
        return escaped
    is_control = sign < " " or ord(sign) in _LAST_CONTROLS
    return f"\\u{ord(sign):04x}" if is_control else sign


def _json_unquote(text: str) -> str:
    """The text of a JSON string; any other text as it is."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        return text


JSON_WRITING_MEANINGS: dict[str, MeaningOf] = {
    "JSON_OBJECT": _json_object,
    "JSON_ARRAY": _json_array,
    "JSON_STRING": _json_string,
    "JSON": strictly(_json),
    "JSON_QUOTE": strictly(_json_quote),
    "JSON_UNQUOTE": strictly(_json_unquote),
}
