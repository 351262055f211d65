"""Avro container files as column batches, read by fastavro. Files are not cut."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from flinkpy.connectors.files.paths import FileInfo, PathArgument, open_binary
from flinkpy.connectors.files.reading.column_source import ColumnFileSource, Item, RowsSplit
from flinkpy.connectors.memory.arrow_tables import DEFAULT_BATCH_ROWS
from flinkpy.connectors.source_api.source import ReaderContext
from flinkpy.core.errors import FlinkpyError, ProgramError

if TYPE_CHECKING:
    import pyarrow as pa


class AvroSource(ColumnFileSource):
    """Reads Avro container files. Their columns are merged as those of Parquet files are. An enum
    and a UUID are text, and a union is a column if all but null is one type. Needs the extra
    ``flinkpy[avro]``.

    >>> AvroSource("events.avro", columns=["at", "kind"])  # doctest: +SKIP
    """

    def __init__(
        self,
        paths: PathArgument,
        columns: list[str] | None = None,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        *,
        schema: pa.Schema | None = None,
        watch_interval_ms: int | None = None,
    ) -> None:
        from flinkpy.formats.avro.avro_schema import require_fastavro

        require_fastavro()
        super().__init__(paths, columns, schema, batch_rows, watch_interval_ms)

    def _first_schema(self, file: FileInfo) -> pa.Schema:
        with closing(open_binary(file)) as stream:
            try:
                return _opened(stream, file)[1]
            except Exception as error:  # fastavro's, and those of each codec
                if isinstance(error, (FlinkpyError, OSError)):
                    raise
                raise ProgramError(f"{file.path} is no Avro file: {error}") from error

    def _splits_of(self, file: FileInfo, parallelism: int) -> Iterator[RowsSplit]:
        if file.size:
            yield RowsSplit(file.path, file)

    def _items_of(self, split: RowsSplit, context: ReaderContext) -> Iterator[Item]:
        import pyarrow as pa

        with closing(open_binary(split.file)) as stream:
            try:
                reader, there = _opened(stream, split.file)
                fields = [
                    there.field(field.name) for field in self._in_files if field.name in there.names
                ]
                while records := list(islice(reader, self._batch_rows)):
                    yield self._with_nulls(_batch(records, fields))
            except Exception as error:  # fastavro's, and those of each codec
                if isinstance(error, (pa.ArrowException, FlinkpyError, OSError)):
                    raise
                raise pa.ArrowInvalid(f"{error or 'it ends within a record'}") from error


def _opened(stream: IO[bytes], file: FileInfo) -> tuple[Any, Any]:
    """What reads the records, and the schema of their columns. Raises ProgramError for a type that
    no column has."""
    from flinkpy.formats.avro.avro_schema import (
        AvroSchema,
        column_schema,
        record_type,
        require_fastavro,
    )

    reader = require_fastavro().reader(stream)
    return reader, column_schema(
        record_type(AvroSchema(_without_unions_of_one(reader.writer_schema)), file.path), file.path
    )


def _without_unions_of_one(schema: Any) -> Any:
    """The parsed schema with the type itself in place of a union that has no other. The reader
    gives values, whatever the union."""
    if isinstance(schema, list):
        return (
            _without_unions_of_one(schema[0])
            if len(schema) == 1
            else [_without_unions_of_one(each) for each in schema]
        )
    if not isinstance(schema, dict):
        return schema
    found = {
        key: _without_unions_of_one(each) if key in ("type", "items", "values") else each
        for key, each in schema.items()
    }
    if "fields" in found:
        found["fields"] = [_without_unions_of_one(field) for field in found["fields"]]
    return found


def _batch(records: list[Any], fields: list[Any]) -> Any:
    import uuid

    import pyarrow as pa

    from flinkpy.columns.values.exact_arrays import array_of

    columns = []
    for field in fields:
        values = [record[field.name] for record in records]
        if pa.types.is_string(field.type):
            values = [str(value) if isinstance(value, uuid.UUID) else value for value in values]
        columns.append(array_of(values, field.type, field.name))
    return (
        pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
        if fields
        else pa.RecordBatch.from_struct_array(
            pa.StructArray.from_arrays([], fields=[], mask=pa.repeat(False, len(records)))
        )
    )
