"""JSON messages, under PyFlink's module path: rows, plain values, and (flinkpy's own) columns."""

from flinkpy.core.program.public_names import publish
from flinkpy.formats.json.json_columns import JsonColumnarDecoder, JsonColumnarEncoder
from flinkpy.formats.json.json_rows import (
    JsonDeserializationSchema,
    JsonRowDeserializationSchema,
    JsonRowSerializationSchema,
    JsonSerializationSchema,
)

__all__ = [
    "JsonColumnarDecoder",
    "JsonColumnarEncoder",
    "JsonDeserializationSchema",
    "JsonRowDeserializationSchema",
    "JsonRowSerializationSchema",
    "JsonSerializationSchema",
]

publish(__name__)
