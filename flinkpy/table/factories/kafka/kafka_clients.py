"""What tables of Kafka share: where they read and write, and the options for that."""

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
from flinkpy.sql.catalog.catalog_port import CatalogTable
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.factories.connector_factory import stored_columns
from flinkpy.table.factories.kafka.kafka_keys import EncodedColumns, KeyFields
from flinkpy.table.factories.table_options import (
    DURATION,
    INT,
    LIST,
    LONG,
    STRING,
    TableOption,
    TableValues,
    milliseconds,
    one_of,
)

if TYPE_CHECKING:
    from flinkpy.connectors.kafka.kafka_source import KafkaSourceBuilder
    from flinkpy.connectors.kafka.writing.sink_builders import KafkaSink
    from flinkpy.formats.port import ColumnarEncoder

METADATA = {
    "topic": VarCharType(UNBOUNDED).not_null(),
    "partition": IntType(is_nullable=False),
    "offset": BigIntType(is_nullable=False),
    "timestamp": LocalZonedTimestampType(precision=3, is_nullable=False),
}
TOPIC_OPTIONS = (
    TableOption("topic", LIST, None, "The topic; several to read have semicolons between."),
    TableOption("topic-pattern", STRING, None, "Reads all topics whose names match."),
    TableOption("properties.bootstrap.servers", STRING, None, "The brokers.", required=True),
    TableOption("properties.group.id", STRING, None, "The group whose offsets are kept."),
    TableOption("properties.*", STRING, None, "Other properties of Kafka's clients."),
)
START_OPTIONS = (
    TableOption(
        "scan.startup.mode",
        one_of("earliest-offset", "latest-offset", "group-offsets", "timestamp"),
        "group-offsets",
        "Where reading begins.",
    ),
    TableOption("scan.startup.timestamp-millis", LONG, None, "For the mode timestamp."),
)
SCAN_OPTIONS = (
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
)
SINK_OPTIONS = (
    TableOption(
        "sink.delivery-guarantee",
        one_of("at-least-once", "exactly-once", "none"),
        "at-least-once",
        "What a failure may do to written rows.",
    ),
    TableOption("sink.transactional-id-prefix", STRING, None, "Needed for exactly-once."),
    TableOption("sink.parallelism", INT, None, "How many writers there are."),
)


def check_read(values: TableValues, connector: str) -> None:
    """Raises ValidationError unless the options say what is read."""
    if (values["topic"] is None) == (values["topic-pattern"] is None):
        raise ValidationError(
            f"a table with the connector {connector!r} has either 'topic' or 'topic-pattern'"
        )


def check_written(values: TableValues, connector: str) -> None:
    """Raises ValidationError unless the options say where to write, and how surely."""
    if values["topic"] is None or len(values["topic"]) != 1:
        raise ValidationError(f"a table with the connector {connector!r} is written to one 'topic'")
    if (
        values["sink.delivery-guarantee"] == "exactly-once"
        and values["sink.transactional-id-prefix"] is None
    ):
        raise ValidationError("exactly-once needs the option 'sink.transactional-id-prefix'")


def declared_row(table: CatalogTable) -> RowType:
    """The columns that messages have."""
    return RowType.of(*((column.name, column.type) for column in stored_columns(table)))


# -- reading ---------------------------------------------------------------------------------------


def source_builder(values: TableValues) -> KafkaSourceBuilder:
    """A builder that knows what is read, and where that ends; not where it begins, nor what records
    become."""
    from flinkpy.connectors.kafka.kafka_source import KafkaSource

    builder = KafkaSource.builder().set_bootstrap_servers(values["properties.bootstrap.servers"])
    if values["topic"] is not None:
        builder.set_topics(*values["topic"])
    else:
        builder.set_topic_pattern(values["topic-pattern"])
    if values["properties.group.id"] is not None:
        builder.set_group_id(values["properties.group.id"])
    if values["scan.bounded.mode"] != "unbounded":
        builder.set_bounded(offsets(values, "bounded"))
    interval = values["scan.topic-partition-discovery.interval"]
    if interval is not None:
        builder.set_property("partition.discovery.interval.ms", str(milliseconds(interval)))
    for key, value in _properties(values).items():
        builder.set_property(key, value)
    return builder


def offsets(values: TableValues, end: str) -> Any:
    """Where reading begins (``startup``) or ends (``bounded``)."""
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


def _properties(values: TableValues) -> dict[str, str]:
    """Those of Kafka's clients that no other option sets."""
    return {
        key: value
        for key, value in values.with_prefix("properties.").items()
        if key not in ("bootstrap.servers", "group.id")
    }


# -- writing ---------------------------------------------------------------------------------------


def key_encoder(keys: KeyFields, row: RowType, encoder: ColumnarEncoder) -> ColumnarEncoder:
    """Encodes the columns of the key, as they are called in messages."""
    return EncodedColumns(encoder, keys.key, keys.key_type(row).names)


def kafka_sink(
    values: TableValues, value: ColumnarEncoder, key: ColumnarEncoder | None
) -> KafkaSink:
    """Writes messages of these values and keys."""
    from flinkpy.connectors.delivery_guarantee import DeliveryGuarantee
    from flinkpy.connectors.kafka.writing.record_serialization import KafkaRecordSerializationSchema
    from flinkpy.connectors.kafka.writing.sink_builders import KafkaSink

    records = KafkaRecordSerializationSchema.builder().set_topic(values["topic"][0])
    records.set_value_serialization_schema(value)
    if key is not None:
        records.set_key_serialization_schema(key)
    guarantee = values["sink.delivery-guarantee"].replace("-", "_").upper()
    builder = (
        KafkaSink.builder()
        .set_bootstrap_servers(values["properties.bootstrap.servers"])
        .set_record_serializer(records.build())
        .set_delivery_guarantee(DeliveryGuarantee[guarantee])
    )
    if values["sink.transactional-id-prefix"] is not None:
        builder.set_transactional_id_prefix(values["sink.transactional-id-prefix"])
    for name, each in _properties(values).items():
        builder.set_property(name, each)
    return builder.build()
