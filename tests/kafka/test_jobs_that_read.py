"""Whole jobs that read from a broker: failures, checkpoints, event time, back-pressure,
cancellation."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from flinkpy.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkpy.common.serialization import ByteArraySchema, SimpleStringSchema
from flinkpy.core.clock import SystemClock
from flinkpy.core.errors import JobExecutionError
from flinkpy.datastream import ErrorPolicy, StreamExecutionEnvironment
from flinkpy.datastream.connectors.kafka import (
    FlinkKafkaConsumer,
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaTopicPartition,
)
from flinkpy.datastream.window import TumblingEventTimeWindows
from tests.checkpoints.paced import failing_at, failures
from tests.connectors.harness import World
from tests.kafka.broker import Broker, Record
from tests.kafka.reading import LATEST, numbered, strings, texts, until
from tests.waiting import eventually

NO_WATERMARKS = WatermarkStrategy.no_watermarks()


def environment(
    parallelism: int = 1, checkpoint_ms: int | None = None
) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    if checkpoint_ms is not None:
        env.enable_checkpointing(checkpoint_ms)
        env.program.values.update(
            {
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": 9,
                "restart-strategy.fixed-delay.delay": "1 ms",
            }
        )
    return env


@pytest.fixture
def topic(broker: Broker) -> str:
    """Three partitions with a thousand records each."""
    name = broker.new_topic(3)
    for partition in range(3):
        broker.produce(name, numbered(1000, 1000 * partition), partition)
    return name


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_job_that_fails_between_checkpoints_gives_every_record_once(
    broker: Broker, topic: str, tmp_path: Path, parallelism: int
) -> None:
    env = environment(parallelism, 20)
    env.program.values["taskmanager.network.batch.max-records"] = "50"
    fails = failing_at(tmp_path / "failures", "700", "1500", "2999")
    stream = env.from_source(
        strings(broker, topic).set_unbounded(LATEST).build(), NO_WATERMARKS, "orders"
    ).map(fails)
    assert sorted(stream.execute_and_collect(), key=int) == texts(3000)
    assert failures(tmp_path / "failures") == 3


def test_offsets_are_committed_when_a_checkpoint_is_complete_and_not_before(
    broker: Broker, topic: str
) -> None:
    group = broker.unused_name("group")
    with World(strings(broker, topic).set_group_id(group).build(), batch_records=100) as world:
        until(world, lambda: len(world.values) >= 3000)
        world.snapshot(0)  # checkpoint 1
        broker.produce(topic, numbered(10, 3000))
        until(world, lambda: len(world.values) >= 3010)
        assert broker.committed_offsets(group, topic) == {}
        world.subtasks[0].operator.notify_checkpoint_complete(1)
        eventually(lambda: broker.committed_offsets(group, topic) == {0: 1000, 1: 1000, 2: 1000})


def test_offsets_of_partitions_that_were_read_to_their_stop_are_committed_too(
    broker: Broker, topic: str
) -> None:
    group = broker.unused_name("group")
    with World(strings(broker, topic).set_group_id(group).set_bounded(LATEST).build()) as world:
        until(world, lambda: world.finished)
        world.snapshot(0)
        world.subtasks[0].operator.notify_checkpoint_complete(1)
        eventually(lambda: broker.committed_offsets(group, topic) == {0: 1000, 1: 1000, 2: 1000})


def test_a_partition_that_ends_while_a_checkpoint_is_under_way_is_committed_to_its_end_with_the_next(
    broker: Broker, topic: str
) -> None:
    group = broker.unused_name("group")
    with World(
        strings(broker, topic).set_group_id(group).set_bounded(LATEST).build(), batch_records=100
    ) as world:
        until(world, lambda: len(world.values) >= 100, steps=1)
        assert len(world.values) < 3000
        world.snapshot(0)  # checkpoint 1
        until(world, lambda: world.finished)
        world.subtasks[0].operator.notify_checkpoint_complete(1)
        world.snapshot(0, 2)
        world.subtasks[0].operator.notify_checkpoint_complete(2)
        eventually(lambda: broker.committed_offsets(group, topic) == {0: 1000, 1: 1000, 2: 1000})


def test_nothing_is_committed_if_the_property_says_so(broker: Broker, topic: str) -> None:
    group = broker.unused_name("group")
    for source in (
        strings(broker, topic)
        .set_group_id(group)
        .set_property("commit.offsets.on.checkpoint", "false")
        .build(),
        FlinkKafkaConsumer(
            topic,
            SimpleStringSchema(),
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
            },
        ).set_commit_offsets_on_checkpoints(False),
    ):
        with World(source) as world:
            until(world, lambda world=world: len(world.values) >= 3000)  # type: ignore[misc]
            world.snapshot(0)
            world.subtasks[0].operator.notify_checkpoint_complete(1)
            broker.produce(topic, [b"one more"])
            until(world, lambda world=world: "one more" in world.values)  # type: ignore[misc]
    assert broker.committed_offsets(group, topic) == {}


def test_a_job_goes_on_where_the_group_of_an_earlier_one_ended(broker: Broker, topic: str) -> None:
    group = broker.unused_name("group")
    env = environment(2, 50)
    source = strings(broker, topic).set_group_id(group)
    assert (
        len(
            list(
                env.from_source(
                    source.set_unbounded(LATEST).build(), NO_WATERMARKS, "orders"
                ).execute_and_collect()
            )
        )
        == 3000
    )
    broker.produce(topic, numbered(10, 3000))
    properties = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": group,
        "auto.offset.reset": "none",
    }
    consumer = FlinkKafkaConsumer(topic, SimpleStringSchema(), properties)
    assert sorted(environment().add_source(consumer).take(10)) == texts(10, 3000)


# -- event time ------------------------------------------------------------------------------------


def test_each_partition_has_its_own_watermark(broker: Broker) -> None:
    """The partitions are hours apart, and one subtask reads both: with one watermark for both, the
    records of the slower one would be late."""
    topic = broker.new_topic(2)
    hours = 3_600_000
    broker.produce(
        topic,
        [Record(b"fast", partition=0, timestamp=9 * hours + number) for number in range(5000)],
    )
    broker.produce(
        topic, [Record(b"slow", partition=1, timestamp=1000 + number) for number in range(5000)]
    )
    env = environment()
    env.program.values["taskmanager.network.batch.max-records"] = "10"
    env.program.values["pipeline.auto-watermark-interval"] = "1 ms"
    stream = env.from_source(
        strings(broker, topic).set_unbounded(LATEST).build(),
        WatermarkStrategy.for_monotonous_timestamps(),
        "letters",
    )
    counted = (
        stream.map(lambda letter: (letter, 1))
        .key_by(lambda pair: pair[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
    )
    found: Counter[str] = Counter()
    for letter, count in counted.execute_and_collect():
        found[letter] += count
    assert found == {"slow": 5000, "fast": 5000}


def test_an_empty_partition_holds_nobody_back_once_it_is_idle(broker: Broker) -> None:
    topic = broker.new_topic(2)
    broker.produce(
        topic, [Record(str(number).encode(), timestamp=1000 * number) for number in range(10)]
    )
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_millis(50))
    env = environment()
    stream = env.from_source(strings(broker, topic).build(), strategy, "letters").map(int)
    windows = stream.window_all(TumblingEventTimeWindows.of(Time.seconds(2))).reduce(
        lambda one, other: one + other
    )
    assert windows.take(4) == [1, 5, 9, 13]


def test_a_subtask_without_a_partition_holds_nobody_back(broker: Broker) -> None:
    topic = broker.new_topic(1)
    broker.produce(
        topic, [Record(str(number).encode(), timestamp=1000 * number) for number in range(10)]
    )
    env = environment(3)
    stream = env.from_source(
        strings(broker, topic).build(), WatermarkStrategy.for_monotonous_timestamps(), "letters"
    ).map(int)
    windows = stream.window_all(TumblingEventTimeWindows.of(Time.seconds(2))).reduce(
        lambda one, other: one + other
    )
    assert windows.take(4) == [1, 5, 9, 13]


def test_the_time_of_a_record_is_that_of_kafka(broker: Broker) -> None:
    topic = broker.new_topic()
    broker.produce(topic, [Record(b"a", timestamp=1234), Record(b"b", timestamp=777)])
    with World(strings(broker, topic).set_bounded(LATEST).build()) as world:
        until(world, lambda: world.finished)
        assert [
            stamp for batch in world.subtasks[0].output.batches for stamp in batch.timestamps or ()
        ] == [1234, 777]


# -- trouble ---------------------------------------------------------------------------------------


def test_a_record_that_cannot_be_parsed_goes_to_a_side_output_with_its_place(
    broker: Broker,
) -> None:
    """As docs/kafka.md says: read whole records, and parse in a map with an error policy."""
    topic = broker.new_topic()
    broker.produce(topic, [b"1", b"two", b"3"])
    failed = OutputTag("failed")
    env = environment()
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.bootstrap)
        .set_topics(topic)
        .set_whole_records()
        .set_bounded(LATEST)
        .build()
    )
    parsed = (
        env.from_source(source, NO_WATERMARKS, "orders")
        .map(lambda record: int(record.value))
        .on_error(ErrorPolicy.divert(failed))
    )
    bad = parsed.get_side_output(failed).map(lambda letter: letter.record)
    letters = bad.map(lambda record: (record.topic, record.partition, record.offset, record.value))
    assert set(parsed.map(str).union(letters.map(str)).execute_and_collect()) == {
        "1",
        "3",
        str((topic, 0, 1, b"two")),
    }


def test_a_job_that_cannot_parse_a_record_fails_with_its_place(broker: Broker) -> None:
    topic = broker.new_topic()
    broker.produce(topic, [b"fine", b"\xff"])
    with pytest.raises(JobExecutionError, match=rf"from topic '{topic}', partition 0, offset 1"):
        list(
            environment()
            .from_source(strings(broker, topic).build(), NO_WATERMARKS, "orders")
            .execute_and_collect()
        )


def test_a_broker_that_does_not_answer_for_a_while_loses_nothing(
    broker: Broker, topic: str
) -> None:
    source = strings(broker, topic).set_properties(
        {"socket.timeout.ms": "1000", "fetch.wait.max.ms": "100", "reconnect.backoff.max.ms": "100"}
    )
    with World(source.build(), batch_records=100) as world:
        until(world, lambda: len(world.values) > 10)
        with broker.silent():
            clock = SystemClock()
            end = clock.monotonic() + 2.5
            until(world, lambda: clock.monotonic() > end)
        broker.produce(topic, numbered(10, 3000))
        until(world, lambda: len(world.values) >= 3010)
        assert sorted(world.values, key=int) == texts(3010)


def test_it_warns_of_brokers_that_are_away(caplog: pytest.LogCaptureFixture) -> None:
    from flinkpy.connectors.kafka.message_intake import Outage

    outage = Outage()
    outage.failed("connection refused", 100.0)
    assert outage.warning(104.0) is None
    outage.failed("timed out", 104.0)
    assert outage.warning(105.0) == "for 5 s (timed out)"
    assert outage.warning(200.0) is None  # it was told
    outage.ended()
    outage.failed("connection refused", 300.0)
    assert outage.warning(301.0) is None
    assert outage.warning(306.0) == "for 6 s (connection refused)"


def test_offsets_that_cannot_be_committed_are_warned_of(
    broker: Broker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    with World(strings(broker, topic).set_group_id(broker.unused_name("group")).build()) as world:
        until(world, lambda: len(world.values) >= 3000)
        intake = world.subtasks[0].operator._opened()._intake  # type: ignore[attr-defined]
        from confluent_kafka import KafkaError

        with caplog.at_level(logging.WARNING):
            intake._commit_answered(KafkaError(KafkaError.NOT_COORDINATOR), [])
    assert "the job's checkpoints have them" in caplog.text


# In a process of its own, whose memory does not count
PRODUCE_64_MB = """
import sys
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": sys.argv[1]})
for _ in range(4096):
    producer.produce(sys.argv[2], bytes(16384))
producer.flush()
"""


@pytest.mark.wide
def test_a_slow_consumer_is_not_flooded(broker: Broker) -> None:
    """A client's queue of 1 MB is full, and then 64 MB more come: what is not taken stays at the
    broker. (This broker gives all it has at once, so the queue may hold more than it should,
    once.)"""
    psutil = pytest.importorskip("psutil")
    topic = broker.new_topic()
    broker.produce(topic, [bytes(16384)] * 4096)
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.bootstrap)
        .set_topics(topic)
        .set_value_only_deserializer(ByteArraySchema())
        .set_starting_offsets(
            KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 0): 3900})
        )
        .set_property("queued.max.messages.kbytes", "1024")
        .build()
    )
    with World(source, batch_records=10) as world:
        until(world, lambda: len(world.values) >= 10, steps=1)
        before = psutil.Process().memory_info().rss
        subprocess.run(
            [sys.executable, "-c", PRODUCE_64_MB, broker.bootstrap, topic], check=True, timeout=60
        )
        for _ in range(20):
            threading.Event().wait(0.05)
            assert psutil.Process().memory_info().rss - before < 24 << 20
        until(world, lambda: len(world.values) >= 196 + 4096)


def test_a_job_that_waits_for_records_is_cancelled_at_once(broker: Broker, topic: str) -> None:
    results = (
        environment(2)
        .from_source(strings(broker, topic).build(), NO_WATERMARKS, "orders")
        .execute_and_collect()
    )
    assert len([next(results) for _ in range(3000)]) == 3000
    clock = SystemClock()
    began = clock.monotonic()
    results.close()
    assert clock.monotonic() - began < 5
    eventually(
        lambda: (
            not [
                thread
                for thread in threading.enumerate()
                if thread.name == f"Kafka {broker.bootstrap}"
            ]
        )
    )


def test_an_unbounded_stream_gives_records_as_they_come(broker: Broker) -> None:
    topic = broker.new_topic()
    offsets = KafkaOffsetsInitializer.earliest()
    stream = environment().from_source(
        strings(broker, topic).set_starting_offsets(offsets).build(), NO_WATERMARKS, "orders"
    )
    with stream.execute_and_collect() as results:
        for number in range(3):
            broker.produce(topic, numbered(1, number))
            assert next(results) == str(number)
