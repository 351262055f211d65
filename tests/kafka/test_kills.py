"""Kafka to Kafka and Kafka to S3 on Ray, while processes are killed (``kill -9``): readers see what
an undisturbed run writes."""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kills.kafka_topics import fed, topics
from benchmarks.kills.program import Input, differences
from benchmarks.kills.run import disturbed, options_of, undisturbed
from benchmarks.kills.strikes import Killer, Target
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
from tests.cluster.test_recovery import OPTIONS, kill_one, newest_checkpoint
from tests.kafka.broker import Broker, Record
from tests.waiting import eventually

pytestmark = [pytest.mark.wide, pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(400)]

# more than come due until the last strike on a slow machine: without new input there is no new
# output
COUNT = 20_000
RATE = 100.0
RECORDS, KEYS, WINDOW_MS, PAUSE_S = 4_000, 7, 100, 0.002


def slowly(text: str) -> tuple[int, int]:
    """(key, number); takes its time, so that there is somebody to kill."""
    threading.Event().wait(PAUSE_S)
    number = int(text)
    return number % KEYS, number


def build(env: StreamExecutionEnvironment, broker: Broker, source: str, target: str) -> None:
    """The sums of each key and window."""
    texts = (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.bootstrap)
        .set_topics(source)
        .set_value_only_deserializer(SimpleStringSchema())
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .build()
    )
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(target)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(broker.bootstrap)
        .set_record_serializer(serializer)
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(target)
        .build()
    )
    records = env.from_source(texts, WatermarkStrategy.for_monotonous_timestamps(), "texts").map(
        slowly
    )
    windows = records.key_by(lambda pair: pair[0]).window(
        TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS))
    )
    windows.reduce(lambda a, b: (a[0], a[1] + b[1])).map(
        lambda pair: f"{pair[0]} {pair[1]}"
    ).sink_to(sink)


def wanted() -> list[bytes]:
    sums: Counter[tuple[int, int]] = Counter()
    for number in range(RECORDS):
        sums[number % KEYS, number // WINDOW_MS] += number
    return sorted(f"{key} {total}".encode() for (key, _), total in sums.items())


def test_workers_that_are_killed_change_nothing_in_what_readers_see(
    broker: Broker, on_ray: None, tmp_path: Path
) -> None:
    source, target = broker.new_topic(4), broker.new_topic(2)
    begin_ms = SystemClock().time_ms() // WINDOW_MS * WINDOW_MS
    broker.produce(
        source,
        [
            Record(str(number).encode(), partition=number % 4, timestamp=begin_ms + number)
            for number in range(RECORDS)
        ],
    )
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


@pytest.mark.finding("faults 16")
def test_workers_and_a_jobmanager_that_are_killed_change_nothing_in_what_is_on_s3(
    broker: Broker, s3_host: str, on_ray: None, tmp_path: Path
) -> None:
    """The job of ``python -m benchmarks.kills --s3``, which does so for longer: Kafka to Parquet in
    a bucket, and to another topic."""
    mine, released, now_ms = tmp_path / "disturbed", tmp_path / "released", SystemClock().time_ms
    event_ms = now_ms()
    records = Input(COUNT, RATE, event_ms)
    wanted, found = topics(broker, records.count, s3_host), topics(broker, records.count, s3_host)
    with fed(broker, wanted, records.undisturbed, event_ms, now_ms):
        undisturbed(records, tmp_path / "undisturbed", {}, wanted)
    # from now on: all that came due meanwhile would be read before the last strike
    records = Input(COUNT, RATE, now_ms(), str(released))
    with (
        fed(broker, found, records, event_ms, now_ms),
        disturbed(records, mine, options_of("kills-s3", mine), found) as run,
    ):
        killer = Killer(run.processes, run.journal, random.Random(3), run.has_ended)
        for target in (Target.WORKER, Target.JOB_MANAGER_AND_WORKER):
            taken = newest_checkpoint(mine / "checkpoints")
            eventually(lambda before=taken: newest_checkpoint(mine / "checkpoints") > before)  # type: ignore[misc]
            eventually(run.is_committing)
            killer.await_output(killer.strike_surely(target))
        released.touch()
        run.await_end()
    assert differences(found.written(broker), wanted.written(broker)) == []
    assert found.unfinished() == []
    assert killer.attempts() > len(killer.strikes)
