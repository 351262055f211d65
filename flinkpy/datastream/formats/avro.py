"""Avro messages, under PyFlink's module path: rows, and (flinkpy's own) columns."""

from flinkpy.formats.avro.avro_columns import AvroColumnarDecoder, AvroColumnarEncoder
from flinkpy.formats.avro.avro_rows import AvroRowDeserializationSchema, AvroRowSerializationSchema
from flinkpy.formats.avro.avro_schema import AvroSchema, GenericRecordAvroTypeInfo

__all__ = [
    "AvroColumnarDecoder", "AvroColumnarEncoder", "AvroRowDeserializationSchema", "AvroRowSerializationSchema", "AvroSchema",
    "GenericRecordAvroTypeInfo",
]
