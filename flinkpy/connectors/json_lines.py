"""Blocks of JSON lines as columns.

Arrow's JSON reader takes a moment's text for a timestamp, forgets its zone, and knows no dates and times. So columns of time are read as text,
for the source to cast: that keeps zones, and refuses what has one in a column without, or the other way round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyarrow import json


def shown_schema(block: bytes) -> Any:
    """The schema that the first lines show."""
    shown = _read(block, None)
    as_text = _changed_schema(shown.schema, lambda kind: pa.string() if _is_of_time(kind) else kind)
    if as_text.equals(shown.schema):
        return shown.schema
    texts = _read(block, as_text)
    fields = []
    for field in shown.schema:
        candidates = [field.type, _changed(field.type, lambda kind: pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) else kind)]
        fields.append(field.with_type(next((kind for kind in candidates if _casts(texts[field.name], kind)), as_text.field(field.name).type)))
    return pa.schema(fields)


def parse_lines(block: bytes, schema: Any) -> Any:
    """The lines as a table of this schema, but for times, which are text; ArrowInvalid for what does not fit, and for fields it has not."""
    return _read(block, _changed_schema(schema, lambda kind: pa.string() if _is_of_time(kind) else kind))


def _read(block: bytes, schema: Any) -> Any:
    if not block.strip():
        return pa.table({}, schema=pa.schema([])) if schema is None else schema.empty_table()
    read_options = json.ReadOptions(block_size=len(block) + 1)
    options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error" if schema is not None else "infer")
    try:
        return json.read_json(pa.BufferReader(block), read_options=read_options, parse_options=options)
    except pa.ArrowInvalid as error:
        if schema is None or "unexpected field" not in str(error):
            raise
        found = json.read_json(pa.BufferReader(block), read_options=read_options).schema.names
        extra = ", ".join(repr(name) for name in found if name not in schema.names) or "inside an object"
        raise pa.ArrowInvalid(f"field {extra} is not in the schema (from the first lines: {', '.join(schema.names)}); give schema=") from error


def _is_of_time(kind: Any) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind))


def _changed_schema(schema: Any, change: Callable[[Any], Any]) -> Any:
    return pa.schema([field.with_type(_changed(field.type, change)) for field in schema])


def _changed(kind: Any, change: Callable[[Any], Any]) -> Any:
    """The type with its parts changed, also those of structs and lists."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_changed(field.type, change)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_changed(kind.value_type, change)))
    return change(kind)


def _casts(column: Any, kind: Any) -> bool:
    try:
        column.cast(kind)
    except pa.ArrowException:
        return False
    return True
