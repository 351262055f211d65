"""Protobuf messages: rows, objects of generated classes, and columns. PyFlink has no such
module."""

from flinkpy.core.program.public_names import publish
from flinkpy.formats.protobuf.protobuf_columns import (
    ProtobufColumnarDecoder,
    ProtobufColumnarEncoder,
)
from flinkpy.formats.protobuf.protobuf_rows import (
    ProtobufDeserializationSchema,
    ProtobufRowDeserializationSchema,
    ProtobufRowSerializationSchema,
    ProtobufSerializationSchema,
)

__all__ = [
    "ProtobufColumnarDecoder",
    "ProtobufColumnarEncoder",
    "ProtobufDeserializationSchema",
    "ProtobufRowDeserializationSchema",
    "ProtobufRowSerializationSchema",
    "ProtobufSerializationSchema",
]

publish(__name__)
