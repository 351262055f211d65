"""Conversions for columns of text files whose values are written in another form: bytes as Base64,
and times of day as text that Arrow's JSON reader does not parse. Also detects integers that were
rounded because Arrow inferred a column of floats."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

_ALL_FLOATS_BELOW = 1 << 53  # every integer up to here equals a float


def is_of_bytes(kind: pa.DataType) -> bool:
    """Whether the type is one of bytes."""
    return any(
        is_a(kind)
        for is_a in (
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_fixed_size_binary,
            pa.types.is_binary_view,
        )
    )


def as_text(schema: pa.Schema, is_text: Callable[[Any], bool]) -> Any:
    """The schema with text in place of the types that ``is_text`` selects, also inside structs and
    lists."""
    return changed(schema, lambda kind: pa.string() if is_text(kind) else kind)


def changed(schema: pa.Schema, change: Callable[[Any], Any]) -> Any:
    """The schema with ``change`` applied to its types, also inside structs and lists."""
    return pa.schema([field.with_type(changed_type(field.type, change)) for field in schema])


def changed_type(kind: pa.DataType, change: Callable[[Any], Any]) -> Any:
    """The type with ``change`` applied to it or, for structs and lists, to its parts."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(changed_type(field.type, change)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(changed_type(kind.value_type, change)))
    return change(kind)


def in_microseconds(kind: pa.DataType) -> Any:
    """Files of text have moments with as many digits as their writer likes; Arrow reads no more of
    them than the type has, even if they are zeros. So they are read in microseconds, and cast."""
    return (
        pa.timestamp("us", kind.tz)
        if pa.types.is_timestamp(kind) and kind.unit in ("s", "ms")
        else kind
    )


def decoded(batch: pa.RecordBatch, schema: pa.Schema) -> Any:
    """The record batch with text converted to the schema's types of bytes and times of day. Raises
    ArrowInvalid for text that is neither."""
    for at, field in enumerate(batch.schema):
        wanted = schema.field(field.name)
        if not wanted.type.equals(field.type):
            try:
                batch = batch.set_column(at, wanted, _column(batch.column(at), wanted.type))
            except ValueError as error:
                raise pa.ArrowInvalid(f"column {field.name!r}: {error}") from error
    return batch


def _column(column: pa.Array, kind: pa.DataType) -> Any:
    if column.type.equals(kind):
        return column
    if pa.types.is_struct(kind):
        parts = [_column(part, field.type) for part, field in zip(column.flatten(), kind)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(
            column.offsets,
            _column(column.values, kind.value_type),
            type=kind,
            mask=column.is_null(),
        )
    decode: Callable[[str], Any] = _time if pa.types.is_time(kind) else _bytes
    return pa.array([None if text is None else decode(text) for text in column.to_pylist()], kind)


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError(
            f"{text!r:.80} is no Base64, in which files of text hold bytes; read it as text "
            "and encode it"
        ) from None


def _time(text: str) -> datetime.time:
    try:
        time = datetime.time.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text!r:.80} is no time of day, such as 12:30:00") from None
    if time.tzinfo is not None:
        raise ValueError(f"{text!r:.80} has a zone, which no column of times has")
    return time


def nulls_in_required(columns: Any, schema: pa.Schema) -> str | None:
    """Says which column of the schema has a null, though its field is not nullable; None if all are
    right."""
    for field, column in zip(schema, columns):
        if not field.nullable and column.null_count:
            return (
                f"column {field.name!r} has a null, and its field in the schema has nullable=False"
            )
    return None


def first_text(texts: pa.Array) -> str:
    """The first of a chunked array of texts that is not null; "" if there is none."""
    return next((text for chunk in texts.chunks for text in chunk.drop_null()[:1].to_pylist()), "")


def csv_table(block: bytes, **options: Any) -> Any:
    """The records of the block, with the options of ``pyarrow.csv.open_csv``; their block size is
    larger than this one.

    ``read_csv`` would do the same, but on Python 3.10 each call of it looks through all objects of
    the process."""
    with csv.open_csv(pa.BufferReader(block), **options) as reader:
        return reader.read_all()


def with_large_floats(batch: pa.RecordBatch) -> list[str]:
    """The columns of floats with values so large that an integer may have been rounded."""
    return [
        field.name
        for field, column in zip(batch.schema, batch.columns)
        if field.type == pa.float64() and _is_large(column)
    ]


def _is_large(column: pa.Array) -> bool:
    if len(column) and not column.null_count:
        floats = column.to_numpy()
        farthest = max(-floats.min(), floats.max())
        if farthest == farthest:  # no NaN among them; numpy is several times faster than Arrow then
            return bool(farthest >= _ALL_FLOATS_BELOW)
    found = pc.min_max(column).as_py()
    return found["max"] is not None and max(-found["min"], found["max"]) >= _ALL_FLOATS_BELOW


def rounded(texts: pa.Array) -> Iterator[str]:
    """Those of the texts that are integers that no float equals."""
    for text in texts.filter(pc.match_substring_regex(texts, r"^\s*[+-]?\d{16,}\s*$")).to_pylist():
        if float(text) != int(text):
            yield text


def refuse_rounded(texts: pa.Array, name: str) -> None:
    """Raises ArrowInvalid if one of the texts is an integer that no float equals."""
    for text in rounded(texts):
        raise pa.ArrowInvalid(
            f"column {name!r} holds {text}, which no float equals; give schema= with a "
            "decimal, a whole number or text for it"
        )
