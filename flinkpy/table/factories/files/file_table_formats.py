"""The formats of files under tables: their options, what reads them and what writes them. The
types that a table declares decide."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from flinkpy.common.changelog_mode import ALL_CHANGES, INSERT_ONLY, ChangelogMode
from flinkpy.common.logical_types.logical_type import RowType, TypeFamily
from flinkpy.common.types import Row
from flinkpy.sql.catalog.catalog_port import CatalogTable
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.factories.batch_lengths import batch_rows
from flinkpy.table.factories.connector_factory import stored_columns
from flinkpy.table.factories.message_formats import CHANGELOG_FORMATS, ChangelogFormat
from flinkpy.table.factories.table_options import (
    BOOLEAN,
    CHARACTER,
    STRING,
    TableOption,
    TableValues,
    milliseconds,
    one_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from flinkpy.connectors.files.reading.column_source import ColumnFileSource
    from flinkpy.connectors.files.writing.file_formats import FileFormat
    from flinkpy.datastream import DataStream, StreamExecutionEnvironment
    from flinkpy.graph.operator_port import ColumnarOperator
    from flinkpy.sql.physical.physical_nodes import SinkNode, TableScan


class FileTableFormat(ABC):
    """One format."""

    name: ClassVar[str]
    options: ClassVar[tuple[TableOption, ...]] = ()
    changes: ClassVar[ChangelogMode] = INSERT_ONLY
    reads_columns: ClassVar[bool] = True  # whether there is a source of them

    @abstractmethod
    def source(
        self, table: CatalogTable, values: TableValues, columns: list[str], batch_rows: int
    ) -> ColumnFileSource:
        """Reads these columns of the table's files, in batches of at most so many rows."""

    def stream(
        self, env: StreamExecutionEnvironment, node: TableScan, values: TableValues, condition: Any
    ) -> DataStream:
        """The rows of a scan. ``condition`` is what the source applies as far as it can."""
        names, of_file = list(node.schema.names), dict(node.metadata)
        in_files = [name for name in names if name not in of_file]
        read = in_files or [stored_columns(node.table)[0].name]  # it says how many rows there are
        source = self.source(node.table, values, read, batch_rows(env))
        if condition is not None:
            source = source.filtered(condition)
        if of_file:
            source = source.with_metadata(node.metadata)
        stream: DataStream = env.from_source(source, source_name=f"Source: {node.path.name}")
        if not of_file or [*read, *of_file] == names:
            return stream
        from flinkpy.columns import col

        return stream.select(*map(col, names))

    @abstractmethod
    def written(self, values: TableValues) -> FileFormat:
        """What the table's files are written in."""

    def as_written(self, stream: DataStream, node: SinkNode, values: TableValues) -> DataStream:
        """The rows of a sink as the files hold them."""
        return stream

    def value(self, values: TableValues, option: str) -> Any:
        """An option of the format."""
        return values[f"{self.name}.{option}"]


class ParquetTables(FileTableFormat):
    """Parquet. Only the columns that a query needs are read, and row groups that a filter excludes
    are left out."""

    name = "parquet"
    options = (
        TableOption(
            "compression",
            one_of("none", "snappy", "gzip", "brotli", "lz4", "zstd"),
            "zstd",
            "How files are compressed.",
        ),
    )

    def source(
        self, table: CatalogTable, values: TableValues, columns: list[str], batch_rows: int
    ) -> ColumnFileSource:
        from flinkpy.connectors.files.reading.column_files import ParquetSource

        return ParquetSource(
            values["path"],
            columns,
            batch_rows,
            schema=declared(table),
            watch_interval_ms=_interval(values),
        )

    def written(self, values: TableValues) -> FileFormat:
        from flinkpy.connectors.files.writing.file_formats import ParquetFormat

        return ParquetFormat(None, self.value(values, "compression"))


class CsvTables(FileTableFormat):
    """CSV. Columns are found by their place, or with ``csv.header`` by the name in the header
    line."""

    name = "csv"
    options = (
        TableOption("field-delimiter", CHARACTER, ",", "What stands between two fields."),
        TableOption("quote-character", CHARACTER, '"', "What stands around a text."),
        TableOption("disable-quote-character", BOOLEAN, False, "Whether quotes have no meaning."),
        TableOption("escape-character", CHARACTER, None, "What makes the next character text."),
        TableOption("null-literal", STRING, "", "A field without quotes that is null."),
        TableOption("allow-comments", BOOLEAN, False, "Whether lines that begin with # are none."),
        TableOption(
            "ignore-parse-errors", BOOLEAN, False, "Whether values that do not fit are null."
        ),
        TableOption("header", BOOLEAN, False, "Whether files begin with the names (not in Flink)."),
    )

    def source(
        self, table: CatalogTable, values: TableValues, columns: list[str], batch_rows: int
    ) -> ColumnFileSource:
        from flinkpy.connectors.files.reading.column_files import CsvSource

        in_files = [
            column.name
            for column in stored_columns(table)
            if column.name not in table.partition_keys
        ]
        has_header = self.value(values, "header")
        return CsvSource(
            values["path"],
            columns,
            declared(table),
            self.value(values, "field-delimiter"),
            has_header,
            batch_rows=batch_rows,
            null_values=(self.value(values, "null-literal"),),
            quote_char=self._quote(values),
            column_names=None if has_header else in_files,
            comment="#" if self.value(values, "allow-comments") else None,
            on_error="null" if self.value(values, "ignore-parse-errors") else "fail",
            watch_interval_ms=_interval(values),
            escape=self.value(values, "escape-character"),
        )

    def _quote(self, values: TableValues) -> str | None:
        if self.value(values, "disable-quote-character"):
            return None
        quote: str = self.value(values, "quote-character")
        return quote

    def written(self, values: TableValues) -> FileFormat:
        from flinkpy.connectors.files.writing.file_formats import CsvFormat

        return CsvFormat(
            None,
            self.value(values, "field-delimiter"),
            self.value(values, "header"),
            null_value=self.value(values, "null-literal"),
        )


class JsonTables(FileTableFormat):
    """One JSON object a line. Fields that the table does not declare are passed over."""

    name = "json"
    options = (
        TableOption(
            "ignore-parse-errors", BOOLEAN, False, "Whether values that do not fit are null."
        ),
    )

    def source(
        self, table: CatalogTable, values: TableValues, columns: list[str], batch_rows: int
    ) -> ColumnFileSource:
        from flinkpy.connectors.files.reading.column_files import JsonLinesSource

        return JsonLinesSource(
            values["path"],
            columns,
            declared(table),
            batch_rows=batch_rows,
            ignore_extra_fields=True,
            on_error="null" if self.value(values, "ignore-parse-errors") else "fail",
            watch_interval_ms=_interval(values),
        )

    def written(self, values: TableValues) -> FileFormat:
        from flinkpy.connectors.files.writing.file_formats import JsonLinesFormat

        return JsonLinesFormat()


class AvroTables(FileTableFormat):
    """Avro container files; needs the extra ``flinkpy[avro]``."""

    name = "avro"
    options = (
        TableOption(
            "codec",
            one_of("null", "deflate", "bzip2", "snappy", "zstandard"),
            "deflate",
            "How blocks are compressed.",
        ),
    )

    def source(
        self, table: CatalogTable, values: TableValues, columns: list[str], batch_rows: int
    ) -> ColumnFileSource:
        from flinkpy.connectors.files.reading.avro_source import AvroSource

        return AvroSource(
            values["path"],
            columns,
            batch_rows,
            schema=declared(table),
            watch_interval_ms=_interval(values),
        )

    def written(self, values: TableValues) -> FileFormat:
        from flinkpy.connectors.files.writing.file_formats import AvroFormat

        return AvroFormat(None, self.value(values, "codec"))


class RawTables(FileTableFormat):
    """A line is a row, and the only column its text."""

    name = "raw"
    reads_columns = False

    def source(
        self, table: CatalogTable, values: TableValues, columns: list[str], batch_rows: int
    ) -> ColumnFileSource:
        raise NotImplementedError

    def stream(
        self, env: StreamExecutionEnvironment, node: TableScan, values: TableValues, condition: Any
    ) -> DataStream:
        from flinkpy.columns import col
        from flinkpy.common.typeinfo import Types
        from flinkpy.connectors.files.reading.text_files import TextFileSource

        name = _only_text(node.table)
        _refuse_watching(values, "raw")
        lines = env.from_source(
            TextFileSource(values["path"]), source_name=f"Source: {node.path.name}"
        )
        row = Types.ROW_NAMED([name], [Types.STRING()])
        stream: DataStream = lines.map(Row, output_type=row).select(
            *map(col, node.schema.names or [name])
        )
        return stream

    def written(self, values: TableValues) -> FileFormat:
        from flinkpy.connectors.files.writing.file_formats import TextFormat

        return TextFormat(_only_value)


class ChangeTables(FileTableFormat):
    """A line is a message that tells what becomes of rows. Files are read one after the other, so
    that changes keep their order."""

    changes = ALL_CHANGES
    reads_columns = False

    def __init__(self, messages: ChangelogFormat) -> None:
        self._messages = messages
        self.name, self.options = messages.name, messages.options  # type: ignore[misc]
        self.__doc__ = f"{messages.__doc__} {type(self).__doc__}"  # for the page of connectors

    def source(
        self, table: CatalogTable, values: TableValues, columns: list[str], batch_rows: int
    ) -> ColumnFileSource:
        raise NotImplementedError

    def stream(
        self, env: StreamExecutionEnvironment, node: TableScan, values: TableValues, condition: Any
    ) -> DataStream:
        from flinkpy.columns import col
        from flinkpy.common.typeinfo import Types
        from flinkpy.connectors.files.reading.text_files import TextFileSource
        from flinkpy.datastream.streams.recorded import copy_place
        from flinkpy.relational.messages.change_texts import ChangesOfTexts

        self._check(node.table, values)
        _refuse_watching(values, self.name)
        columns = stored_columns(node.table)
        row = RowType.of(*((column.name, column.type) for column in columns))
        source = TextFileSource(values["path"])
        texts = env.from_source(source, source_name=f"Source: {node.path.name}").set_parallelism(1)
        line = Types.ROW_NAMED(["line"], [Types.STRING()])
        lines = texts.map(Row, output_type=line).set_parallelism(1)  # changes stay in order
        decoder = ChangesOfTexts(self._messages.decoder(row, values))
        changes = applied(lines, "Changes", decoder)
        stream: DataStream = changes.select(*map(col, node.schema.names or row.names[:1]))
        copy_place(changes.recorded.transformation, stream.recorded.transformation)
        return stream

    def as_written(self, stream: DataStream, node: SinkNode, values: TableValues) -> DataStream:
        from flinkpy.relational.messages.change_texts import TextsOfChanges

        self._check(node.table, values)
        encoder = self._messages.encoder(node.schema, values)
        return applied(stream, "Messages", TextsOfChanges(encoder))

    def _check(self, table: CatalogTable, values: TableValues) -> None:
        if table.partition_keys:
            raise ValidationError(
                f"a table of files of {self.name} has no partitions: a row would have to leave a "
                "folder when its column changes"
            )

    def written(self, values: TableValues) -> FileFormat:
        from flinkpy.connectors.files.writing.file_formats import TextFormat

        return TextFormat(_only_value)


def _refuse_watching(values: TableValues, name: str) -> None:
    if values["source.monitor-interval"] is not None:
        raise ValidationError(f"a table of {name} files cannot have a 'source.monitor-interval'")


def applied(stream: DataStream, name: str, operator: ColumnarOperator) -> DataStream:
    """What an operator over columns makes of a stream, where it is."""
    from flinkpy.datastream import DataStream
    from flinkpy.datastream.streams.recorded import copy_place

    columns = stream.recorded.as_columns(name, in_place=True)
    made = columns.apply_columns(name, operator)
    copy_place(columns.transformation, made.transformation)
    return DataStream(stream.get_execution_environment(), made)


def _only_value(row: Row) -> str:
    return "" if row[0] is None else str(row[0])


def _only_text(table: CatalogTable) -> str:
    """Raises ValidationError for a table that a line cannot be a row of."""
    columns = stored_columns(table)
    if len(columns) != 1 or not columns[0].type.is_a(TypeFamily.CHARACTER_STRING):
        raise ValidationError("a table of raw files has one column, of STRING")
    return columns[0].name


def declared(table: CatalogTable) -> pa.Schema:
    """The columns that the table stores, in Arrow's types; NOT NULL ones may not be null."""
    from flinkpy.columns.sql.arrow_of_logical import arrow_schema_of

    columns = stored_columns(table)
    return arrow_schema_of(RowType.of(*((column.name, column.type) for column in columns)))


def _interval(values: TableValues) -> int | None:
    interval = values["source.monitor-interval"]
    return None if interval is None else milliseconds(interval)


_ALL: tuple[FileTableFormat, ...] = (
    ParquetTables(),
    CsvTables(),
    JsonTables(),
    AvroTables(),
    RawTables(),
    *map(ChangeTables, CHANGELOG_FORMATS.values()),
)
FORMATS: dict[str, FileTableFormat] = {each.name: each for each in _ALL}
