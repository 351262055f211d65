"""A Parquet file being written: batches are gathered to row groups of a useful length. The first group of rows shows the columns' types, where none
were declared: not the first batch, which may hold nothing but whole numbers and be followed by fractions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from flinkpy.connectors.part_writer import PartWriter
from flinkpy.connectors.records import fields_of, plain
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import ProgramError

GROUP_ROWS = 128 << 10
ADVICE = ("declare what the records are, with output_type=Types.ROW_NAMED([names], [types]) where they are made or with "
          "FileSink(..., format=ParquetFormat(schema=pyarrow.schema([...])))")


class ParquetPart(PartWriter):
    """One file. ``schema``: of all batches, or None: what the first group shows."""

    def __init__(self, path: str, schema: Any, compression: str) -> None:
        self._path, self._schema, self._compression = path, schema, compression
        self._is_shown = schema is None
        self._writer: Any = None
        self._records: list[dict[str, Any]] = []  # of the first group, until the types are known
        self._batches: list[Any] = []
        self._rows = 0

    def write(self, batch: Batch) -> None:
        if not len(batch):
            return
        if isinstance(batch, ColumnBatch):
            self._show_types()
            self._batches.append(self._fitting(batch.data))
        elif self._schema is None:
            self._records += [_record_of(value, None) for value in batch.values]
        else:
            self._batches.append(self._columns_of([_record_of(value, self._schema.names) for value in batch.values]))
        self._rows += len(batch)
        if self._rows >= GROUP_ROWS:
            self._write_group()

    @property
    def size(self) -> int:
        return os.path.getsize(self._path) if self._writer is not None else 0

    def close(self) -> None:
        if self._rows:
            self._write_group()
        self.abandon()

    def abandon(self) -> None:
        """Lets go of the file without what was gathered."""
        if self._writer is not None:
            self._writer.close()

    def _show_types(self) -> None:
        """The schema that the gathered records show; they become columns."""
        if not self._records:
            return
        import pyarrow as pa

        from flinkpy.table.inference import inferred_type

        records, self._records = self._records, []
        names = dict.fromkeys(name for record in records for name in record)
        try:
            self._schema = pa.schema([(str(name), inferred_type([record.get(name) for record in records], str(name))) for name in names])
        except ValueError as error:
            raise ProgramError(f"records do not show the columns of a Parquet file: {error}; {ADVICE}") from error
        self._batches.append(self._columns_of(records))

    def _columns_of(self, records: Sequence[dict[str, Any]]) -> Any:
        import pyarrow as pa

        from flinkpy.table.exact_arrays import array_of

        names = set(self._schema.names)
        if self._is_shown:
            for record in records:
                if not record.keys() <= names:
                    raise ProgramError(f"{record!r:.100} has fields that the first records have not ({', '.join(self._schema.names)}); {ADVICE}")
        try:
            columns = [array_of([record.get(field.name) for record in records], field.type, field.name) for field in self._schema]
        except ValueError as error:
            shown = f", as the first {GROUP_ROWS} records were" if self._is_shown else ""
            raise ProgramError(f"records do not fit the Parquet schema: {error}{shown}; {ADVICE}") from error
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _fitting(self, data: Any) -> Any:
        if self._schema is None:
            self._schema = data.schema
        if data.schema.equals(self._schema):
            return data
        import pyarrow as pa

        from flinkpy.table.conversion import conformed

        try:
            if self._is_shown and len(data.schema) > len(self._schema):
                raise pa.ArrowInvalid(f"the first batch had {', '.join(self._schema.names)}, this one has {', '.join(data.schema.names)}")
            return conformed(data, self._schema)
        except pa.ArrowException as error:
            raise ProgramError(f"columns do not fit the Parquet schema: {error}; give ParquetFormat(schema=...)") from error

    def _write_group(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._show_types()
        table = pa.Table.from_batches(self._batches, self._schema)
        self._batches, self._rows = [], 0
        try:
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._path, self._schema, compression=self._compression)
            self._writer.write_table(table)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ProgramError(f"Parquet has no columns of this schema ({self._schema.to_string(truncate_metadata=True)}): {error}") from error


def _record_of(value: Any, names: Sequence[str] | None) -> dict[Any, Any]:
    named = plain(value)
    if isinstance(named, dict):
        return named
    fields = fields_of(named)
    if names is not None and len(fields) > len(names):
        raise ProgramError(f"{value!r:.100} has {len(fields)} fields, the file {len(names)} columns: {', '.join(names)}")
    return dict(zip(names if names is not None else [f"f{index}" for index in range(len(fields))], fields))
