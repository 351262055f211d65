"""Reading from Kafka beside a bare confluent-kafka loop: text as rows, bytes as columns.

    python -m benchmarks kafka_source  # needs the development dependencies, with their broker

The brokers are a process on the same machine (noida-db), and librdkafka's mock cluster inside the
measured process, which is faster. The bare loop consumes a thousand messages at a time, looks
whether each is an error, decodes its text and takes its timestamp, or only takes its bytes. Times
are from the first batch to the last record, on both sides."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.harness import Comparison, compare, quick
from flinkpy.common import WatermarkStrategy
from flinkpy.common.serialization import SimpleStringSchema
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaSourceBuilder,
)
from flinkpy.formats.raw_columns import RawColumnarDecoder

AT_ONCE = 1_000
MOST_IN_MOCK = 60_000  # it keeps 5 MB of a partition
TARGET = 0.9


class TimingSink:
    """Notes when the first batch came and when the last one, and how many records came behind the
    first."""

    def __init__(self, file: str) -> None:
        self._file = file

    def open(self, context: Any) -> None:
        self._began, self._count = 0.0, 0

    def write_batch(self, batch: Any) -> None:
        if self._began:
            self._count += len(batch)
        else:
            self._began = time.perf_counter()
        self._ended = time.perf_counter()

    def flush(self) -> None:
        Path(self._file).write_text(json.dumps(self._count / (self._ended - self._began)))

    def close(self) -> None: ...


def filled(servers: str, count: int) -> str:
    from confluent_kafka import Producer

    topic = f"orders-{count}"
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "queue.buffering.max.messages": 2_000_000,
            "allow.auto.create.topics": True,
        }
    )
    for number in range(count):
        producer.produce(
            topic,
            f'{{"order": {number}, "shop": "Oslo", "price": {number % 997}.5}}'.encode(),
            partition=0,
        )
        if not number % 1000:
            producer.poll(0)
    producer.flush()
    return topic


def ours(
    servers: str, topic: str, folder: str, what: Callable[[KafkaSourceBuilder], KafkaSourceBuilder]
) -> Callable[[], float]:
    def run() -> float:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        builder = what(KafkaSource.builder().set_bootstrap_servers(servers).set_topics(topic))
        source = builder.set_bounded(KafkaOffsetsInitializer.latest()).build()
        file = f"{folder}/rate.json"
        env.from_source(source, WatermarkStrategy.no_watermarks(), "orders").sink_to(
            TimingSink(file)
        )
        env.execute()
        rate: float = json.loads(Path(file).read_text())
        return rate

    return run


def bare(servers: str, topic: str, count: int, take: Callable[[Any], Any]) -> Callable[[], float]:
    from confluent_kafka import Consumer, TopicPartition

    def run() -> float:
        consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": "bare", "enable.auto.commit": False}
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        kept = [
            take(message) for message in consumer.consume(AT_ONCE, 5) if message.error() is None
        ]
        first, began = len(kept), time.perf_counter()
        while len(kept) < count:
            kept += [
                take(message)
                for message in consumer.consume(min(AT_ONCE, count - len(kept)), 5)
                if message.error() is None
            ]
        rate = (count - first) / (time.perf_counter() - began)
        consumer.close()
        return rate

    return run


def both(where: str, servers: str, folder: str, count: int) -> list[Comparison]:
    topic, rounds = filled(servers, count), 2 if quick() else 5
    rows = compare(
        f"rows from {where}",
        ours(
            servers,
            topic,
            folder,
            lambda builder: builder.set_value_only_deserializer(SimpleStringSchema()),
        ),
        bare(
            servers,
            topic,
            count,
            lambda message: (message.value().decode(), message.timestamp()[1]),
        ),
        rounds=rounds,
        target=TARGET,
    )
    columns = compare(
        f"columns from {where}",
        ours(servers, topic, folder, lambda builder: builder.set_columns(RawColumnarDecoder())),
        bare(servers, topic, count, lambda message: message.value()),
        rounds=rounds,
    )
    return [rows, columns]


def main() -> list[Comparison]:
    if find_spec("noida_db") is None or find_spec("confluent_kafka") is None:
        print("needs a broker and a client: pip install 'flinkpy[dev]'")
        return []
    from confluent_kafka import Producer

    from tests.kafka.broker import running_broker

    count = 20_000 if quick() else 200_000
    with tempfile.TemporaryDirectory() as folder:
        mock = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "replaced"})
        [node] = mock.list_topics(timeout=10).brokers.values()
        results = both(
            "the mock cluster", f"{node.host}:{node.port}", folder, min(count, MOST_IN_MOCK)
        )
        with running_broker(Path(folder)) as broker:
            return results + both("a broker", broker.bootstrap, folder, count)
