"""CSV messages, under PyFlink's module path: rows, and (flinkpy's own) columns."""

from flinkpy.formats.csv.csv_columns import CsvColumnarDecoder, CsvColumnarEncoder
from flinkpy.formats.csv.csv_rows import CsvRowDeserializationSchema, CsvRowSerializationSchema

__all__ = ["CsvColumnarDecoder", "CsvColumnarEncoder", "CsvRowDeserializationSchema", "CsvRowSerializationSchema"]
