"""Functions that read JSON: IS JSON, JSON_EXISTS, JSON_VALUE, JSON_QUERY. What ON EMPTY and ON
ERROR say is an option of the call: a word, or ``("DEFAULT", value)``."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from flinkpy.columns.sql.call_site import CallSite, Meaning, MeaningOf
from flinkpy.columns.sql.row_errors import VALUE_ERRORS
from flinkpy.columns.sql.sql_meanings.json_texts.sql_json_paths import sql_json_path
from flinkpy.columns.sql.sql_meanings.null_rules import strict
from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    BooleanType,
    DoubleType,
    IntegerType,
    LogicalType,
    TypeFamily,
)
from flinkpy.core.errors import ProgramError

_TOO_DEEP = "the JSON is nested too deeply"
_KINDS: dict[str, tuple[type, ...]] = {"OBJECT": (dict,), "ARRAY": (list,)}


def parsed(text: str) -> Any:
    """The value of a JSON text; a number with a point or an exponent is a Decimal, which keeps how
    it is written. Raises ValueError if it is no JSON."""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_number)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def _no_number(word: str) -> None:
    raise ValueError(f"JSON has no {word}")


def compact(value: Any) -> str:
    """The value as JSON, without blanks. Raises ValueError if it is nested too deeply."""
    try:
        return _compact(value)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def _compact(value: Any) -> str:
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, list):
        return f"[{','.join(map(_compact, value))}]"
    if isinstance(value, dict):
        parts = (f"{_compact(name)}:{_compact(each)}" for name, each in value.items())
        return f"{{{','.join(parts)}}}"
    return json.dumps(value, ensure_ascii=False)


def in_order(value: Any) -> Any:
    """The value with the names of all its objects in order, as Flink writes JSON that it has
    read."""
    try:
        return _in_order(value)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def _in_order(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_in_order, value))
    if isinstance(value, dict):
        return {name: _in_order(value[name]) for name in sorted(value)}
    return value


def decimal_text(value: Decimal) -> str:
    """As Java writes it: zero has no sign."""
    return str(value if value else abs(value))


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, (dict, list))


def _is_json(expected: bool) -> MeaningOf:
    def choose(site: CallSite) -> Meaning:
        kind = str(site.options.get("kind", "VALUE"))

        def is_of_kind(text: str | None) -> bool:
            if text is None:
                return not expected
            try:
                value = parsed(text)
            except ValueError:
                return not expected
            if kind == "SCALAR":
                return _is_scalar(value) is expected
            return isinstance(value, _KINDS.get(kind, (object,))) is expected

        return is_of_kind

    return choose


def _json_exists(site: CallSite) -> Meaning:
    on_error = site.options.get("on_error", "FALSE")

    def exists(text: str, path: str) -> bool | None:
        try:
            return sql_json_path(path).value_in(parsed(text)) is not None
        except ValueError:
            if on_error == "ERROR":
                raise
            return {"TRUE": True, "FALSE": False}.get(str(on_error))

    return strict(exists)


def _json_value(site: CallSite) -> Meaning:
    convert = _scalar_of(site.result)
    on_empty, on_error = _otherwise(site, "on_empty"), _otherwise(site, "on_error")

    def value_at(text: str, path: str) -> Any:
        try:
            road = sql_json_path(path)
            value = road.value_in(parsed(text))
            is_empty = value is None or (road.is_lax and not _is_scalar(value))
            if not is_empty:
                return convert(value)
        except VALUE_ERRORS as error:
            return on_error(error)
        return on_empty(ValueError(f"JSON_VALUE finds nothing at {path}"))

    return strict(value_at)


def _scalar_of(kind: LogicalType) -> Callable[[Any], Any]:
    """Makes a value of the type of a scalar. Raises ValueError for others."""

    def convert(value: Any) -> Any:
        if not _is_scalar(value):
            raise ValueError("JSON_VALUE takes a scalar, and this is an object or an array")
        if kind.is_a(TypeFamily.CHARACTER_STRING):
            return _scalar_text(value)
        is_number = isinstance(value, (int, Decimal)) and not isinstance(value, bool)
        if isinstance(kind, BooleanType) and isinstance(value, bool):
            return value
        if isinstance(kind, DoubleType) and is_number:
            return float(value)
        if isinstance(kind, IntegerType) and is_number and _fits(value, kind.bits):
            return value
        raise ValueError(f"{compact(value)} is no {kind.text()}")

    is_known = kind.is_a(TypeFamily.CHARACTER_STRING) or isinstance(
        kind, (BooleanType, DoubleType, IntegerType)
    )
    if not is_known:
        raise ProgramError(
            f"JSON_VALUE returns STRING, BOOLEAN, INT or DOUBLE, not {kind.text()}; CAST the STRING"
        )
    return convert


def _fits(value: Any, bits: int) -> bool:
    return isinstance(value, int) and -(1 << (bits - 1)) <= value < 1 << (bits - 1)


def _scalar_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return decimal_text(value) if isinstance(value, Decimal) else str(value)


def _json_query(site: CallSite) -> Meaning:
    wrap = _WRAPPERS[str(site.options.get("wrapper", "WITHOUT"))]
    convert = _query_result(site.result)
    on_empty, on_error = _otherwise(site, "on_empty"), _otherwise(site, "on_error")

    def part_at(text: str, path: str) -> Any:
        try:
            road = sql_json_path(path)
            found = road.value_in(parsed(text))
            value = None if found is None else wrap(in_order(found))
            is_empty = value is None or (road.is_lax and _is_scalar(value))
            if not is_empty:
                return convert(value)
        except VALUE_ERRORS as error:
            return on_error(error)
        return on_empty(ValueError(f"JSON_QUERY finds nothing at {path}"))

    return strict(part_at)


_WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "WITHOUT": lambda value: value,
    "UNCONDITIONAL": lambda value: [value],
    "CONDITIONAL": lambda value: value if isinstance(value, list) else [value],
}


def _query_result(kind: LogicalType) -> Callable[[Any], Any]:
    is_array = isinstance(kind, ArrayType)

    def convert(value: Any) -> Any:
        if _is_scalar(value):
            raise ValueError("JSON_QUERY takes an object or an array; JSON_VALUE reads a scalar")
        if not is_array:
            return compact(value)
        if not isinstance(value, list):
            raise ValueError("an object is no array")
        return [each if each is None else _text_of_element(each) for each in value]

    return convert


def _text_of_element(value: Any) -> str:
    return _scalar_text(value) if _is_scalar(value) else compact(value)


def _otherwise(site: CallSite, occasion: str) -> Callable[[Exception], Any]:
    """What is given instead: null if nothing is said."""
    behaviour = site.options.get(occasion, "NULL")
    if behaviour == "ERROR":
        return _raised
    if isinstance(behaviour, tuple):
        default = behaviour[1]
        return lambda error: default
    is_array = isinstance(site.result, ArrayType)
    empty: dict[object, Any] = {
        "EMPTY ARRAY": [] if is_array else "[]",
        "EMPTY OBJECT": None if is_array else "{}",
    }
    found = empty.get(behaviour)
    return lambda error: found


def _raised(error: Exception) -> None:
    raise error


JSON_READING_MEANINGS: dict[str, MeaningOf] = {
    "IS JSON": _is_json(True),
    "IS NOT JSON": _is_json(False),
    "JSON_EXISTS": _json_exists,
    "JSON_VALUE": _json_value,
    "JSON_QUERY": _json_query,
}
