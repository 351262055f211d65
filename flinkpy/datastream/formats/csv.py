"""CSV messages, under PyFlink's module path: rows, and (flinkpy's own) columns."""

from flinkpy.connectors.files.csv_schema import (
    CsvBulkWriters,
    CsvReaderFormat,
    CsvSchema,
    CsvSchemaBuilder,
)
from flinkpy.core.program.public_names import publish
from flinkpy.formats.csv.csv_columns import CsvColumnarDecoder, CsvColumnarEncoder
from flinkpy.formats.csv.csv_rows import CsvRowDeserializationSchema, CsvRowSerializationSchema

__all__ = [
    "CsvBulkWriters",
    "CsvColumnarDecoder",
    "CsvColumnarEncoder",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]

publish(__name__)
