"""``kafka``: a topic as a table whose rows are only added."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.common.logical_types.logical_type import (
    UNBOUNDED,
    BigIntType,
    IntType,
    LocalZonedTimestampType,
    RowType,
    VarCharType,
)
from flinkpy.sql.catalog.catalog_port import CatalogTable, SinkAbilities, SourceAbilities
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.factories.connector_factory import CONNECTOR, ConnectorFactory, stored_columns
from flinkpy.table.factories.kafka_keys import (
    ALL,
    EXCEPT_KEY,
    DecodedKeys,
    EncodedColumns,
    KeyFields,
)
from flinkpy.table.factories.message_formats import MESSAGE_FORMATS, MessageFormat
from flinkpy.table.factories.table_options import (
    DURATION,
    INT,
    LIST,
    LONG,
    STRING,
    OptionTable,
    TableOption,
    TableValues,
    milliseconds,
    one_of,
    prefixed,
)

if TYPE_CHECKING:
    from flinkpy.connectors.kafka.kafka_source import KafkaSource
    from flinkpy.datastream import DataStream, StreamExecutionEnvironment
    from flinkpy.sql.physical.physical_nodes import SinkNode, TableScan

KEY_COLUMN = "$key"
METADATA = {
    "topic": VarCharType(UNBOUNDED).not_null(),
    "partition": IntType(is_nullable=False),
    "offset": BigIntType(is_nullable=False),
    "timestamp": LocalZonedTimestampType(precision=3, is_nullable=False),
}


class KafkaFactory(ConnectorFactory):
    """Reads and writes topics."""

    identifier = "kafka"
    options = (
        TableOption("topic", LIST, None, "The topic; several to read have semicolons between."),
        TableOption("topic-pattern", STRING, None, "Reads all topics whose names match."),
        TableOption("properties.bootstrap.servers", STRING, None, "The brokers.", required=True),
        TableOption("properties.group.id", STRING, None, "The group whose offsets are kept."),
        TableOption("properties.*", STRING, None, "Other properties of Kafka's clients."),
        TableOption("format", one_of(*MESSAGE_FORMATS), None, "What messages are."),
        TableOption("value.format", one_of(*MESSAGE_FORMATS), None, "The same by another name."),
        TableOption("key.format", one_of(*MESSAGE_FORMATS), None, "What keys are."),
        TableOption("key.fields", LIST, None, "The columns of the key, semicolons between."),
        TableOption("key.fields-prefix", STRING, "", "What they begin with in the table alone."),
        TableOption(
            "value.fields-include",
            one_of(ALL, EXCEPT_KEY),
            ALL,
            "Whether the value has the key's columns too.",
        ),
        TableOption(
            "scan.startup.mode",
            one_of("earliest-offset", "latest-offset", "group-offsets", "timestamp"),
            "group-offsets",
            "Where reading begins.",
        ),
        TableOption("scan.startup.timestamp-millis", LONG, None, "For the mode timestamp."),
        TableOption(
            "scan.bounded.mode",
            one_of("unbounded", "latest-offset", "group-offsets", "timestamp"),
            "unbounded",
            "Where reading ends.",
        ),
        TableOption("scan.bounded.timestamp-millis", LONG, None, "For the mode timestamp."),
        TableOption(
            "scan.topic-partition-discovery.interval",
            DURATION,
            None,
            "How often new partitions are looked for; five minutes if it is left out.",
        ),
        TableOption(
            "sink.delivery-guarantee",
            one_of("at-least-once", "exactly-once", "none"),
            "at-least-once",
            "What a failure may do to written rows.",
        ),
        TableOption("sink.transactional-id-prefix", STRING, None, "Needed for exactly-once."),
        TableOption("sink.parallelism", INT, None, "How many writers there are."),
    )

    def option_table(self, table: CatalogTable) -> OptionTable:
        own: list[TableOption] = []
        for key, prefix in (("format", ""), ("value.format", "value."), ("key.format", "key.")):
            name = table.options.get(key, "").lower()
            if name in MESSAGE_FORMATS:
                own += prefixed(MESSAGE_FORMATS[name].options, f"{prefix}{name}")
        return OptionTable((CONNECTOR, *self.options, *own))

    def abilities_to_read(self, table: CatalogTable, values: TableValues) -> SourceAbilities:
        _keys(table, values)
        if (values["topic"] is None) == (values["topic-pattern"] is None):
            raise ValidationError(
                "a table with the connector 'kafka' has either 'topic' or 'topic-pattern'"
            )
        return SourceAbilities(
            is_bounded=values["scan.bounded.mode"] != "unbounded", metadata=METADATA
        )

    def abilities_to_write(self, table: CatalogTable, values: TableValues) -> SinkAbilities:
        _keys(table, values)
        if values["topic"] is None or len(values["topic"]) != 1:
            raise ValidationError("a table with the connector 'kafka' is written to one 'topic'")
        if (
            values["sink.delivery-guarantee"] == "exactly-once"
            and values["sink.transactional-id-prefix"] is None
        ):
            raise ValidationError("exactly-once needs the option 'sink.transactional-id-prefix'")
        return SinkAbilities()

    def scan(self, env: StreamExecutionEnvironment, node: TableScan) -> DataStream:
        from flinkpy.columns import col
        from flinkpy.columns.sql.arrow_of_logical import arrow_schema_of

        values = self.values(node.table)
        keys = _keys(node.table, values)
        source = _source(node, values, keys)
        stream: DataStream = env.from_source(source, source_name=f"Source: {node.path.name}")
        if keys.from_key:
            decoder = _key_format(values).decoder(
                keys.key_type(_declared(node.table)), values.within("key.")
            )
            schema = arrow_schema_of(node.schema)
            decoded = DecodedKeys(decoder, KEY_COLUMN, keys.key, schema)
            return stream.map_batches(decoded, schema=schema)
        return stream.select(*map(col, node.schema.names))

    def sink(self, stream: DataStream, node: SinkNode) -> None:
        from flinkpy.connectors.delivery_guarantee import DeliveryGuarantee
        from flinkpy.connectors.kafka.writing.record_serialization import (
            KafkaRecordSerializationSchema,
        )
        from flinkpy.connectors.kafka.writing.sink_builders import KafkaSink

        values = self.values(node.table)
        keys = _keys(node.table, values)
        row = keys.value_type(node.schema)
        encoder = _format(values).encoder(row, _of_value(values))
        records = (
            KafkaRecordSerializationSchema.builder()
            .set_topic(values["topic"][0])
            .set_value_serialization_schema(
                encoder
                if row.names == node.schema.names
                else EncodedColumns(encoder, row.names, row.names)
            )
        )
        if keys.key:
            key_row = keys.key_type(node.schema)
            key_encoder = _key_format(values).encoder(key_row, values.within("key."))
            records.set_key_serialization_schema(
                EncodedColumns(key_encoder, keys.key, key_row.names)
            )
        record = records.build()
        guarantee = values["sink.delivery-guarantee"].replace("-", "_").upper()
        builder = (
            KafkaSink.builder()
            .set_bootstrap_servers(values["properties.bootstrap.servers"])
            .set_record_serializer(record)
            .set_delivery_guarantee(DeliveryGuarantee[guarantee])
        )
        if values["sink.transactional-id-prefix"] is not None:
            builder.set_transactional_id_prefix(values["sink.transactional-id-prefix"])
        for key, value in values.with_prefix("properties.").items():
            if key not in ("bootstrap.servers", "group.id"):
                builder.set_property(key, value)
        written = stream.sink_to(builder.build()).name(f"Sink: {node.path.name}")
        if values["sink.parallelism"] is not None:
            written.set_parallelism(values["sink.parallelism"])


def _format(values: TableValues) -> MessageFormat:
    name = values["format"] or values["value.format"]
    if name is None:
        raise ValidationError("a table with the connector 'kafka' needs the option 'format'")
    return MESSAGE_FORMATS[name]


def _of_value(values: TableValues) -> TableValues:
    """The options of the value's format: their names have a prefix if that format's has."""
    return values if values["format"] is not None else values.within("value.")


def _key_format(values: TableValues) -> MessageFormat:
    return MESSAGE_FORMATS[values["key.format"]]


def _keys(table: CatalogTable, values: TableValues) -> KeyFields:
    _format(values)
    return KeyFields.of([column.name for column in stored_columns(table)], values)


def _declared(table: CatalogTable) -> RowType:
    return RowType.of(*((column.name, column.type) for column in stored_columns(table)))


def _source(node: TableScan, values: TableValues, keys: KeyFields) -> KafkaSource:
    from flinkpy.connectors.kafka.kafka_source import KafkaSource

    declared = keys.value_type(_declared(node.table))
    beside: dict[str, Any] = {key: name for name, key in node.metadata}
    if keys.from_key:
        beside["key"] = KEY_COLUMN
    builder = (
        KafkaSource.builder()
        .set_bootstrap_servers(values["properties.bootstrap.servers"])
        .set_columns(_format(values).decoder(declared, _of_value(values)), **beside)
        .set_starting_offsets(_offsets(values, "startup"))
    )
    if values["topic"] is not None:
        builder.set_topics(*values["topic"])
    else:
        builder.set_topic_pattern(values["topic-pattern"])
    if values["properties.group.id"] is not None:
        builder.set_group_id(values["properties.group.id"])
    if values["scan.bounded.mode"] != "unbounded":
        builder.set_bounded(_offsets(values, "bounded"))
    interval = values["scan.topic-partition-discovery.interval"]
    if interval is not None:
        builder.set_property("partition.discovery.interval.ms", str(milliseconds(interval)))
    for key, value in values.with_prefix("properties.").items():
        if key not in ("bootstrap.servers", "group.id"):
            builder.set_property(key, value)
    return builder.build()


def _offsets(values: TableValues, end: str) -> Any:
    from flinkpy.connectors.kafka.kafka_offsets import KafkaOffsetsInitializer

    mode = values[f"scan.{end}.mode"]
    if mode == "timestamp":
        moment = values[f"scan.{end}.timestamp-millis"]
        if moment is None:
            raise ValidationError(f"the mode timestamp needs 'scan.{end}.timestamp-millis'")
        return KafkaOffsetsInitializer.timestamp(moment)
    return {
        "earliest-offset": KafkaOffsetsInitializer.earliest,
        "latest-offset": KafkaOffsetsInitializer.latest,
        "group-offsets": KafkaOffsetsInitializer.committed_offsets,
    }[mode]()
