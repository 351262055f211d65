"""JSON messages as columns.

A batch of messages is joined into lines for Arrow's JSON reader, which is many times faster than
one message after the other. What it refuses, and what it might read in another way than rows do, is
decoded one by one. Rows are the specification."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from flinkpy.columns.values.conversion import python_values, without_views
from flinkpy.columns.values.numpy_types import numpy_type
from flinkpy.common.typeinfo import (
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from flinkpy.core.errors import ProgramError
from flinkpy.formats.column_types import declared_type, parts_of, schema_and_type, time_texts
from flinkpy.formats.decoded_rows import ArrowDecoder
from flinkpy.formats.json.json_rows import JSON_ENCODER, JsonRowDeserializationSchema
from flinkpy.formats.json.json_types import writer_of
from flinkpy.formats.port import ColumnarEncoder, RegisteredFormat, RegisteredSchema
from flinkpy.formats.text_columns import as_text, changed, decoded, is_of_bytes

_MINUS_ZERO = re.compile(rb"-0(?=[\s,}\]])")


class JsonColumnarDecoder(ArrowDecoder, RegisteredFormat):
    """JSON objects as columns of a schema, or of a declared row type. Unknown fields are left out,
    missing ones are null.

    >>> from flinkpy.common import Types
    >>> decoder = JsonColumnarDecoder(Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()]))
    >>> decoder.decode([b'{"a": 1, "more": 2}', b'{"b": "x"}']).to_pydict()
    {'a': [1, None], 'b': [None, 'x']}
    """

    def __init__(self, schema: pa.Schema, fail_on_missing_field: bool = False) -> None:
        self.schema, self._type = schema_and_type(schema, "JsonColumnarDecoder")
        self._required = fail_on_missing_field
        self._rows = JsonRowDeserializationSchema(self._type, fail_on_missing_field)
        self._is_arrows = _is_arrows(self._type)
        self._read_as = as_text(
            changed(self.schema, _as_double), lambda kind: _is_of_time(kind) or is_of_bytes(kind)
        )
        self._named_nan = _named_nan(self.schema)
        self._has_floats = any(
            kind in str(field.type) for field in self.schema for kind in ("float", "double")
        )
        self._with_bytes = as_text(changed(self.schema, _as_double), _is_of_time)

    def _columns_by_arrow(self, messages: Sequence[bytes | None]) -> Sequence[Any] | None:
        block = _joined(messages) if self._is_arrows else None
        if block is None:
            return None
        if b"-NaN" in block or (self._has_floats and b"-0" in block and _MINUS_ZERO.search(block)):
            # Arrow takes the one for a number, and the other for a float, where Python reads the
            # integer 0
            return None
        if self._named_nan is not None and b'"NaN"' in block:
            block = self._named_nan.sub(rb"\1NaN", block)
        options = arrow_json.ParseOptions(
            explicit_schema=self._read_as, unexpected_field_behavior="ignore"
        )
        table = arrow_json.read_json(
            pa.BufferReader(block),
            arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            options,
        )
        if table.num_rows != len(messages):
            return None
        [batch] = table.combine_chunks().to_batches()
        if self._required and any(map(_has_null, parts_of(batch.columns))):
            return None
        return [
            column if column.type.equals(field.type) else column.cast(field.type)
            for column, field in zip(decoded(batch, self._with_bytes).columns, self.schema)
        ]

    def registered(self) -> RegisteredSchema:
        registered: RegisteredSchema = self._rows.registered()
        return registered

    def __reduce__(self) -> tuple[Any, ...]:
        return _decoder, (self._type, self.schema, self._required)


def _decoder(type_info: RowTypeInfo, schema: pa.Schema, required: bool) -> JsonColumnarDecoder:
    made = JsonColumnarDecoder(type_info, required)
    return made if made.schema.equals(schema) else JsonColumnarDecoder(schema, required)


def _is_arrows(type_info: TypeInformation) -> bool:
    """Whether Arrow's reader takes the same JSON for values of the type. It has objects for structs
    only."""
    if isinstance(type_info, RowTypeInfo):
        return bool(type_info.field_types) and all(map(_is_arrows, type_info.field_types))
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        return _is_arrows(type_info.element_type)
    return not isinstance(type_info, (MapTypeInfo, TupleTypeInfo))


def _joined(messages: Sequence[bytes | None]) -> bytes | None:
    """The messages as lines; None if one of them is surely malformed.

    Each begins with { and ends with }. Inside an object or a list, { cannot follow }. So the reader
    sees a message's end where it ends, and if it finds as many objects as there are messages, each
    is one object. (A block that is only ``null`` would crash the process in Arrow.)"""
    lines = [b"{}" if message is None else message for message in messages]
    if not all(map(_has_braces, lines)):
        lines = [line.strip(b" \t\n\r") for line in lines]
        if not all(map(_has_braces, lines)):
            return None
    block = b"\n".join(lines)
    try:
        block.decode()
    except UnicodeDecodeError:
        return None
    return block


def _has_braces(line: bytes) -> bool:
    return line.startswith(b"{") and line.endswith(b"}")


def _named_nan(schema: pa.Schema) -> re.Pattern[bytes] | None:
    """What finds the text ``"NaN"`` in fields that are floats: Arrow reads only the bare word.
    (Inside a text, the quotes around a name are escaped, so they do not match.)"""
    names = {json.dumps(name, ensure_ascii=False).encode() for name in _names_of_floats(schema)}
    return (
        re.compile(rb"((?:%b)\s*:\s*)\"NaN\"(?=\s*[,}])" % b"|".join(map(re.escape, sorted(names))))
        if names
        else None
    )


def _names_of_floats(fields: Any) -> Iterator[str]:
    for field in fields:
        if pa.types.is_floating(field.type):
            yield field.name
        elif pa.types.is_struct(field.type):
            yield from _names_of_floats(field.type)


def _as_double(kind: pa.DataType) -> Any:
    """Floats of few digits are rounded from a double, as in rows."""
    return pa.float64() if pa.types.is_floating(kind) else kind


def _is_of_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind))


def _has_null(column: pa.Array) -> bool:
    return bool(column.null_count)


# -- to JSON ---------------------------------------------------------------------------------------


class JsonColumnarEncoder(ColumnarEncoder):
    """The rows of a batch as JSON objects, without blanks, as ``JsonRowSerializationSchema`` writes
    rows.

    >>> JsonColumnarEncoder().encode(
    ...     pa.RecordBatch.from_pydict({"a": [1, None], "b": ["x", 'say "y"']})
    ... )
    [b'{"a":1,"b":"x"}', b'{"a":null,"b":"say \\\\"y\\\\""}']
    """

    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        if not batch.num_rows:
            return []
        batch = without_views(batch)
        encoded: list[bytes] = (
            _object(batch.schema, batch.columns, batch.num_rows).cast(pa.binary()).to_pylist()
        )
        return encoded


def _object(fields: Any, columns: Sequence[Any], count: int) -> Any:
    """A column of the JSON objects of these columns."""
    if not columns:
        return pa.array(["{}"] * count, pa.string())
    pieces: list[Any] = []
    for at, (field, column) in enumerate(zip(fields, columns)):
        pieces += [
            "{" * (at == 0) + "," * (at > 0) + json.dumps(field.name, ensure_ascii=False) + ":",
            _json(column, field.name),
        ]
    return pc.binary_join_element_wise(*pieces, "}", "")


def _json(column: pa.Array, name: str) -> Any:
    """The column's values as JSON texts; none of them is null."""
    kind = column.type
    if pa.types.is_null(kind):
        return pa.array(["null"] * len(column), pa.string())
    if pa.types.is_dictionary(kind):
        return _json(column.cast(kind.value_type), name)
    if pa.types.is_struct(kind):
        texts = _object(kind, column.flatten(), len(column))
        return texts if not column.null_count else pc.if_else(column.is_valid(), texts, "null")
    written = next((write for is_a, write in _WRITERS if is_a(kind)), None)
    return (_one_by_one(column, name) if written is None else written(column)).fill_null("null")


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0))


def _texts(column: pa.Array) -> Any:
    """In quotes, with escapes where one of the texts needs them."""
    column = column.cast(pa.string())
    if pc.any(pc.match_substring_regex(column, r'["\\\x00-\x1f]')).as_py():
        encode = JSON_ENCODER.encode
        return pa.array(
            [None if text is None else encode(text) for text in column.to_pylist()], pa.string()
        )
    return _quoted(column)


def _quoted(texts: pa.Array) -> Any:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _floats(column: pa.Array) -> Any:
    """As Python writes them: with the fewest digits that are read as the same float."""
    if pa.types.is_float64(column.type):
        if not column.null_count and pc.all(pc.is_finite(column)).as_py():
            return pa.array(list(map(repr, column.to_pylist())), pa.string())
        return _each(column, _float)
    dtype: Callable[[Any], Any] = numpy_type(column.type).type
    return _each(column, lambda value: _float(float(str(dtype(value)))))


def _float(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _bytes(column: pa.Array) -> Any:
    encode = base64.b64encode
    return _quoted(_each(column, lambda value: encode(value).decode()))


def _decimals(column: pa.Array) -> Any:
    return _quoted(_each(column, lambda value: format(value, "f")))


def _each(column: pa.Array, text_of: Callable[[Any], str]) -> Any:
    return pa.array(
        [None if value is None else text_of(value) for value in column.to_pylist()], pa.string()
    )


def _one_by_one(column: pa.Array, name: str) -> Any:
    write, encode = writer_of(declared_type(column.type)), JSON_ENCODER.encode
    try:
        return pa.array(
            [None if value is None else encode(write(value)) for value in python_values(column)],
            pa.string(),
        )
    except (ValueError, TypeError) as error:
        raise ProgramError(f"column {name!r} cannot be written as JSON: {error}") from error


_WRITERS: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
    (pa.types.is_boolean, lambda column: pc.if_else(column, "true", "false")),
    (_is_whole, lambda column: column.cast(pa.string())),
    (pa.types.is_floating, _floats),
    (pa.types.is_decimal, _decimals),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), _texts),
    (is_of_bytes, _bytes),
    (_is_of_time, lambda column: _quoted(time_texts(column))),
]
