"""Avro container files as column batches, read by fastavro. Files are not cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flinkpy.connectors.files.avro.avro_types import arrow_schema, require_fastavro
from flinkpy.connectors.files.column_source import ColumnFileSource, Item, RowsSplit
from flinkpy.connectors.files.paths import FileInfo, PathArgument, open_binary
from flinkpy.connectors.memory.arrow_tables import DEFAULT_BATCH_ROWS
from flinkpy.connectors.source_api.source import ReaderContext
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa


class AvroSource(ColumnFileSource):
    """Reads Avro container files. Their columns are merged as those of Parquet files are. An enum and a UUID are text, and a
    union is a column if all but null is one type. Needs the extra ``flinkpy[avro]``.

    >>> AvroSource("events.avro", columns=["at", "kind"])  # doctest: +SKIP
    """

    has_own_types = True

    def __init__(self, paths: PathArgument, columns: list[str] | None = None, batch_rows: int = DEFAULT_BATCH_ROWS, *,
                 schema: pa.Schema | None = None, watch_interval_ms: int | None = None) -> None:
        require_fastavro()
        super().__init__(paths, columns, schema, batch_rows, watch_interval_ms)

    def _first_schema(self, file: FileInfo) -> pa.Schema:
        stream = open_binary(file)
        try:
            return arrow_schema(require_fastavro().reader(stream).writer_schema)
        except (ValueError, EOFError, KeyError) as error:
            raise ProgramError(f"{file.path} is no Avro file: {error}") from error
        finally:
            stream.close()

    def _splits_of(self, file: FileInfo, parallelism: int) -> Iterator[RowsSplit]:
        if file.size:
            yield RowsSplit(file.path, file)

    def _items_of(self, split: RowsSplit, context: ReaderContext) -> Iterator[Item]:
        import pyarrow as pa

        stream = open_binary(split.file)
        try:
            reader = require_fastavro().reader(stream)
            there = arrow_schema(reader.writer_schema)
            fields = [there.field(field.name) for field in self._in_files if field.name in there.names]
            records: list[Any] = []
            for record in reader:
                records.append(record)
                if len(records) >= self._batch_rows:
                    yield self._with_nulls(_batch(records, fields))
                    records = []
            if records:
                yield self._with_nulls(_batch(records, fields))
        except (ValueError, EOFError, KeyError, IndexError) as error:
            if isinstance(error, pa.ArrowException):
                raise
            raise pa.ArrowInvalid(f"{error or 'it ends within a record'}") from error
        finally:
            stream.close()


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
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)) if fields else pa.RecordBatch.from_struct_array(
        pa.StructArray.from_arrays([], fields=[], mask=pa.repeat(False, len(records))))
