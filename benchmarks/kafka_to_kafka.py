"""Kafka to a map to Kafka: rows and columns beside a bare confluent-kafka loop, and beside Bytewax.

    python -m benchmarks kafka_to_kafka  # needs the development dependencies, with their broker
    BYTEWAX_PYTHON=/path/to/python python -m benchmarks kafka_to_kafka  # with bytewax

Two maps: text in capitals, and a price in JSON. The bare loop consumes a thousand messages at a
time, maps and produces each, and flushes in the end. All three read a topic from its beginning to
its end, and take their time from the start of the job until the broker has all messages; the
interpreter of Bytewax runs before that. The broker is a process on the same machine (noida-db), and
takes its share of the cores.

Columns are bounded by the client, which makes an object of each message that is read and takes a
call for each that is written: together half of the time of the task's thread (docs/benchmarks.md,
6)."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.harness import Comparison, compare, quick
from flinkpy.common import SimpleStringSchema, WatermarkStrategy
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.datastream.connectors.base import DeliveryGuarantee
from flinkpy.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaSourceBuilder,
)
from flinkpy.datastream.formats.json import JsonColumnarDecoder, JsonColumnarEncoder
from flinkpy.datastream.formats.raw import RawColumnarEncoder, StringColumnarDecoder
from flinkpy.table.expressions import col

AT_ONCE = 1_000
ROWS_TARGET, COLUMNS_TARGET, BYTEWAX_TARGET = 0.8, 2.0, 2.0
BYTEWAX = "BYTEWAX_PYTHON"
ORDER = pa.schema([("order", pa.int64()), ("shop", pa.string()), ("price", pa.float64())])


def upper(text: str) -> str:
    return text.upper()


def in_euro(text: str) -> str:
    order = json.loads(text)
    order["price"] *= 0.908
    return json.dumps(order, separators=(",", ":"))


MAPS = {"text": upper, "json": in_euro}


def rows(
    env: StreamExecutionEnvironment, builder: KafkaSourceBuilder, job: str
) -> tuple[DataStream, Any]:
    """The stream to write, and how."""
    source = builder.set_value_only_deserializer(SimpleStringSchema()).build()
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "orders").map(
        MAPS[job]
    ), SimpleStringSchema()


def columns(
    env: StreamExecutionEnvironment, builder: KafkaSourceBuilder, job: str
) -> tuple[DataStream, Any]:
    decoder: Any = JsonColumnarDecoder(ORDER) if job == "json" else StringColumnarDecoder("text")
    orders = env.from_source(
        builder.set_columns(decoder).build(), WatermarkStrategy.no_watermarks(), "orders"
    )
    if job == "json":
        return orders.with_column("price", col("price") * 0.908), JsonColumnarEncoder()
    return orders.select(col("text").upper_case.alias("text")), RawColumnarEncoder()


def ours(
    broker: Any, topic: str, count: int, job: str, form: Callable[..., tuple[DataStream, Any]]
) -> Callable[[], float]:
    def run() -> float:
        target = broker.new_topic(1)
        env = StreamExecutionEnvironment.get_execution_environment(
            {"client.progress": False}
        ).set_parallelism(1)
        builder = (
            KafkaSource.builder()
            .set_bootstrap_servers(broker.bootstrap)
            .set_topics(topic)
            .set_bounded(KafkaOffsetsInitializer.latest())
        )
        stream, schema = form(env, builder, job)
        messages = (
            KafkaRecordSerializationSchema.builder()
            .set_topic(target)
            .set_value_serialization_schema(schema)
            .build()
        )
        sink = (
            KafkaSink.builder()
            .set_bootstrap_servers(broker.bootstrap)
            .set_record_serializer(messages)
        )
        stream.sink_to(sink.set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE).build())
        started = time.perf_counter()
        env.execute()
        return count / (time.perf_counter() - started)

    return run


def bare(broker: Any, topic: str, count: int, job: str) -> Callable[[], float]:
    from confluent_kafka import Consumer, Producer, TopicPartition

    def run() -> float:
        target, convert = broker.new_topic(1), MAPS[job]
        started = time.perf_counter()
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": "bare", "enable.auto.commit": False}
        )
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        produce, done = producer.produce, 0
        while done < count:
            for message in consumer.consume(min(AT_ONCE, count - done), 5):
                if message.error() is None:
                    produce(target, convert((message.value() or b"").decode()).encode())
                    done += 1
            producer.poll(0)
        producer.flush()
        rate = count / (time.perf_counter() - started)
        consumer.close()
        return rate

    return run


def bytewax(broker: Any, topic: str, count: int, job: str, python: str) -> Callable[[], float]:
    program = Path(__file__).with_name("bytewax_kafka.py")

    def run() -> float:
        command = [
            python,
            str(program),
            broker.bootstrap,
            topic,
            broker.new_topic(1),
            str(count),
            job,
        ]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        return float(done.stdout)

    return run


def filled(broker: Any, count: int) -> str:
    topic: str = broker.new_topic(1, "orders")
    broker.produce(
        topic,
        [
            f'{{"order": {number}, "shop": "Oslo", "price": {number % 997}.5}}'.encode()
            for number in range(count)
        ],
    )
    return topic


def main() -> list[Comparison]:
    if find_spec("confluent_kafka") is None or find_spec("noida_db") is None:
        print("left out: needs confluent-kafka and noida-db")
        return []
    from tests.kafka.broker import running_broker

    python = os.environ.get(BYTEWAX)
    if python is None:
        print(f"without Bytewax: {BYTEWAX} names no interpreter that has it")
    count, rounds = (20_000, 1) if quick() else (200_000, 5)
    results = []
    with tempfile.TemporaryDirectory() as folder, running_broker(Path(folder)) as broker:
        topic = filled(broker, count)
        for job in MAPS:
            for form, target in ((rows, ROWS_TARGET), (columns, COLUMNS_TARGET)):
                mine = ours(broker, topic, count, job, form)
                results.append(
                    compare(
                        f"{job}, {form.__name__}",
                        mine,
                        bare(broker, topic, count, job),
                        target=target,
                        rounds=rounds,
                    )
                )
                if python is not None:
                    other = bytewax(broker, topic, count, job, python)
                    results.append(
                        compare(
                            f"{job}, {form.__name__}, Bytewax",
                            mine,
                            other,
                            target=BYTEWAX_TARGET,
                            rounds=rounds,
                        )
                    )
    return results
