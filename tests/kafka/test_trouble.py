"""What goes wrong between a job and its broker, while both run: retried where that helps, told in
one sentence where it does not; nothing is lost."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message

from flinkpy.common import SimpleStringSchema, WatermarkStrategy
from flinkpy.connectors.kafka.client_properties import refusal
from flinkpy.connectors.kafka.kafka_offsets import KafkaTopicPartition
from flinkpy.connectors.kafka.partition_enumerator import KafkaSplit, ReadersMayBegin
from flinkpy.connectors.kafka.partition_reader import KafkaReader
from flinkpy.connectors.kafka.record_decoding import WholeRecords
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream.connectors.base import DeliveryGuarantee
from flinkpy.datastream.connectors.kafka import (
    FlinkKafkaProducer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from flinkpy.testing.environment import embedded_environment
from tests.kafka.broker import Broker
from tests.kafka.reading import LATEST, numbered, strings
from tests.kafka.test_writing_jobs import OPTIONS
from tests.waiting import eventually


@pytest.mark.wide
@pytest.mark.parametrize(
    "guarantee",
    [DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.EXACTLY_ONCE],
    ids=lambda each: each.name,
)
def test_a_broker_that_is_away_while_a_job_runs_changes_nothing_in_what_is_written(
    broker: Broker,
    guarantee: DeliveryGuarantee,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Source, transactions and commits meet a silent broker; the source's warning says that it was
    noticed."""
    monkeypatch.setattr("flinkpy.connectors.kafka.message_intake.WARN_AFTER_S", 0.01)
    source, target = broker.new_topic(2), broker.new_topic(2)
    broker.produce(source, numbered(500))
    texts = strings(broker, source).set_properties(
        {
            "isolation.level": "read_committed",
            "socket.timeout.ms": "1000",
            "fetch.wait.max.ms": "100",
            "reconnect.backoff.max.ms": "100",
        }
    )
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(target)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(broker.bootstrap)
        .set_record_serializer(schema)
        .set_delivery_guarantee(guarantee)
    )
    env = embedded_environment(
        {**OPTIONS, "execution.checkpointing.dir": str(tmp_path)}, parallelism=2
    )
    read = env.from_source(texts.build(), WatermarkStrategy.no_watermarks(), "texts")
    read.map(str.upper).sink_to(sink.set_transactional_id_prefix(target).build())
    with caplog.at_level(logging.WARNING):
        job = env.execute_async("away")
        eventually(lambda: len(broker.values(target)) == 500)
        with broker.silent():
            eventually(lambda: "have not been reached" in caplog.text)
        broker.produce(source, numbered(500, 500), partition=1)
        eventually(lambda: len(broker.values(target)) >= 1000)
        job.cancel().result(60)
    assert sorted(broker.values(target)) == sorted(numbered(1000))  # type: ignore[type-var]


def test_a_job_that_starts_while_its_broker_is_away_waits_for_it(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("flinkpy.connectors.kafka.broker_questions.WARN_AFTER_S", 0.01)
    topic = broker.new_topic()
    broker.produce(topic, numbered(5))
    texts = (
        strings(broker, topic)
        .set_bounded(LATEST)
        .set_property("reconnect.backoff.max.ms", "100")
        .build()
    )
    stream = embedded_environment().from_source(texts, WatermarkStrategy.no_watermarks(), "texts")
    with caplog.at_level(logging.WARNING), broker.silent():
        results = stream.execute_and_collect()
        eventually(lambda: "asking on" in caplog.text)
    with results:
        assert sorted(results) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("what", ["source", "sink"])
def test_a_folder_that_a_worker_does_not_have_is_told_in_one_sentence(
    what: str, tmp_path: Path
) -> None:
    """It was there where the program was built."""
    ca = tmp_path / "certificates"
    ca.mkdir()
    tls = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "ssl",
        "ssl.ca.location": str(ca),
    }
    env = embedded_environment()
    if what == "source":
        texts = (
            KafkaSource.builder()
            .set_topics("t")
            .set_value_only_deserializer(SimpleStringSchema())
            .set_properties(tls)
            .build()
        )
        env.from_source(texts, WatermarkStrategy.no_watermarks(), "texts").print()
    else:
        env.from_collection(["a"]).add_sink(FlinkKafkaProducer("t", SimpleStringSchema(), tls))
    ca.rmdir()
    with pytest.raises(
        JobExecutionError,
        match=(
            r"cannot be made in this worker: .*ssl\.ca\.location.*must be on all machines of the "
            r"cluster"
        ),
    ):
        env.execute()


def test_a_reader_whose_client_cannot_be_made_can_be_closed() -> None:
    def fails() -> Any:
        raise ProgramError("no client")

    reader = KafkaReader(Begun(), fails, WholeRecords(), commits=False)  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="no client"):
        reader.start()
    reader.close()


class Given:
    """An intake that gives these messages, once."""

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages

    def assign(self, offsets: Any) -> None: ...

    def take(self, limit: int) -> list[Message]:
        given, self._messages = self._messages, []
        return given

    def failure_of(self, error: KafkaError, place: str) -> ProgramError:
        return refusal(error, "localhost:9092", place)


class Begun:
    def split_begun(self, split_id: str) -> None: ...


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            KafkaError._BAD_MSG,
            (
                r"what Kafka at localhost:9092 has at topic 'orders', partition 1, offset "
                r"7 cannot be "
                r"read .*: nothing of it was passed"
            ),
        ),
        (KafkaError._BAD_COMPRESSION, "cannot be read"),
        (
            KafkaError._LOG_TRUNCATION,
            "does not have topic 'orders', partition 1, offset 7 any more",
        ),
    ],
)
def test_what_the_client_cannot_read_fails_the_job_and_is_not_passed_over(
    code: int, says: str
) -> None:
    """librdkafka tells it with a message, and goes on behind it. No broker of the tests gives
    anything broken."""
    bad: Any = Message(topic="orders", partition=1, offset=7, error=KafkaError(code))
    intake: Any = Given([bad])
    context: Any = Begun()
    reader = KafkaReader(context, lambda: intake, WholeRecords(), commits=False)
    reader.start()
    reader.add_splits([KafkaSplit.of(KafkaTopicPartition("orders", 1), 0)])
    reader.handle_source_event(ReadersMayBegin())
    with pytest.raises(ProgramError, match=says):
        reader.poll(100)
