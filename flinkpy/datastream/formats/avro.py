"""Avro messages, under PyFlink's module path: rows, and (flinkpy's own) columns."""

from flinkpy.core.program.public_names import publish
from flinkpy.datastream.formats.absent import absent
from flinkpy.formats.avro.avro_columns import AvroColumnarDecoder, AvroColumnarEncoder
from flinkpy.formats.avro.avro_rows import AvroRowDeserializationSchema, AvroRowSerializationSchema
from flinkpy.formats.avro.avro_schema import AvroSchema, GenericRecordAvroTypeInfo

__getattr__ = absent(
    __name__,
    {
        "AvroInputFormat": "env.from_avro(path) reads Avro files, as columns",
        "AvroBulkWriters": (
            "write_avro() writes Avro files, and AvroFormat of "
            "flinkpy.datastream.connectors.file_system is the format for a FileSink"
        ),
    },
)

__all__ = [
    "AvroColumnarDecoder",
    "AvroColumnarEncoder",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
]

publish(__name__)
