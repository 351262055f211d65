"""The Kafka source passes the connector kit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from flinkpy.connectors.source_api.source import Source
from flinkpy.datastream.connectors.kafka import KafkaOffsetsInitializer
from flinkpy.testing.connectors import SourceTests
from tests.kafka.broker import Broker, Record
from tests.kafka.reading import LATEST, strings

pytestmark = [pytest.mark.wide, pytest.mark.slow]


class TestKafkaSource(SourceTests):
    """A topic of its own for each test, with two partitions."""

    splits = 2
    many = 5_000
    broker: Broker

    def open(self) -> None:
        self.topic = self.broker.new_topic(2)

    def fill(self, split: int, numbers: Sequence[int]) -> None:
        self.broker.produce(
            self.topic,
            [
                Record(str(each).encode(), partition=split, timestamp=1000 + each)
                for each in numbers
            ],
        )

    def bounded_source(self) -> Source[Any]:
        return strings(self.broker, self.topic).set_bounded(LATEST).build()

    def unbounded_source(self) -> Source[Any]:
        return (
            strings(self.broker, self.topic)
            .set_starting_offsets(KafkaOffsetsInitializer.earliest())
            .build()
        )

    def timestamp_of(self, number: int) -> int:
        return 1000 + number


@pytest.fixture(autouse=True, scope="module")
def _with_broker(broker: Broker) -> None:
    TestKafkaSource.broker = broker
