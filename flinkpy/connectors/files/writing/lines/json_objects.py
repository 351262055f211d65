"""Columns as lines of JSON objects."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.connectors.files.writing.lines.column_lines import (
    bytes_of,
    changed,
    enclosed,
    is_text,
    joined,
    texts_of,
)
from flinkpy.formats.text_values import json_value

_ESCAPED = bytes([*range(0x20), ord('"'), ord("\\")])  # by these bytes of UTF-8, and no others


def json_lines(data: pa.RecordBatch) -> str:
    """The lines of the rows of a record batch. Raises TypeError or ValueError for a value that JSON
    cannot hold.

    >>> json_lines(pa.record_batch({"a": [1, None], "b": ["x", 'say "y"']}))
    '{"a": 1, "b": "x"}\\n{"a": null, "b": "say \\\\"y\\\\""}\\n'
    """
    pieces: list[Any] = []
    for name, column in zip(data.schema.names, data.columns):
        pieces += [f"{', ' if pieces else '{'}{json_value(name)}: ", _values(column)]
    return joined([*pieces, "}\n"])


def _values(column: pa.Array) -> Any:
    kind = column.type
    if pa.types.is_boolean(kind):
        texts = pc.if_else(column, "true", "false").cast(pa.large_string())
    elif pa.types.is_dictionary(kind):
        return _values(column.cast(kind.value_type))
    else:
        texts = texts_of(column, json_value)
    if is_text(kind):
        data = bytes_of(texts)
        texts = (
            enclosed(texts, '"')
            if len(data.translate(None, _ESCAPED)) == len(data)
            else changed(texts, json_value)
        )
    return texts.fill_null("null")
