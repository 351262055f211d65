"""CSV messages, under PyFlink's module path: rows, and (flinkpy's own) columns."""

from flinkpy.core.program.public_names import publish
from flinkpy.datastream.formats.absent import absent
from flinkpy.formats.csv.csv_columns import CsvColumnarDecoder, CsvColumnarEncoder
from flinkpy.formats.csv.csv_rows import CsvRowDeserializationSchema, CsvRowSerializationSchema

_READ = (
    "env.from_csv(path, schema=pyarrow.schema([...])) reads CSV files, with options for "
    "delimiters, quotes, headers and nulls"
)
__getattr__ = absent(
    __name__,
    {
        "CsvSchema": _READ,
        "CsvSchemaBuilder": _READ,
        "CsvReaderFormat": _READ,
        "CsvBulkWriters": (
            "write_csv() writes CSV files, and CsvFormat of "
            "flinkpy.datastream.connectors.file_system is the format for a FileSink"
        ),
    },
)

__all__ = [
    "CsvColumnarDecoder",
    "CsvColumnarEncoder",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
]

publish(__name__)
