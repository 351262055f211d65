"""The formats of messages under tables: their options, what decodes and what encodes rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from flinkpy.common.logical_types.logical_type import RowType, TypeFamily
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.factories.table_options import (
    BOOLEAN,
    CHARACTER,
    STRING,
    TableOption,
    TableValues,
)

if TYPE_CHECKING:
    from flinkpy.formats.port import ColumnarDecoder, ColumnarEncoder


class MessageFormat(ABC):
    """One format."""

    name: ClassVar[str]
    options: ClassVar[tuple[TableOption, ...]] = ()

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
