"""What writers of files of columns share: batches are gathered into groups of rows of a useful
length. If no types were declared, the whole first group shows the columns' types. The first batch
is not enough: it may hold only integers and be followed by fractions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.connectors.files.writing.part_writer import OutputFile, PartWriter
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.formats.record_fields import RecordFields, numbered

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS = 128 << 10


class ColumnsPart(PartWriter):
    """One file. ``schema`` is that of all batches; None: the first group shows it. ``kind`` is what
    messages call the format."""

    kind: str

    def __init__(self, file: OutputFile, schema: pa.Schema | None) -> None:
        self._file = file
        self._schema: Any = schema  # a pyarrow.Schema, or None
        self._is_shown = schema is None
        self._fields = RecordFields(
            None if schema is None else schema.names,
            f"{self.kind} file",
            "name all fields that records may have with "
            f"FileSink(..., format={self.kind}Format(schema=pyarrow.schema([...]))): those that a "
            "record does not have are null",
            () if schema is None else [field.name for field in schema if not field.nullable],
        )
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
            self._fields.begin(batch.values[0])
            self._batches.append(self._fitted(self._fields.columns_of(batch.values)))
        self._rows += len(batch)
        if self._rows >= GROUP_ROWS:
            self._write_group()

    @property
    def size(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        try:
            if self._rows:
                self._write_group()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Closes the file without writing what was gathered."""
        try:
            self._end()
        finally:
            self._file.close()

    @abstractmethod
    def _write_table(self, table: pa.Table) -> None:
        """Writes a group of rows."""

    def _end(self) -> None:
        """Ends the file."""

    @property
    def _advice(self) -> str:
        return (
            "declare what the records are, with output_type=Types.ROW_NAMED([names], [types]) "
            "where they are made or with "
            f"FileSink(..., format={self.kind}Format(schema=pyarrow.schema([...])))"
        )

    def _show_types(self) -> None:
        """Sets the schema that the gathered records show, and turns them into columns."""
        if not self._records:
            return
        import pyarrow as pa

        from flinkpy.columns.values.inference import inferred_type

        records, self._records = self._records, []
        names = self._fields.begin(records[0])
        columns = self._fields.columns_of(records)
        if not columns:
            raise ProgramError(
                f"{records[0]!r:.100} has no fields, of which such a file has columns"
            )
        names = numbered(len(columns)) if names is None else list(map(str, names))
        try:
            self._schema = pa.schema(
                [(name, inferred_type(column, name)) for name, column in zip(names, columns)]
            )
        except ValueError as error:
            raise ProgramError(
                f"records do not show the columns of a {self.kind} file: {error}; {self._advice}"
            ) from error
        self._batches.append(self._fitted(columns))

    def _fitted(self, columns: Sequence[Sequence[Any]]) -> Any:
        """The columns with the types of the schema."""
        import pyarrow as pa

        from flinkpy.columns.values.exact_arrays import array_of

        try:
            arrays = [
                array_of(column, field.type, field.name)
                for column, field in zip(columns, self._schema)
            ]
        except ValueError as error:
            shown = f", as the first {GROUP_ROWS} records were" if self._is_shown else ""
            raise ProgramError(
                f"records do not fit the {self.kind} schema: {error}{shown}; {self._advice}"
            ) from error
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _fitting(self, data: pa.RecordBatch) -> Any:
        if self._schema is None:
            self._schema = data.schema
        self._fields.begin(dict.fromkeys(self._schema.names))
        if data.schema.equals(self._schema):
            return data
        import pyarrow as pa

        from flinkpy.columns.values.exact_casts import cast_exactly

        columns = self._fields.of_columns(dict(zip(data.schema.names, data.columns)))
        try:
            arrays = [
                pa.nulls(len(data), field.type) if column is None else cast_exactly(column, field)
                for field, column in zip(self._schema, columns)
            ]
        except pa.ArrowException as error:
            raise ProgramError(
                f"columns do not fit the {self.kind} schema: {error}; give "
                f"{self.kind}Format(schema=...)"
            ) from error
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _write_group(self) -> None:
        import pyarrow as pa

        from flinkpy.formats.text_columns import nulls_in_required

        self._show_types()
        batches, self._batches, self._rows = self._batches, [], 0
        table = pa.Table.from_batches(batches, self._schema)
        wrong = nulls_in_required(table.columns, self._schema)
        if wrong is not None:
            raise ProgramError(f"records do not fit the {self.kind} schema: {wrong}")
        self._write_table(table)
