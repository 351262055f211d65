"""PyFlink's names for writing into Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from flinkpy.common.serialization import SerializationSchema
from flinkpy.connectors.delivery_guarantee import DeliveryGuarantee
from flinkpy.connectors.kafka.client_properties import checked_property
from flinkpy.connectors.kafka.writing.kafka_sink import KafkaSinkBase, KafkaSinkOptions
from flinkpy.connectors.kafka.writing.record_serialization import KafkaRecordSerializationSchema
from flinkpy.core.program.program_line import located, refuse
from flinkpy.core.users_values import bounded_repr, unbuilt


class KafkaSink(KafkaSinkBase):
    """Writes into Kafka topics; made by a builder.

    >>> from flinkpy.common import SimpleStringSchema
    >>> words = (
    ...     KafkaRecordSerializationSchema.builder()
    ...     .set_topic("words")
    ...     .set_value_serialization_schema(SimpleStringSchema())
    ...     .build()
    ... )
    >>> KafkaSink.builder().set_bootstrap_servers("localhost:9092").set_record_serializer(
    ...     words
    ... ).build()
    KafkaSink(words, NONE)
    """

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """A builder; it needs bootstrap servers and a record serializer."""
        return KafkaSinkBuilder()

    def get_transformer(self) -> None:
        """None: the stream is written as it is."""


class KafkaSinkBuilder:
    """Builds a KafkaSink.

    >>> KafkaSink.builder().set_delivery_guarantee(
    ...     DeliveryGuarantee.EXACTLY_ONCE
    ... )  # doctest: +ELLIPSIS
    <...KafkaSinkBuilder...>
    """

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._guarantee = DeliveryGuarantee.NONE
        self._prefix: str | None = None
        self._schema: KafkaRecordSerializationSchema | None = None
        self._ignores_lost = False

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        """``host:port`` of one or more brokers, with commas between."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """What happens to records when tasks fail; NONE by default, as in Flink. EXACTLY_ONCE needs
        a transactional id prefix."""
        if not isinstance(delivery_guarantee, DeliveryGuarantee):
            raise refuse(
                "set_delivery_guarantee() takes a DeliveryGuarantee, this is "
                f"{delivery_guarantee!r:.80}"
            )
        self._guarantee = delivery_guarantee
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """What the ids of the sink's transactions begin with: its own, and the same in all runs of
        the job. A sink aborts what was left open under its prefix, so two sinks with one prefix
        abort each other's."""
        if not isinstance(transactional_id_prefix, str) or not transactional_id_prefix:
            raise refuse(
                "set_transactional_id_prefix() takes a text, this is "
                f"{transactional_id_prefix!r:.80}"
            )
        self._prefix = transactional_id_prefix
        return self

    def set_record_serializer(
        self, record_serializer: KafkaRecordSerializationSchema
    ) -> KafkaSinkBuilder:
        """How records become messages."""
        if not isinstance(record_serializer, KafkaRecordSerializationSchema):
            raise refuse(
                "set_record_serializer() takes a KafkaRecordSerializationSchema, this is "
                f"{bounded_repr(record_serializer, 80)}"
                f"{unbuilt(record_serializer) or '; see KafkaRecordSerializationSchema.builder()'}"
            )
        self._schema = record_serializer
        return self

    def set_property(self, key: str, value: str) -> KafkaSinkBuilder:
        """A property of Kafka's producer, under its name in Java or in librdkafka."""
        with located():
            self._properties[key] = checked_property(key, value)
        return self

    def ignore_lost_transactions(self) -> KafkaSinkBuilder:
        """If a transaction of the checkpoint that the job starts from cannot be committed any more,
        its records are lost. Then the job fails; with this it tells that in its log, and goes on
        without them."""
        self._ignores_lost = True
        return self

    def build(self) -> KafkaSink:
        """The sink. Raises ProgramError if something is missing."""
        if not self._properties.get("bootstrap.servers"):
            raise refuse("a Kafka sink needs brokers: set_bootstrap_servers('host:port')")
        if self._schema is None:
            raise refuse(
                "a Kafka sink needs to know how records become messages: "
                "set_record_serializer(schema)"
            )
        if self._guarantee is DeliveryGuarantee.EXACTLY_ONCE and self._prefix is None:
            raise refuse(
                "EXACTLY_ONCE writes in transactions, whose ids must begin with a prefix of "
                "the sink's own: "
                "set_transactional_id_prefix(name)"
            )
        with located():
            return KafkaSink(
                KafkaSinkOptions(
                    self._schema,
                    dict(self._properties),
                    self._guarantee,
                    self._prefix,
                    ignores_lost_transactions=self._ignores_lost,
                )
            )


class Semantic(Enum):
    """The guarantees of the older FlinkKafkaProducer."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


class FlinkKafkaProducer(KafkaSinkBase):
    """PyFlink's older sink: messages without keys into one topic, for ``add_sink``. The size of its
    pool has no meaning here.

    >>> from flinkpy.common import SimpleStringSchema
    >>> FlinkKafkaProducer("words", SimpleStringSchema(), {"bootstrap.servers": "localhost:9092"})
    FlinkKafkaProducer(words, AT_LEAST_ONCE)
    """

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema,
        producer_config: Mapping[str, Any],
        kafka_producer_pool_size: int = 5,
        semantic: Semantic = Semantic.AT_LEAST_ONCE,
    ) -> None:
        if not isinstance(semantic, Semantic):
            raise refuse(f"semantic is a Semantic, this is {semantic!r:.80}")
        schema = (
            KafkaRecordSerializationSchema.builder()
            .set_topic(topic)
            .set_value_serialization_schema(serialization_schema)
            .build()
        )
        with located():
            properties = {
                key: checked_property(key, value) for key, value in producer_config.items()
            }
            if not properties.get("bootstrap.servers"):
                raise refuse("producer_config names no brokers: {'bootstrap.servers': 'host:port'}")
            super().__init__(
                KafkaSinkOptions(
                    schema, properties, DeliveryGuarantee[semantic.name], with_event_time=False
                )
            )

    def set_log_failures_only(self, log_failures_only: bool) -> FlinkKafkaProducer:
        """Only False: messages that cannot be delivered are never passed over in silence."""
        if log_failures_only:
            raise refuse(
                "messages that cannot be delivered fail the job; set_log_failures_only(True) "
                "is not there"
            )
        return self

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> FlinkKafkaProducer:
        """False gives up at-least-once."""
        if not flush_on_checkpoint and self._options.guarantee is DeliveryGuarantee.AT_LEAST_ONCE:
            self._options = replace(self._options, guarantee=DeliveryGuarantee.NONE)
        return self

    def set_write_timestamp_to_kafka(self, write_timestamp_to_kafka: bool) -> FlinkKafkaProducer:
        """Whether messages have the event time of their records; otherwise, and by default, the
        time of writing."""
        self._options = replace(self._options, with_event_time=bool(write_timestamp_to_kafka))
        return self

    def ignore_failures_after_transaction_timeout(self) -> FlinkKafkaProducer:
        """As ``ignore_lost_transactions`` of a KafkaSink's builder."""
        self._options = replace(self._options, ignores_lost_transactions=True)
        return self
