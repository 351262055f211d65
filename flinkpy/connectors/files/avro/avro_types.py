"""Types of Avro as types of Arrow, and back."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from flinkpy.core.errors import ProgramError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = {"null": pa.null(), "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
          "bytes": pa.binary(), "string": pa.string()}
_LOGICAL = {
    "date": pa.date32(), "time-millis": pa.time32("ms"), "time-micros": pa.time64("us"), "uuid": pa.string(),
    "timestamp-millis": pa.timestamp("ms", "UTC"), "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"), "local-timestamp-micros": pa.timestamp("us")}


def require_fastavro() -> Any:
    """The module. Raises ProgramError if it is not installed."""
    try:
        import fastavro
    except ImportError:
        raise ProgramError("Avro files need the extra: pip install 'flinkpy[avro]'") from None
    return fastavro


def arrow_schema(found: dict[str, Any]) -> Any:
    """The columns of an Avro record. Raises ProgramError for a field with a union that no column is."""
    if not isinstance(found, dict) or found.get("type") != "record":
        raise ProgramError("an Avro file holds records, of which this is none; read it as bytes")
    return pa.schema(_fields(found, {}))


def _fields(record: dict[str, Any], named: dict[str, Any]) -> list[Any]:
    named[record["name"]] = record
    return [pa.field(field["name"], *_type(field["type"], field["name"], named)) for field in record["fields"]]


def _type(found: Any, name: str, named: dict[str, Any]) -> tuple[Any, bool]:
    """The type, and whether it may be null."""
    if isinstance(found, list):
        kinds = [each for each in found if each != "null"]
        if len(kinds) > 1:
            raise ProgramError(f"field {name!r} is one of {len(kinds)} types ({found!r:.100}), which no column is")
        return (_type(kinds[0], name, named)[0] if kinds else pa.null()), len(kinds) < len(found)
    if isinstance(found, str):
        return (_PLAIN[found] if found in _PLAIN else _type(named[found], name, named)[0]), found == "null"
    kind, logical = found["type"], found.get("logicalType")
    if logical == "decimal":
        return pa.decimal128(found["precision"], found.get("scale", 0)), False
    if logical in _LOGICAL:
        return _LOGICAL[logical], False
    if kind == "record":
        return pa.struct(_fields(found, named)), False
    if kind in ("enum", "fixed"):
        named[found["name"]] = found
        return (pa.string() if kind == "enum" else pa.binary(found["size"])), False
    if kind in ("array", "map"):
        item, nullable = _type(found["items" if kind == "array" else "values"], name, named)
        return (pa.list_(pa.field("item", item, nullable)) if kind == "array" else pa.map_(pa.string(), pa.field("value", item, nullable))), False
    return _type(kind, name, named)


def avro_schema(schema: Any) -> Any:
    """The Avro record with these columns, parsed. Raises ProgramError for names and types that Avro does not have."""
    return require_fastavro().parse_schema({"type": "record", "name": "Record", "fields": _avro_fields(schema, "Record")})


def _avro_fields(fields: Any, within: str) -> list[dict[str, Any]]:
    for field in fields:
        if not _NAME.fullmatch(field.name):
            raise ProgramError(f"Avro has no field {field.name!r}: names are of letters, digits and _; rename it with select(...)")
    return [{"name": field.name, "type": _avro_field(field, f"{within}_{field.name}")} for field in fields]


def _avro_field(field: Any, name: str) -> Any:
    kind = _avro_type(field.type, name, field.name)
    return ["null", kind] if field.nullable and kind != "null" else kind


_SAME: list[tuple[Callable[[Any], bool], Any]] = [
    (pa.types.is_null, "null"), (pa.types.is_boolean, "boolean"), (pa.types.is_uint32, "long"), (pa.types.is_int64, "long"),
    (lambda kind: pa.types.is_integer(kind) and not pa.types.is_uint64(kind), "int"),
    (pa.types.is_float64, "double"), (pa.types.is_floating, "float"),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), "string"),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind), "bytes"),
    (pa.types.is_date32, {"type": "int", "logicalType": "date"}), (pa.types.is_time, {"type": "long", "logicalType": "time-micros"}),
]


def _avro_type(kind: Any, name: str, column: str) -> Any:
    for is_a, found in _SAME:
        if is_a(kind):
            return found
    if pa.types.is_dictionary(kind):
        return _avro_type(kind.value_type, name, column)
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros" if kind.tz is not None else "local-timestamp-micros"}
    if pa.types.is_decimal128(kind) and kind.scale >= 0:
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_fixed_size_binary(kind):
        return {"type": "fixed", "name": name, "size": kind.byte_width}
    if pa.types.is_struct(kind):
        return {"type": "record", "name": name, "fields": _avro_fields(kind, name)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": _avro_field(kind.value_field, f"{name}_item")}
    if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
        return {"type": "map", "values": _avro_field(kind.item_field, f"{name}_value")}
    raise ProgramError(f"Avro has no type for column {column!r}, which is {kind}; cast it with select(col({column!r}).cast(...))")
