"""``kafka``: a topic as a table. Its rows are only added, unless the format of its messages tells
changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.sql.catalog.catalog_port import CatalogTable, SinkAbilities, SourceAbilities
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.factories.connector_factory import CONNECTOR, ConnectorFactory, stored_columns
from flinkpy.table.factories.kafka.kafka_clients import (
    METADATA,
    SCAN_OPTIONS,
    SINK_OPTIONS,
    START_OPTIONS,
    TOPIC_OPTIONS,
    check_read,
    check_written,
    declared_row,
    kafka_sink,
    key_encoder,
    offsets,
    source_builder,
)
from flinkpy.table.factories.kafka.kafka_keys import (
    KEY_OPTIONS,
    DecodedKeys,
    EncodedColumns,
    KeyFields,
)
from flinkpy.table.factories.message_formats import (
    ALL_FORMATS,
    MESSAGE_FORMATS,
    AnyFormat,
    ChangelogFormat,
    MessageFormat,
    format_options,
)
from flinkpy.table.factories.table_options import (
    LIST,
    OptionTable,
    TableOption,
    TableValues,
    one_of,
)
from flinkpy.table.factories.written_streams import write_stream

if TYPE_CHECKING:
    from flinkpy.connectors.kafka.kafka_source import KafkaSource
    from flinkpy.datastream import DataStream, StreamExecutionEnvironment
    from flinkpy.sql.physical.physical_nodes import SinkNode, TableScan

KEY_COLUMN = "$key"


class KafkaFactory(ConnectorFactory):
    """Reads and writes topics. With the formats ``debezium-json`` and ``canal-json`` a message
    tells what becomes of rows."""

    identifier = "kafka"
    options = (
        *TOPIC_OPTIONS,
        TableOption("format", one_of(*ALL_FORMATS), None, "What messages are."),
        TableOption("value.format", one_of(*ALL_FORMATS), None, "The same by another name."),
        TableOption("key.format", one_of(*MESSAGE_FORMATS), None, "What keys are."),
        TableOption("key.fields", LIST, None, "The columns of the key, semicolons between."),
        *KEY_OPTIONS,
        *START_OPTIONS,
        *SCAN_OPTIONS,
        *SINK_OPTIONS,
    )

    def option_table(self, table: CatalogTable) -> OptionTable:
        of_formats = format_options(
            table, {"format": "", "value.format": "value.", "key.format": "key."}
        )
        return OptionTable((CONNECTOR, *self.options, *of_formats))

    def abilities_to_read(self, table: CatalogTable, values: TableValues) -> SourceAbilities:
        _check(table, values)
        check_read(values, "kafka")
        return SourceAbilities(
            is_bounded=values["scan.bounded.mode"] != "unbounded",
            changes=_format(values).changes,
            metadata=METADATA,
        )

    def abilities_to_write(self, table: CatalogTable, values: TableValues) -> SinkAbilities:
        _check(table, values)
        check_written(values, "kafka")
        return SinkAbilities(changes=_format(values).changes)

    def scan(self, env: StreamExecutionEnvironment, node: TableScan) -> DataStream:
        from flinkpy.columns import col
        from flinkpy.columns.sql.arrow_of_logical import arrow_schema_of

        values = self.values(node.table)
        keys = _keys(node.table, values)
        source = _source(node, values, keys)
        stream: DataStream = env.from_source(source, source_name=f"Source: {node.path.name}")
        if keys.from_key:
            decoder = _key_format(values).decoder(
                keys.key_type(declared_row(node.table)), values.within("key.")
            )
            schema = arrow_schema_of(node.schema)
            decoded = DecodedKeys(decoder, KEY_COLUMN, keys.key, schema)
            return stream.map_batches(decoded, schema=schema)
        return stream.select(*map(col, node.schema.names))

    def sink(self, stream: DataStream, node: SinkNode) -> None:
        values = self.values(node.table)
        keys = _keys(node.table, values)
        row = keys.value_type(node.schema)
        format = _format(values)
        value = format.encoder(row, _of_value(values))
        if row.names != node.schema.names and isinstance(format, MessageFormat):
            value = EncodedColumns(value, row.names, row.names)
        key = None
        if keys.key:
            of_key = _key_format(values).encoder(keys.key_type(node.schema), values.within("key."))
            key = key_encoder(keys, node.schema, of_key)
        write_stream(stream, node, kafka_sink(values, value, key), values["sink.parallelism"])


def _check(table: CatalogTable, values: TableValues) -> None:
    _keys(table, values)
    if table.primary_key is not None and _format(values).changes.is_insert_only:
        raise ValidationError(
            f"a table with the connector 'kafka' and the format {_format_name(values)!r} has no "
            "PRIMARY KEY: each message is one more row; with the connector 'upsert-kafka' a "
            "message replaces the row of its key"
        )


def _format_name(values: TableValues) -> str:
    name: str | None = values["format"] or values["value.format"]
    if name is None:
        raise ValidationError("a table with the connector 'kafka' needs the option 'format'")
    return name


def _format(values: TableValues) -> AnyFormat:
    return ALL_FORMATS[_format_name(values)]


def _of_value(values: TableValues) -> TableValues:
    """The options of the value's format: their names have a prefix if that format's has."""
    return values if values["format"] is not None else values.within("value.")


def _key_format(values: TableValues) -> MessageFormat:
    return MESSAGE_FORMATS[values["key.format"]]


def _keys(table: CatalogTable, values: TableValues) -> KeyFields:
    _format(values)
    return KeyFields.of([column.name for column in stored_columns(table)], values)


def _source(node: TableScan, values: TableValues, keys: KeyFields) -> KafkaSource:
    from flinkpy.connectors.kafka.change_decoding import ChangesInValues
    from flinkpy.connectors.kafka.record_decoding import ColumnNames

    declared = keys.value_type(declared_row(node.table))
    beside: dict[str, Any] = {key: name for name, key in node.metadata}
    if keys.from_key:
        beside["key"] = KEY_COLUMN
    builder = source_builder(values).set_starting_offsets(offsets(values, "startup"))
    format = _format(values)
    if isinstance(format, ChangelogFormat):
        changes = format.decoder(declared, _of_value(values))
        builder.set_decoding(ChangesInValues(changes, ColumnNames(**beside)))
    else:
        builder.set_columns(format.decoder(declared, _of_value(values)), **beside)
    return builder.build()
