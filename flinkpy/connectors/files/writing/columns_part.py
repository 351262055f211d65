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
from flinkpy.formats.text_values import fields_of, plain

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
        columns = _columns(records, None)
        try:
            self._schema = pa.schema(
                [(name, inferred_type(column, name)) for name, column in columns.items()]
            )
        except ValueError as error:
            raise ProgramError(
                f"records do not show the columns of a {self.kind} file: {error}; {self._advice}"
            ) from error
        self._batches.append(self._fitted(columns))

    def _fitted(self, columns: dict[str, Sequence[Any]]) -> Any:
        """The columns with the types of the schema. If the schema was declared, columns it does not
        have are left out."""
        import pyarrow as pa

        from flinkpy.columns.values.exact_arrays import array_of

        more = [name for name in columns if name not in self._schema.names]
        if self._is_shown and more:
            raise ProgramError(
                "records have fields that the first records have not: "
                f"{', '.join(map(repr, more))}; {self._advice}"
            )
        rows = len(next(iter(columns.values())))
        nothing = [None] * rows
        try:
            arrays = [
                array_of(columns.get(field.name, nothing), field.type, field.name)
                for field in self._schema
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
        if data.schema.equals(self._schema):
            return data
        import pyarrow as pa

        from flinkpy.columns.values.conversion import conformed

        try:
            if self._is_shown and len(data.schema) > len(self._schema):
                raise pa.ArrowInvalid(
                    f"the first batch had {', '.join(self._schema.names)}, this one has "
                    f"{', '.join(data.schema.names)}"
                )
            return conformed(data, self._schema)
        except pa.ArrowException as error:
            raise ProgramError(
                f"columns do not fit the {self.kind} schema: {error}; give "
                f"{self.kind}Format(schema=...)"
            ) from error

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


def _columns(values: Sequence[Any], names: Sequence[str] | None) -> dict[str, Sequence[Any]]:
    """The records' fields by name; ``names`` are used for records without names."""
    if set(map(type, values)) == {tuple} and len(set(map(len, values))) == 1 and values[0]:
        _check_length(values[0], values[0], names)
        return dict(zip(names or _numbered(values[0]), zip(*values)))
    records = [_record_of(value, names) for value in values]
    if not any(records):
        raise ProgramError(f"{values[0]!r:.100} has no fields, of which such a file has columns")
    return {
        str(name): [record.get(name) for record in records]
        for name in dict.fromkeys(name for record in records for name in record)
    }


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
        raise ProgramError(
            f"{value!r:.100} has {len(fields)} fields, the file {len(names)} columns: "
            f"{', '.join(names)}"
        )
