"""Parquet files, under PyFlink's module path."""

from __future__ import annotations

from flinkpy.columns.values.arrow_types import arrow_schema
from flinkpy.common.typeinfo import RowTypeInfo
from flinkpy.connectors.files.writing.file_formats import ParquetFormat
from flinkpy.datastream.checks import located, refuse
from flinkpy.datastream.formats.absent import absent

__all__ = ["ParquetBulkWriters"]

_COLUMNS = "env.from_parquet(path) reads Parquet files, as columns"
__getattr__ = absent(
    __name__,
    {
        "AvroParquetReaders": _COLUMNS,
        "ParquetColumnarRowInputFormat": (
            f"{_COLUMNS}; so does BulkFormat.parquet(columns) for a FileSource"
        ),
        "AvroParquetWriters": (
            "write_parquet() writes Parquet files, with schema=pyarrow.schema([...]) in place of "
            "Avro's"
        ),
    },
)


class ParquetBulkWriters:
    """Formats for ``FileSink.for_bulk_format``.

    >>> from flinkpy.common import Types
    >>> ParquetBulkWriters.for_row_type(Types.ROW_NAMED(["city"], [Types.STRING()])).suffix
    '.parquet'
    """

    @staticmethod
    def for_row_type(
        row_type: RowTypeInfo, hadoop_config: object = None, utc_timestamp: bool = False
    ) -> ParquetFormat:
        """Parquet with the columns of ``Types.ROW_NAMED([names], [types])``; PyFlink takes a type
        of its Table API. Instants are always written in UTC. Raises ProgramError for another type,
        and for Hadoop's options, which have no meaning here."""
        if not isinstance(row_type, RowTypeInfo):
            raise refuse(
                "ParquetBulkWriters.for_row_type() takes Types.ROW_NAMED([names], [types]), "
                f"this is {row_type!r:.80}"
            )
        if hadoop_config is not None:
            raise refuse(
                "ParquetBulkWriters.for_row_type(): there is no Hadoop here; "
                "ParquetFormat(schema, compression) has options"
            )
        with located():
            return ParquetFormat(arrow_schema(row_type))
