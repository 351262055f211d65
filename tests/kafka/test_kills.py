"""Kafka to keyed windows to Kafka on Ray, while workers are killed (``kill -9``): readers of committed records see what an undisturbed run writes."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.launch import submitted_jobs
from flinkpy.common import SimpleStringSchema, Time, WatermarkStrategy
from flinkpy.core.clock import SystemClock
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.connectors.base import DeliveryGuarantee
from flinkpy.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from flinkpy.datastream.window import TumblingEventTimeWindows
from tests.cluster.test_recovery import OPTIONS, kill_one
from tests.kafka.broker import Broker, Record

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(400)]

RECORDS, KEYS, WINDOW_MS, PAUSE_S = 4_000, 7, 100, 0.002


def slowly(text: str) -> tuple[int, int]:
    """(key, number); takes its time, so that there is somebody to kill."""
    threading.Event().wait(PAUSE_S)
    number = int(text)
    return number % KEYS, number


def build(env: StreamExecutionEnvironment, broker: Broker, source: str, target: str) -> None:
    """The sums of each key and window."""
    texts = (KafkaSource.builder().set_bootstrap_servers(broker.bootstrap).set_topics(source).set_value_only_deserializer(SimpleStringSchema())
             .set_starting_offsets(KafkaOffsetsInitializer.earliest()).set_bounded(KafkaOffsetsInitializer.latest()).build())
    serializer = KafkaRecordSerializationSchema.builder().set_topic(target).set_value_serialization_schema(SimpleStringSchema()).build()
    sink = (KafkaSink.builder().set_bootstrap_servers(broker.bootstrap).set_record_serializer(serializer)
            .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(target).build())
    records = env.from_source(texts, WatermarkStrategy.for_monotonous_timestamps(), "texts").map(slowly)
    windows = records.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
    windows.reduce(lambda a, b: (a[0], a[1] + b[1])).map(lambda pair: f"{pair[0]} {pair[1]}").sink_to(sink)


def wanted() -> list[bytes]:
    sums: Counter[tuple[int, int]] = Counter()
    for number in range(RECORDS):
        sums[number % KEYS, number // WINDOW_MS] += number
    return sorted(f"{key} {total}".encode() for (key, _), total in sums.items())


def test_workers_that_are_killed_change_nothing_in_what_readers_see(broker: Broker, on_ray: None, tmp_path: Path) -> None:
    source, target = broker.new_topic(4), broker.new_topic(2)
    begin_ms = SystemClock().time_ms() // WINDOW_MS * WINDOW_MS
    broker.produce(source, [Record(str(number).encode(), partition=number % 4, timestamp=begin_ms + number) for number in range(RECORDS)])
    options: dict[str, Any] = {**OPTIONS, "execution.checkpointing.dir": str(tmp_path)}
    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(2)
    build(env, broker, source, target)
    job = env.execute_async("kills")
    submitted = submitted_jobs()[-1]
    for _ in range(2):
        kill_one(submitted, tmp_path)
    job.get_job_execution_result().result(120)
    assert sorted(broker.values(target)) == wanted()  # type: ignore[type-var]
