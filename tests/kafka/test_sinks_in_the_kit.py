"""Kafka sinks pass the connector kit."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from typing import Any

import pytest

from flinkpy.common import SimpleStringSchema
from flinkpy.datastream.connectors.base import DeliveryGuarantee
from flinkpy.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from flinkpy.operators.sinks.sink_port import Sink
from flinkpy.testing.connectors import SinkTests
from tests.kafka.broker import Broker

pytestmark = [pytest.mark.wide, pytest.mark.slow]


class Kafka(SinkTests):
    """A topic of its own for each test."""

    guarantee = DeliveryGuarantee.EXACTLY_ONCE
    broker: Broker

    def open(self) -> None:
        self.topic = self.broker.new_topic(2)

    def sink(self) -> Sink:
        schema = (
            KafkaRecordSerializationSchema.builder()
            .set_topic(self.topic)
            .set_value_serialization_schema(SimpleStringSchema())
            .build()
        )
        builder = (
            KafkaSink.builder()
            .set_bootstrap_servers(self.broker.bootstrap)
            .set_record_serializer(schema)
        )
        return (
            builder.set_delivery_guarantee(self.guarantee)
            .set_transactional_id_prefix(self.topic)
            .build()
        )

    def read(self) -> Iterable[Any]:
        return self.broker.values(self.topic)


@pytest.fixture(autouse=True, scope="module")
def _with_broker(broker: Broker) -> None:
    Kafka.broker = broker


class TestKafkaExactlyOnce(Kafka):
    pass


class TestKafkaAtLeastOnce(Kafka):
    guarantee = DeliveryGuarantee.AT_LEAST_ONCE
    exactly_once = False
    most_held = 60_000  # half of what librdkafka holds, and a batch

    def pause(self) -> None:
        os.kill(self.broker._pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.broker._pid, signal.SIGCONT)
