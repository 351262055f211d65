"""Orders and payments from two topics of Kafka, joined by order, into a third one, exactly once.

    pip install 'flinkpy[kafka]'
    python examples/kafka_to_kafka.py localhost:9092  # needs topics "orders", "payments" and "paid"

Messages are JSON: ``{"order": 1, "article": "tea"}`` and ``{"order": 1, "cents": 300}``. Their
event time is that of Kafka. What is joined can be read with ``isolation.level=read_committed`` when
the checkpoint that has it is complete, and never twice, whatever is killed meanwhile. The program
reads what the topics have, and ends; without ``set_bounded`` it goes on."""

from __future__ import annotations

import json
import sys
from typing import Any

from flinkpy.common import SimpleStringSchema, Time, WatermarkStrategy
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.datastream.connectors.base import DeliveryGuarantee
from flinkpy.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from flinkpy.datastream.window import TumblingEventTimeWindows


def read(env: StreamExecutionEnvironment, brokers: str, topic: str) -> DataStream:
    builder = (
        KafkaSource.builder().set_bootstrap_servers(brokers).set_topics(topic).set_group_id("shop")
    )
    builder.set_starting_offsets(KafkaOffsetsInitializer.earliest()).set_bounded(
        KafkaOffsetsInitializer.latest()
    )
    builder.set_value_only_deserializer(SimpleStringSchema()).set_property(
        "isolation.level", "read_committed"
    )
    return env.from_source(
        builder.build(), WatermarkStrategy.for_monotonous_timestamps(), topic
    ).map(json.loads)


def paid(orders: DataStream, payments: DataStream) -> DataStream:
    """Orders with what was paid for them within the same hour."""
    pairs = (
        orders.join(payments)
        .where(lambda order: order["order"])
        .equal_to(lambda payment: payment["order"])
    )
    return pairs.window(TumblingEventTimeWindows.of(Time.hours(1))).apply(
        lambda order, payment: {**order, **payment}
    )


class Order(SimpleStringSchema):
    """The key of a message: messages of one order stay in their order, in one partition."""

    def serialize(self, value: Any) -> bytes:
        return super().serialize(json.loads(value)["order"])


def write(stream: DataStream, brokers: str, topic: str) -> None:
    messages = KafkaRecordSerializationSchema.builder().set_topic(topic)
    messages.set_key_serialization_schema(Order()).set_value_serialization_schema(
        SimpleStringSchema()
    )
    sink = (
        KafkaSink.builder().set_bootstrap_servers(brokers).set_record_serializer(messages.build())
    )
    sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(
        f"{topic}-of-the-shop"
    )
    stream.map(json.dumps).sink_to(sink.build()).uid(topic)


def main(
    brokers: str = "localhost:9092",
    orders: str = "orders",
    payments: str = "payments",
    target: str = "paid",
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(1000)
    write(paid(read(env, brokers, orders), read(env, brokers, payments)), brokers, target)
    env.execute("orders that are paid")


if __name__ == "__main__":
    main(*sys.argv[1:])
