"""``upsert-kafka``: a topic as a table with a primary key. A message replaces the row of its key,
one without a value deletes it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from flinkpy.common.changelog_mode import ChangelogMode
from flinkpy.common.types import RowKind
from flinkpy.sql.catalog.catalog_port import CatalogTable, SinkAbilities, SourceAbilities
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.factories.connector_factory import CONNECTOR, ConnectorFactory, stored_columns
from flinkpy.table.factories.kafka.kafka_clients import (
    METADATA,
    SCAN_OPTIONS,
    SINK_OPTIONS,
    TOPIC_OPTIONS,
    check_read,
    check_written,
    declared_row,
    kafka_sink,
    key_encoder,
    source_builder,
)
from flinkpy.table.factories.kafka.kafka_keys import KEY_OPTIONS, EncodedColumns, KeyFields
from flinkpy.table.factories.message_formats import MESSAGE_FORMATS, format_options
from flinkpy.table.factories.table_options import (
    DURATION,
    INT,
    OptionTable,
    TableOption,
    TableValues,
    one_of,
)
from flinkpy.table.factories.written_streams import write_stream

if TYPE_CHECKING:
    from flinkpy.datastream import DataStream, StreamExecutionEnvironment
    from flinkpy.operators.sinks.sink_port import Sink
    from flinkpy.sql.physical.physical_nodes import SinkNode, TableScan

_READ = ChangelogMode.of(RowKind.UPDATE_AFTER, RowKind.DELETE)
_FORMATS = {"key.format": "key.", "value.format": "value."}


class UpsertKafkaFactory(ConnectorFactory):
    """Reads and writes topics whose messages are upserts. The table needs a PRIMARY KEY, which is
    the key of the messages. It is read from the first message on, as a table is its whole
    history."""

    identifier = "upsert-kafka"
    options = (
        *TOPIC_OPTIONS,
        TableOption("key.format", one_of(*MESSAGE_FORMATS), None, "What keys are.", required=True),
        TableOption(
            "value.format", one_of(*MESSAGE_FORMATS), None, "What values are.", required=True
        ),
        *KEY_OPTIONS,
        *SCAN_OPTIONS,
        *SINK_OPTIONS,
        TableOption(
            "sink.buffer-flush.max-rows",
            INT,
            0,
            "How many rows are gathered, of which the last of each key is written; needs the "
            "interval too.",
        ),
        TableOption(
            "sink.buffer-flush.interval",
            DURATION,
            timedelta(0),
            "How long rows are gathered; needs max-rows too. A checkpoint writes them too.",
        ),
    )

    def option_table(self, table: CatalogTable) -> OptionTable:
        return OptionTable((CONNECTOR, *self.options, *format_options(table, _FORMATS)))

    def abilities_to_read(self, table: CatalogTable, values: TableValues) -> SourceAbilities:
        _keys(table, values)
        check_read(values, "upsert-kafka")
        return SourceAbilities(
            is_bounded=values["scan.bounded.mode"] != "unbounded", changes=_READ, metadata=METADATA
        )

    def abilities_to_write(self, table: CatalogTable, values: TableValues) -> SinkAbilities:
        _keys(table, values)
        check_written(values, "upsert-kafka")
        _buffer(values)
        return SinkAbilities(changes=ChangelogMode.upsert())

    def scan(self, env: StreamExecutionEnvironment, node: TableScan) -> DataStream:
        from flinkpy.columns import col
        from flinkpy.columns.sql.arrow_of_logical import arrow_schema_of
        from flinkpy.connectors.kafka.change_decoding import Upserts
        from flinkpy.connectors.kafka.kafka_offsets import KafkaOffsetsInitializer
        from flinkpy.connectors.kafka.record_decoding import ColumnNames
        from flinkpy.formats.changes.upserts import UpsertDecoder

        values, declared = self.values(node.table), declared_row(node.table)
        keys = _keys(node.table, values)
        decoder = UpsertDecoder(
            MESSAGE_FORMATS[values["key.format"]].decoder(
                keys.key_type(declared), values.within("key.")
            ),
            MESSAGE_FORMATS[values["value.format"]].decoder(
                keys.value_type(declared), values.within("value.")
            ),
            keys.key,
            arrow_schema_of(declared),
        )
        beside: dict[str, Any] = {key: name for name, key in node.metadata}
        source = (
            source_builder(values)
            .set_starting_offsets(KafkaOffsetsInitializer.earliest())
            .set_decoding(Upserts(decoder, ColumnNames(**beside)))
            .build()
        )
        stream: DataStream = env.from_source(source, source_name=f"Source: {node.path.name}")
        return stream.select(*map(col, node.schema.names))

    def sink(self, stream: DataStream, node: SinkNode) -> None:
        from flinkpy.formats.changes.upserts import UpsertEncoder

        values = self.values(node.table)
        keys = _keys(node.table, values)
        row = keys.value_type(node.schema)
        of_value = MESSAGE_FORMATS[values["value.format"]].encoder(row, values.within("value."))
        of_key = MESSAGE_FORMATS[values["key.format"]].encoder(
            keys.key_type(node.schema), values.within("key.")
        )
        sink: Sink = kafka_sink(
            values,
            UpsertEncoder(EncodedColumns(of_value, row.names, row.names)),
            key_encoder(keys, node.schema, of_key),
        )
        buffer = _buffer(values)
        if buffer is not None:
            from flinkpy.connectors.kafka.writing.reduced_upserts import ReducedUpserts

            sink = ReducedUpserts(sink, keys.key, *buffer)
        write_stream(stream, node, sink, values["sink.parallelism"])


def _keys(table: CatalogTable, values: TableValues) -> KeyFields:
    if table.primary_key is None:
        raise ValidationError(
            "a table with the connector 'upsert-kafka' needs a PRIMARY KEY (...) NOT ENFORCED: its "
            "columns are the key of the messages, and say which row a message replaces"
        )
    columns = [column.name for column in stored_columns(table)]
    return KeyFields.with_key(tuple(table.primary_key.columns), columns, values)


def _buffer(values: TableValues) -> tuple[int, float] | None:
    """How many rows are gathered, and how many seconds; None if they are written as they come."""
    most, interval = values["sink.buffer-flush.max-rows"], values["sink.buffer-flush.interval"]
    seconds = interval.total_seconds()
    if (most > 0) != (seconds > 0):
        raise ValidationError(
            "'sink.buffer-flush.max-rows' and 'sink.buffer-flush.interval' stand together: one of "
            "them is missing, or not above 0"
        )
    return (most, seconds) if most > 0 else None
