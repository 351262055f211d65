"""Writing into Kafka beside a bare confluent-kafka loop: rows and columns, at least once and in
transactions.

    python -m benchmarks kafka_sink  # needs the development dependencies, with their broker

The broker is a process on the same machine (noida-db), and takes its share of the cores. The bare
loop encodes each text, produces it, lets the client hear from time to time, and flushes in the end;
with keys it has the key in hand."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.harness import Comparison, compare, quick
from flinkpy.common import SimpleStringSchema
from flinkpy.common.serialization import SerializationSchema
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.connectors.base import DeliveryGuarantee
from flinkpy.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from flinkpy.formats.raw_columns import RawColumnarEncoder

HEARS_EVERY = 1_000
TARGET = 0.8
names = itertools.count()


def texts(count: int) -> list[str]:
    return [
        f'{{"order": {number}, "shop": "Oslo", "price": {number % 997}.5}}'
        for number in range(count)
    ]


class Shop(SerializationSchema):
    """The key of a text."""

    def serialize(self, value: Any) -> bytes:
        return b"Oslo"


def bare(broker: Any, values: list[str], key: bytes | None = None) -> Callable[[], float]:
    from confluent_kafka import Producer

    def run() -> float:
        topic = broker.new_topic(2)
        started = time.perf_counter()
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        produce, poll = producer.produce, producer.poll
        for at, value in enumerate(values):
            produce(topic, value.encode(), key)
            if not at % HEARS_EVERY:
                poll(0)
        producer.flush()
        return len(values) / (time.perf_counter() - started)

    return run


def ours(
    broker: Any,
    source: Any,
    count: int,
    guarantee: DeliveryGuarantee,
    value: Any,
    key: Any = None,
    **options: Any,
) -> Callable[[], float]:
    def run() -> float:
        topic = broker.new_topic(2)
        builder = (
            KafkaRecordSerializationSchema.builder()
            .set_topic(topic)
            .set_value_serialization_schema(value)
        )
        if key is not None:
            builder.set_key_serialization_schema(key)
        sink = (
            KafkaSink.builder()
            .set_bootstrap_servers(broker.bootstrap)
            .set_record_serializer(builder.build())
            .set_delivery_guarantee(guarantee)
            .set_transactional_id_prefix(f"{topic}-{next(names)}")
            .set_property("queue.buffering.max.messages", "1000000")
            .build()
        )
        env = StreamExecutionEnvironment.get_execution_environment(
            {"client.progress": False, **options}
        ).set_parallelism(1)
        stream = (
            env.from_arrow(source) if hasattr(source, "schema") else env.from_collection(source)
        )
        stream.sink_to(sink)
        started = time.perf_counter()
        env.execute()
        return count / (time.perf_counter() - started)

    return run


def main() -> list[Comparison]:
    if find_spec("confluent_kafka") is None or find_spec("noida_db") is None:
        print("left out: needs confluent-kafka and noida-db")
        return []
    import pyarrow as pa

    from tests.kafka.broker import running_broker

    count = 20_000 if quick() else 500_000
    values = texts(count)
    table = pa.table({"text": values})
    at_least, exactly = DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.EXACTLY_ONCE
    text, columns = SimpleStringSchema(), RawColumnarEncoder("text")
    checkpoints = {"execution.checkpointing.interval": "1 s"}
    results = []
    with tempfile.TemporaryDirectory() as folder, running_broker(Path(folder)) as broker:
        for name, made, other in (
            (
                "rows, at least once",
                ours(broker, values, count, at_least, text),
                bare(broker, values),
            ),
            (
                "rows with keys, at least once",
                ours(broker, values, count, at_least, text, Shop()),
                bare(broker, values, b"Oslo"),
            ),
            (
                "rows, exactly once each second",
                ours(broker, values, count, exactly, text, **checkpoints),
                bare(broker, values),
            ),
            (
                "columns, at least once",
                ours(broker, table, count, at_least, columns),
                bare(broker, values),
            ),
            (
                "columns, exactly once each second",
                ours(broker, table, count, exactly, columns, **checkpoints),
                bare(broker, values),
            ),
        ):
            results.append(compare(name, made, other, target=TARGET, rounds=1 if quick() else 5))
    return results
