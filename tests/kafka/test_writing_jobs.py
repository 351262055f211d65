"""Whole jobs that write into Kafka, and fail: what readers of committed records see is what an
undisturbed run writes."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import SimpleStringSchema, Time, WatermarkStrategy
from flinkpy.core.clock import SystemClock
from flinkpy.core.errors import JobExecutionError
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.datastream.connectors.base import DeliveryGuarantee
from flinkpy.datastream.connectors.kafka import (
    FlinkKafkaProducer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSinkBuilder,
    Semantic,
)
from flinkpy.datastream.window import TumblingEventTimeWindows
from flinkpy.formats.raw_columns import RawColumnarEncoder
from flinkpy.testing.environment import embedded_environment
from tests.kafka.broker import Broker

OPTIONS = {
    "execution.checkpointing.interval": "20 ms",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.delay": "10 ms",
    "restart-strategy.fixed-delay.attempts": 5,
}
RECORDS, RATE = 3_000, 3_000.0
# a broker deletes messages whose own time is long ago
BEGIN_MS = SystemClock().time_ms() // 1000 * 1000


def sink(broker: Broker, topic: str, guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    builder = (
        KafkaSink.builder().set_bootstrap_servers(broker.bootstrap).set_record_serializer(schema)
    )
    return builder.set_delivery_guarantee(guarantee).set_transactional_id_prefix(topic)


class FailsAt:
    """Raises when a record comes, once for each of them; a file says whether it has."""

    def __init__(self, folder: Path, *numbers: int) -> None:
        self._folder, self._numbers = folder, set(numbers)

    def __call__(self, record: Any) -> Any:
        number = record[1]
        if number in self._numbers and not (self._folder / str(number)).exists():
            (self._folder / str(number)).touch()
            raise ArithmeticError(f"record {number} fails")
        return record


def windows(env: StreamExecutionEnvironment, fails: FailsAt) -> DataStream:
    """Sums for each key and window, as text."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda record, _: BEGIN_MS + record[1]
    )
    records = (
        env.generate(lambda index: (index % 7, index), RECORDS, RATE)
        .map(fails)
        .assign_timestamps_and_watermarks(strategy)
    )
    sums = records.key_by(lambda record: record[0]).window(
        TumblingEventTimeWindows.of(Time.milliseconds(100))
    )
    return sums.reduce(lambda a, b: (a[0], a[1] + b[1])).map(lambda pair: f"{pair[0]} {pair[1]}")


def sums() -> list[bytes]:
    found: dict[tuple[int, int], int] = {}
    for number in range(RECORDS):
        place = (number % 7, number // 100)
        found[place] = found.get(place, 0) + number
    return sorted(f"{key} {total}".encode() for (key, _), total in found.items())


def written(broker: Broker, topic: str) -> list[bytes]:
    return sorted(value or b"" for value in broker.values(topic))


def test_a_job_that_fails_again_and_again_shows_what_an_undisturbed_one_shows(
    broker: Broker, tmp_path: Path
) -> None:
    topic = broker.new_topic(3)
    env = embedded_environment(OPTIONS, parallelism=2)
    windows(env, FailsAt(tmp_path, 500, 1700, 2999)).sink_to(
        sink(broker, topic, DeliveryGuarantee.EXACTLY_ONCE).build()
    )
    env.execute()
    assert {path.name for path in tmp_path.iterdir()} == {"500", "1700", "2999"}
    assert written(broker, topic) == sums()


def test_at_least_once_shows_all_of_it(broker: Broker, tmp_path: Path) -> None:
    topic = broker.new_topic(3)
    env = embedded_environment(OPTIONS, parallelism=2)
    windows(env, FailsAt(tmp_path, 1500)).sink_to(
        sink(broker, topic, DeliveryGuarantee.AT_LEAST_ONCE).build()
    )
    env.execute()
    assert set(written(broker, topic)) == set(sums())


@pytest.mark.wide
@pytest.mark.parametrize("guarantee", DeliveryGuarantee, ids=lambda each: each.name)
@pytest.mark.parametrize("mode", ["BATCH", "STREAMING"])
def test_a_job_without_checkpoints_shows_all_when_it_ends(
    broker: Broker, guarantee: DeliveryGuarantee, mode: str
) -> None:
    topic = broker.new_topic()
    env = embedded_environment({"execution.runtime-mode": mode}, parallelism=2)
    env.from_collection([str(number) for number in range(100)]).rebalance().sink_to(
        sink(broker, topic, guarantee).build()
    )
    env.execute()
    assert written(broker, topic) == sorted(str(number).encode() for number in range(100))


def test_a_job_that_goes_on_from_a_savepoint_with_more_subtasks_shows_each_record_once(
    broker: Broker, tmp_path: Path
) -> None:
    topic = broker.new_topic()
    turns = itertools.count()

    def start(parallelism: int, **options: Any) -> Any:
        env = embedded_environment({**OPTIONS, **options}, parallelism=parallelism)
        stream = env.generate(lambda index: str(index), RECORDS, RATE).uid("numbers")
        stream.sink_to(sink(broker, topic, DeliveryGuarantee.EXACTLY_ONCE).build()).uid("sink")
        return env.execute_async(f"run {next(turns)}")

    job = start(1)
    savepoint = job.stop_with_savepoint(False, str(tmp_path)).result(60)
    start(3, **{"execution.savepoint.path": savepoint}).get_job_execution_result().result(60)
    assert written(broker, topic) == sorted(str(number).encode() for number in range(RECORDS))


def test_columns_are_written_by_the_batch(broker: Broker) -> None:
    topic = broker.new_topic()
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_value_serialization_schema(RawColumnarEncoder("word"))
        .build()
    )
    env = embedded_environment()
    import pyarrow as pa

    table = pa.table({"word": ["a", "b", "c"], "n": [1, 2, 3]})
    env.from_arrow(table).sink_to(
        sink(broker, topic, DeliveryGuarantee.AT_LEAST_ONCE).set_record_serializer(schema).build()
    )
    env.execute()
    assert written(broker, topic) == [b"a", b"b", b"c"]


def test_a_serializer_that_gives_no_bytes_is_told_with_its_record(broker: Broker) -> None:
    class Broken(SimpleStringSchema):
        def serialize(self, value: Any) -> bytes:
            return value  # type: ignore[no-any-return]

    env = embedded_environment()
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic("t")
        .set_value_serialization_schema(Broken())
        .build()
    )
    env.from_collection([42]).sink_to(
        sink(broker, "t", DeliveryGuarantee.NONE).set_record_serializer(schema).build()
    )
    with pytest.raises(
        JobExecutionError,
        match="gives 42 as a message's value; it must return bytes, or None for none",
    ) as caught:
        env.execute()
    assert "on record 42" in str(caught.value)


@pytest.mark.wide
@pytest.mark.parametrize("semantic", Semantic, ids=lambda each: each.name)
def test_the_older_producer_writes_too(broker: Broker, semantic: Semantic) -> None:
    topic = broker.new_topic()
    env = embedded_environment(OPTIONS)
    config = {"bootstrap.servers": broker.bootstrap}
    env.from_collection(["a", "b"]).add_sink(
        FlinkKafkaProducer(topic, SimpleStringSchema(), config, semantic=semantic)
    )
    env.execute()
    assert written(broker, topic) == [b"a", b"b"]
