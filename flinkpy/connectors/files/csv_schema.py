"""PyFlink's description of CSV files, column by column, and what reads and writes files by it.

>>> from flinkpy.table import DataTypes
>>> schema = (
...     CsvSchema.builder()
...     .add_number_column("id", DataTypes.INT())
...     .add_string_column("name")
...     .set_column_separator(";")
...     .set_use_header()
...     .build()
... )
>>> schema
CsvSchema(id: Types.INT(), name: Types.STRING())
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from flinkpy.common.logical_types.logical_type import DecimalType, LogicalType
from flinkpy.common.logical_types.type_conversion import stream_type
from flinkpy.common.typeinfo import BasicTypeInfo, TypeInformation, Types
from flinkpy.connectors.files.builders import StreamFormat
from flinkpy.connectors.source_api.source import Source
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.program_line import refuse

if TYPE_CHECKING:
    from flinkpy.connectors.files.writing.file_formats import CsvFormat

_NUMBERS = frozenset({"BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "BIG_INT", "BIG_DEC"})


@dataclass(frozen=True, repr=False)
class CsvSchema:
    """The columns of CSV files, in order, and how the files are written. Made by ``builder()``."""

    columns: tuple[tuple[str, TypeInformation | DecimalType], ...] = ()
    separator: str = ","
    quote: str | None = '"'
    escape: str | None = None
    null_value: str = ""
    use_header: bool = False
    strict_headers: bool = False
    allow_comments: bool = False
    skip_first_data_row: bool = False

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """A builder of a schema without columns."""
        return CsvSchemaBuilder()

    def size(self) -> int:
        """The number of columns."""
        return len(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [name for name, _ in self.columns]

    def __repr__(self) -> str:
        return f"CsvSchema({', '.join(f'{name}: {kind!r}' for name, kind in self.columns)})"


class CsvSchemaBuilder:
    """Builds a ``CsvSchema``.

    >>> CsvSchema.builder().add_boolean_column("ok").set_null_value("-").size()
    1
    """

    def __init__(self) -> None:
        self._schema = CsvSchema()

    def _with(self, **changes: Any) -> CsvSchemaBuilder:
        self._schema = replace(self._schema, **changes)
        return self

    def _add(self, name: str, kind: TypeInformation | DecimalType) -> CsvSchemaBuilder:
        if not isinstance(name, str) or name in self._schema.names:
            raise refuse(f"CsvSchema: a column has a name of its own, this is {name!r:.80}")
        return self._with(columns=(*self._schema.columns, (name, kind)))

    def add_number_column(
        self, name: str, number_type: LogicalType | TypeInformation | None = None
    ) -> CsvSchemaBuilder:
        """Adds a column of numbers, by default of BIGINT."""
        where = "add_number_column()"
        if isinstance(number_type, DecimalType):
            return self._add(name, number_type)
        kind = Types.LONG() if number_type is None else stream_type(number_type, where)
        if not isinstance(kind, BasicTypeInfo) or kind.name not in _NUMBERS:
            raise refuse(f"{where} takes a type of numbers, this is {number_type!r:.80}")
        return self._add(name, kind)

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """Adds a column of text."""
        return self._add(name, Types.STRING())

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """Adds a column of ``true`` and ``false``."""
        return self._add(name, Types.BOOLEAN())

    def add_array_column(
        self, name: str, separator: str = ";", element_type: object = None
    ) -> NoReturn:
        """Raises ProgramError: read such a column as text, and split it."""
        raise refuse(
            f"add_array_column({name!r:.80}): columns of CSV files are single values; "
            f"add_string_column({name!r:.80}), and split it with col({name!r:.80}).split("
            f"{separator!r:.20})"
        )

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """Adds the columns of another schema."""
        for name, kind in schema.columns:
            self._add(name, kind)
        return self

    def clear_columns(self) -> CsvSchemaBuilder:
        """Takes all columns out."""
        return self._with(columns=())

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """The character between columns; by default a comma."""
        return self._with(separator=char)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """The character around texts; by default ``"``."""
        return self._with(quote=char)

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Quotes have no meaning."""
        return self._with(quote=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """The character that makes the next one an ordinary one; by default there is none."""
        return self._with(escape=char)

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """No character escapes another."""
        return self._with(escape=None)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """The text that stands for None; an empty field does, too."""
        return self._with(null_value=null_value)

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Whether the first line has the names of the columns, by which they are found."""
        return self._with(use_header=use)

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """As in PyFlink; columns are found by their names either way, and one that a file has not
        is an error."""
        return self._with(strict_headers=strict)

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Whether the first line is left out, where it is no header."""
        return self._with(skip_first_data_row=skip)

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Whether lines that begin with ``#`` are left out."""
        return self._with(allow_comments=allow)

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        """Lines end with ``\\n``; files with ``\\r\\n`` are read as well."""
        if separator not in ("\n", "\r\n"):
            raise refuse(f"CsvSchema: lines end with '\\n', this is {separator!r:.80}")
        return self

    def size(self) -> int:
        """The number of columns so far."""
        return len(self._schema)

    def __len__(self) -> int:
        return len(self._schema)

    def build(self) -> CsvSchema:
        """The schema."""
        return self._schema


@dataclass(frozen=True, kw_only=True)
class CsvReaderFormat(StreamFormat):
    """Reads CSV files by a schema, as columns; functions get rows with the columns' names.

    >>> from flinkpy.datastream.connectors.file_system import FileSource
    >>> FileSource.for_record_stream_format(
    ...     CsvReaderFormat.for_schema(schema), "flights.csv"
    ... ).build()  # doctest: +SKIP
    """

    schema: CsvSchema

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        """The format for files of that schema."""
        _check(schema, "CsvReaderFormat")
        if schema.use_header and schema.skip_first_data_row:
            raise refuse(
                "CsvReaderFormat: set_skip_first_data_row() leaves out the first line, which is "
                "the header here; use one of the two"
            )
        return CsvReaderFormat(charset="utf-8", schema=schema)

    def open_files(
        self, paths: tuple[str | Path, ...], interval_ms: int | None, split_bytes: int | None
    ) -> Source[Any]:
        import pyarrow as pa

        from flinkpy.connectors.files.reading.csv.csv_source import CsvSource

        schema = self.schema
        return CsvSource(
            paths,
            schema=pa.schema([(name, _arrow_type(kind)) for name, kind in schema.columns]),
            delimiter=schema.separator,
            header=schema.use_header,
            null_values=list(dict.fromkeys(("", schema.null_value))),
            quote_char=schema.quote,
            escape=schema.escape,
            comment="#" if schema.allow_comments else None,
            skip_rows=int(schema.skip_first_data_row),
            watch_interval_ms=interval_ms,
        )


class CsvBulkWriters:
    """Writes CSV files by a schema, for ``FileSink.for_bulk_format``.

    >>> from flinkpy.datastream.connectors.file_system import FileSink
    >>> schema = CsvSchema.builder().add_number_column("id").build()
    >>> sink = FileSink.for_bulk_format("out", CsvBulkWriters.for_schema(schema)).build()
    """

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvFormat:
        """The format for files of that schema."""
        from flinkpy.connectors.files.writing.file_formats import CsvFormat

        _check(schema, "CsvBulkWriters")
        if schema.quote != '"':
            raise refuse("CsvBulkWriters: files are written with '\"' around texts that need it")
        return CsvFormat(
            schema.names,
            schema.separator,
            schema.use_header,
            null_value=schema.null_value,
            escape=schema.escape,
        )


def _arrow_type(kind: TypeInformation | DecimalType) -> Any:
    import pyarrow as pa

    from flinkpy.columns.values.arrow_types import arrow_type

    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    return arrow_type(kind)


def _check(schema: object, where: str) -> None:
    if not isinstance(schema, CsvSchema) or not len(schema):
        raise ProgramError(f"{where} takes a CsvSchema with columns, this is {schema!r:.80}")
