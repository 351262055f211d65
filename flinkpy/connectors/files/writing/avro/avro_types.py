"""The Avro schema of a file with given columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from flinkpy.core.errors import ProgramError
from flinkpy.formats.avro.avro_schema import require_fastavro

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def avro_schema(schema: pa.Schema) -> Any:
    """The Avro record with these columns, parsed. Raises ProgramError for names and types that Avro
    does not have."""
    return require_fastavro().parse_schema(
        {"type": "record", "name": "Record", "fields": _avro_fields(schema, "Record")}
    )


def _avro_fields(fields: Any, within: str) -> list[dict[str, Any]]:
    for field in fields:
        if not _NAME.fullmatch(field.name):
            raise ProgramError(
                f"Avro has no field {field.name!r}: names are of letters, digits and _; "
                "rename it with select(...)"
            )
    return [
        {"name": field.name, "type": _avro_field(field, f"{within}_{field.name}")}
        for field in fields
    ]


def _avro_field(field: pa.Field, name: str) -> Any:
    kind = _avro_type(field.type, name, field.name)
    return ["null", kind] if field.nullable and kind != "null" else kind


_SAME: list[tuple[Callable[[Any], bool], Any]] = [
    (pa.types.is_null, "null"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_uint32, "long"),
    (pa.types.is_int64, "long"),
    (lambda kind: pa.types.is_integer(kind) and not pa.types.is_uint64(kind), "int"),
    (pa.types.is_float64, "double"),
    (pa.types.is_floating, "float"),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), "string"),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind), "bytes"),
    (pa.types.is_date32, {"type": "int", "logicalType": "date"}),
    (pa.types.is_time, {"type": "long", "logicalType": "time-micros"}),
]


def _avro_type(kind: pa.DataType, name: str, column: str) -> Any:
    for is_a, found in _SAME:
        if is_a(kind):
            return found
    if pa.types.is_dictionary(kind):
        return _avro_type(kind.value_type, name, column)
    if pa.types.is_timestamp(kind):
        return {
            "type": "long",
            "logicalType": "timestamp-micros" if kind.tz is not None else "local-timestamp-micros",
        }
    if pa.types.is_decimal128(kind) and kind.scale >= 0:
        return {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if pa.types.is_fixed_size_binary(kind):
        return {"type": "fixed", "name": name, "size": kind.byte_width}
    if pa.types.is_struct(kind):
        return {"type": "record", "name": name, "fields": _avro_fields(kind, name)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": _avro_field(kind.value_field, f"{name}_item")}
    if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
        return {"type": "map", "values": _avro_field(kind.item_field, f"{name}_value")}
    raise ProgramError(
        f"Avro has no type for column {column!r}, which is {kind}; cast it with "
        f"select(col({column!r}).cast(...))"
    )
