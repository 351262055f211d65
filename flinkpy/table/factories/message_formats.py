"""The formats of messages under tables: their options, what decodes and what encodes rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from flinkpy.common.changelog_mode import ALL_CHANGES, INSERT_ONLY, ChangelogMode
from flinkpy.common.logical_types.logical_type import RowType, TypeFamily
from flinkpy.sql.catalog.catalog_port import CatalogTable
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.factories.table_options import (
    BOOLEAN,
    CHARACTER,
    STRING,
    TableOption,
    TableValues,
    prefixed,
)

if TYPE_CHECKING:
    from flinkpy.formats.port import (
        ChangelogDecoder,
        ChangelogEncoder,
        ColumnarDecoder,
        ColumnarEncoder,
    )


class MessageFormat(ABC):
    """A format in which each message is one more row."""

    name: ClassVar[str]
    options: ClassVar[tuple[TableOption, ...]] = ()
    changes: ClassVar[ChangelogMode] = INSERT_ONLY

    @abstractmethod
    def decoder(self, declared: RowType, values: TableValues) -> ColumnarDecoder:
        """Messages as the declared columns."""

    @abstractmethod
    def encoder(self, written: RowType, values: TableValues) -> ColumnarEncoder:
        """Rows of these columns as messages."""


class JsonMessages(MessageFormat):
    """One JSON object a message."""

    name = "json"
    options = (
        TableOption(
            "fail-on-missing-field", BOOLEAN, False, "Whether a field that is absent is an error."
        ),
    )

    def decoder(self, declared: RowType, values: TableValues) -> ColumnarDecoder:
        from flinkpy.formats.json.json_columns import JsonColumnarDecoder

        return JsonColumnarDecoder(_schema(declared), values["json.fail-on-missing-field"])

    def encoder(self, written: RowType, values: TableValues) -> ColumnarEncoder:
        from flinkpy.formats.json.json_columns import JsonColumnarEncoder

        return JsonColumnarEncoder()


class CsvMessages(MessageFormat):
    """One line of CSV a message."""

    name = "csv"
    options = (
        TableOption("field-delimiter", CHARACTER, ",", "What stands between two fields."),
        TableOption("quote-character", CHARACTER, '"', "What stands around a text."),
        TableOption("escape-character", CHARACTER, None, "What makes the next character text."),
        TableOption("null-literal", STRING, "", "A field that is null."),
    )

    def decoder(self, declared: RowType, values: TableValues) -> ColumnarDecoder:
        from flinkpy.formats.csv.csv_columns import CsvColumnarDecoder

        return CsvColumnarDecoder(_schema(declared), **_dialect(values))

    def encoder(self, written: RowType, values: TableValues) -> ColumnarEncoder:
        from flinkpy.formats.csv.csv_columns import CsvColumnarEncoder

        return CsvColumnarEncoder(**_dialect(values))


class RawMessages(MessageFormat):
    """A message is the only column: a text or bytes."""

    name = "raw"

    def decoder(self, declared: RowType, values: TableValues) -> ColumnarDecoder:
        from flinkpy.formats.raw_columns import RawColumnarDecoder, StringColumnarDecoder

        field = _only_field(declared)
        is_text = field.type.is_a(TypeFamily.CHARACTER_STRING)
        return (StringColumnarDecoder if is_text else RawColumnarDecoder)(field.name)

    def encoder(self, written: RowType, values: TableValues) -> ColumnarEncoder:
        from flinkpy.formats.raw_columns import RawColumnarEncoder

        return RawColumnarEncoder(_only_field(written).name)


class AvroMessages(MessageFormat):
    """An Avro record a message, with the schema that follows from the columns."""

    name = "avro"

    def decoder(self, declared: RowType, values: TableValues) -> ColumnarDecoder:
        from flinkpy.formats.avro.avro_columns import AvroColumnarDecoder

        return AvroColumnarDecoder(_avro_text(declared))

    def encoder(self, written: RowType, values: TableValues) -> ColumnarEncoder:
        from flinkpy.formats.avro.avro_columns import AvroColumnarEncoder

        return AvroColumnarEncoder(_avro_text(written))


# -- messages that tell changes --------------------------------------------------------------------


class ChangelogFormat(ABC):
    """A format in which a message tells what becomes of rows."""

    name: ClassVar[str]
    options: ClassVar[tuple[TableOption, ...]] = ()
    changes: ClassVar[ChangelogMode] = ALL_CHANGES

    @abstractmethod
    def decoder(self, declared: RowType, values: TableValues) -> ChangelogDecoder:
        """Messages as changes of the declared columns."""

    @abstractmethod
    def encoder(self, written: RowType, values: TableValues) -> ChangelogEncoder:
        """Changes of rows as messages that have these columns."""


_IGNORES_ERRORS = TableOption(
    "ignore-parse-errors", BOOLEAN, False, "Whether malformed messages are left out."
)


class DebeziumJson(ChangelogFormat):
    """The row before, the row after and an operation. Reads updates as -U and +U; writes inserts
    and deletes alone, as Flink does."""

    name = "debezium-json"
    options = (
        TableOption("schema-include", BOOLEAN, False, "Whether messages have their schema."),
        _IGNORES_ERRORS,
    )

    def decoder(self, declared: RowType, values: TableValues) -> ChangelogDecoder:
        from flinkpy.formats.changes.debezium_json import DebeziumJsonDecoder

        return DebeziumJsonDecoder(
            _schema(declared),
            schema_include=values["debezium-json.schema-include"],
            ignore_parse_errors=values["debezium-json.ignore-parse-errors"],
        )

    def encoder(self, written: RowType, values: TableValues) -> ChangelogEncoder:
        from flinkpy.formats.changes.debezium_json import DebeziumJsonEncoder

        if values["debezium-json.schema-include"]:
            raise ValidationError(
                "'debezium-json.schema-include' is for reading: messages that are written have no "
                "schema"
            )
        return DebeziumJsonEncoder(written.names)


class CanalJson(ChangelogFormat):
    """Rows, what their changed fields were before, and a type. Reads updates as -U and +U; writes
    inserts and deletes alone, as Flink does."""

    name = "canal-json"
    options = (
        _IGNORES_ERRORS,
        TableOption("database.include", STRING, None, "A pattern: of which databases it reads."),
        TableOption("table.include", STRING, None, "A pattern: of which tables it reads."),
    )

    def decoder(self, declared: RowType, values: TableValues) -> ChangelogDecoder:
        from flinkpy.formats.changes.canal_json import CanalJsonDecoder

        return CanalJsonDecoder(
            _schema(declared),
            databases=values["canal-json.database.include"],
            tables=values["canal-json.table.include"],
            ignore_parse_errors=values["canal-json.ignore-parse-errors"],
        )

    def encoder(self, written: RowType, values: TableValues) -> ChangelogEncoder:
        from flinkpy.formats.changes.canal_json import CanalJsonEncoder

        return CanalJsonEncoder(written.names)


def _schema(row: RowType) -> Any:
    from flinkpy.columns.sql.arrow_of_logical import arrow_schema_of

    return arrow_schema_of(row)


def _avro_text(row: RowType) -> str:
    import json

    from flinkpy.connectors.files.writing.avro.avro_types import avro_schema

    return json.dumps(avro_schema(_schema(row)))


def _dialect(values: TableValues) -> dict[str, Any]:
    return {
        "delimiter": values["csv.field-delimiter"],
        "quote": values["csv.quote-character"],
        "escape": values["csv.escape-character"],
        "null_literal": values["csv.null-literal"],
    }


def _only_field(row: RowType) -> Any:
    field = row.fields[0] if len(row.fields) == 1 else None
    if field is None or not (
        field.type.is_a(TypeFamily.CHARACTER_STRING) or field.type.is_a(TypeFamily.BINARY_STRING)
    ):
        raise ValidationError("a table of raw messages has one column, of STRING or BYTES")
    return field


MESSAGE_FORMATS: dict[str, MessageFormat] = {
    each.name: each for each in (JsonMessages(), CsvMessages(), AvroMessages(), RawMessages())
}
CHANGELOG_FORMATS: dict[str, ChangelogFormat] = {
    each.name: each for each in (DebeziumJson(), CanalJson())
}
AnyFormat: TypeAlias = "MessageFormat | ChangelogFormat"
ALL_FORMATS: dict[str, AnyFormat] = {**MESSAGE_FORMATS, **CHANGELOG_FORMATS}


def format_options(table: CatalogTable, prefixes: Mapping[str, str]) -> list[TableOption]:
    """The options of a table's formats; ``prefixes`` has what the names of these options begin with
    for each option that names a format."""
    own: list[TableOption] = []
    for key, prefix in prefixes.items():
        name = table.options.get(key, "").lower()
        if name in ALL_FORMATS:
            own += prefixed(ALL_FORMATS[name].options, f"{prefix}{name}")
    return own
