"""Writes one Parquet file; batches are gathered into row groups of a useful length. If no types were declared, the
whole first row group shows the columns' types. The first batch is not enough: it may hold only integers and be
followed by fractions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from flinkpy.connectors.part_files.part_writer import PartWriter
from flinkpy.connectors.part_files.text_values import fields_of, plain
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import ProgramError

GROUP_ROWS = 128 << 10
ADVICE = ("declare what the records are, with output_type=Types.ROW_NAMED([names], [types]) where they are made or with "
          "FileSink(..., format=ParquetFormat(schema=pyarrow.schema([...])))")


class ParquetPart(PartWriter):
    """One file. ``schema`` is that of all batches; None: the first row group shows it."""

    def __init__(self, path: str, schema: Any, compression: str) -> None:
        self._path, self._schema, self._compression = path, schema, compression
        self._is_shown = schema is None
        self._writer: Any = None
        self._records: list[Any] = []  # records of the first row group, until the types are known
        self._batches: list[Any] = []
        self._rows = 0

    def write(self, batch: Batch) -> None:
        if not len(batch):
            return
        if isinstance(batch, ColumnBatch):
            self._show_types()
            self._batches.append(self._fitting(batch.data))
        elif self._schema is None:
            self._records += batch.values
        else:
            self._batches.append(self._fitted(_columns(batch.values, self._schema.names)))
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
        """Closes the file without writing what was gathered."""
        if self._writer is not None:
            self._writer.close()

    def _show_types(self) -> None:
        """Sets the schema that the gathered records show, and turns them into columns."""
        if not self._records:
            return
        import pyarrow as pa

        from flinkpy.columns.values.inference import inferred_type

        records, self._records = self._records, []
        columns = _columns(records, None)
        try:
            self._schema = pa.schema([(name, inferred_type(column, name)) for name, column in columns.items()])
        except ValueError as error:
            raise ProgramError(f"records do not show the columns of a Parquet file: {error}; {ADVICE}") from error
        self._batches.append(self._fitted(columns))

    def _fitted(self, columns: dict[str, Sequence[Any]]) -> Any:
        """The columns with the types of the schema. If the schema was declared, columns it does not have are left
        out."""
        import pyarrow as pa

        from flinkpy.columns.values.exact_arrays import array_of

        more = [name for name in columns if name not in self._schema.names]
        if self._is_shown and more:
            raise ProgramError(f"records have fields that the first records have not: {', '.join(map(repr, more))}; {ADVICE}")
        rows = len(next(iter(columns.values())))
        nothing = [None] * rows
        try:
            arrays = [array_of(columns.get(field.name, nothing), field.type, field.name) for field in self._schema]
        except ValueError as error:
            shown = f", as the first {GROUP_ROWS} records were" if self._is_shown else ""
            raise ProgramError(f"records do not fit the Parquet schema: {error}{shown}; {ADVICE}") from error
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _fitting(self, data: Any) -> Any:
        if self._schema is None:
            self._schema = data.schema
        if data.schema.equals(self._schema):
            return data
        import pyarrow as pa

        from flinkpy.columns.values.conversion import conformed

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


def _columns(values: Sequence[Any], names: Sequence[str] | None) -> dict[str, Sequence[Any]]:
    """The records' fields by name; ``names`` are used for records without names."""
    if set(map(type, values)) == {tuple} and len(set(map(len, values))) == 1 and values[0]:
        _check_length(values[0], values[0], names)
        return dict(zip(names or _numbered(values[0]), zip(*values)))
    records = [_record_of(value, names) for value in values]
    if not any(records):
        raise ProgramError(f"{values[0]!r:.100} has no fields, of which Parquet has columns")
    return {str(name): [record.get(name) for record in records] for name in dict.fromkeys(name for record in records for name in record)}


def _record_of(value: Any, names: Sequence[str] | None) -> dict[Any, Any]:
    record = plain(value)
    if isinstance(record, dict):
        return record
    fields = fields_of(record)
    _check_length(value, fields, names)
    return dict(zip(names if names is not None else _numbered(fields), fields))


def _numbered(fields: Sequence[Any]) -> list[str]:
    return [f"f{index}" for index in range(len(fields))]


def _check_length(value: Any, fields: Sequence[Any], names: Sequence[str] | None) -> None:
    if names is not None and len(fields) > len(names):
        raise ProgramError(f"{value!r:.100} has {len(fields)} fields, the file {len(names)} columns: {', '.join(names)}")
