"""Kafka to keyed windows to Kafka, as one more part of the job that is disturbed. The broker itself
is left alone."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.kills.lake import OUTPUT as OUTPUT_ON_S3
from benchmarks.kills.lake import Lake
from flinkpy.common import SimpleStringSchema, Time, WatermarkStrategy
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.connectors.base import DeliveryGuarantee
from flinkpy.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)
from flinkpy.datastream.window import TumblingEventTimeWindows

if TYPE_CHECKING:
    from benchmarks.kills.program import Input
    from tests.kafka.broker import Broker

PARTITIONS, KEYS, WINDOW_MS, FEEDS_EVERY_S = 3, 31, 500, 0.05
OUTPUT = "sums in Kafka"


@dataclass(frozen=True)
class KafkaTopics:
    """Where the records come from, how many there are, and where the sums go; ``lake``: where the
    records go too."""

    brokers: str
    source: str
    target: str
    count: int
    lake: Lake | None = None

    def add_to(self, env: StreamExecutionEnvironment) -> None:
        """Sums of each key and window. The source ends when the last record has come."""
        share, more = divmod(self.count, PARTITIONS)
        ends = {
            KafkaTopicPartition(self.source, each): share + (each < more)
            for each in range(PARTITIONS)
        }
        texts = (
            KafkaSource.builder()
            .set_bootstrap_servers(self.brokers)
            .set_topics(self.source)
            .set_starting_offsets(KafkaOffsetsInitializer.earliest())
            .set_bounded(KafkaOffsetsInitializer.offsets(ends))
            .set_value_only_deserializer(SimpleStringSchema())
            .build()
        )
        serializer = (
            KafkaRecordSerializationSchema.builder()
            .set_topic(self.target)
            .set_value_serialization_schema(SimpleStringSchema())
            .build()
        )
        sink = (
            KafkaSink.builder()
            .set_bootstrap_servers(self.brokers)
            .set_record_serializer(serializer)
            .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .set_transactional_id_prefix(self.target)
            .build()
        )
        numbers = (
            env.from_source(texts, WatermarkStrategy.for_monotonous_timestamps(), "numbers")
            .uid("numbers")
            .map(int)
        )
        windows = numbers.key_by(lambda number: number % KEYS).window(
            TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS))
        )
        windows.reduce(lambda a, b: a + b).map(str).sink_to(sink).uid("sums in Kafka")
        if self.lake is not None:
            self.lake.add_to(numbers)

    def written(self, broker: Broker) -> dict[str, Counter[str]]:
        """What readers see, of the topic those of committed records."""
        outputs = {OUTPUT: Counter((value or b"").decode() for value in broker.values(self.target))}
        return outputs if self.lake is None else {**outputs, OUTPUT_ON_S3: self.lake.written()}

    def unfinished(self) -> list[str]:
        """Parts that nobody will commit any more."""
        return [] if self.lake is None else self.lake.unfinished()


def topics(broker: Broker, count: int, s3: str | None = None) -> KafkaTopics:
    """New ones; ``s3``: host and port of a server, for a new bucket."""
    from tests.s3.server import new_bucket

    lake = None if s3 is None else Lake(new_bucket(s3))
    return KafkaTopics(
        broker.bootstrap,
        broker.new_topic(PARTITIONS, "numbers"),
        broker.new_topic(PARTITIONS, "sums"),
        count,
        lake,
    )


@contextmanager
def fed(
    broker: Broker, to: KafkaTopics, records: Input, begun_ms: int, now_ms: Any
) -> Iterator[None]:
    """Writes the records as they come due, in the background. Each has the event time at which it
    would be due."""
    from tests.kafka.broker import Record

    ended = threading.Event()

    def feed() -> None:
        written = 0
        while written < records.count:
            due = records.due(now_ms())
            broker.produce(
                to.source,
                [
                    Record(
                        str(number).encode(),
                        partition=number % PARTITIONS,
                        timestamp=begun_ms + int(number / records.rate * 1000),
                    )
                    for number in range(written, due)
                ],
            )
            written = due
            if ended.wait(FEEDS_EVERY_S):
                return

    feeder = threading.Thread(target=feed, name="feeder", daemon=True)
    feeder.start()
    try:
        yield
    finally:
        ended.set()
        feeder.join()
