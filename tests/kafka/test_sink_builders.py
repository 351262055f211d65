"""What builders of Kafka sinks refuse, while the program is built. No broker."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.common import SimpleStringSchema
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.connectors.base import DeliveryGuarantee
from flinkpy.datastream.connectors.kafka import (
    FlinkKafkaProducer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSinkBuilder,
)
from flinkpy.datastream.formats.json import JsonColumnarEncoder

WORDS = (
    KafkaRecordSerializationSchema.builder()
    .set_topic("words")
    .set_value_serialization_schema(SimpleStringSchema())
    .build()
)


def builder() -> KafkaSinkBuilder:
    return KafkaSink.builder().set_bootstrap_servers("localhost:9092").set_record_serializer(WORDS)


def exactly_once(**properties: str) -> KafkaSink:
    made = (
        builder()
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix("words")
    )
    for name, value in properties.items():
        made.set_property(name.replace("_", "."), value)
    return made.build()


def older(**config: Any) -> FlinkKafkaProducer:
    return FlinkKafkaProducer(
        "words",
        SimpleStringSchema(),
        {name.replace("_", "."): value for name, value in config.items()},
    )


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: KafkaSink.builder().build(), "needs brokers: set_bootstrap_servers"),
        (
            lambda: KafkaSink.builder().set_bootstrap_servers("localhost:9092").build(),
            "needs to know how records become messages",
        ),
        (
            lambda: builder().set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).build(),
            "set_transactional_id_prefix",
        ),
        (lambda: builder().set_delivery_guarantee("EXACTLY_ONCE"), "takes a DeliveryGuarantee"),  # type: ignore[arg-type]
        (lambda: builder().set_transactional_id_prefix(""), "takes a text"),
        (
            lambda: builder().set_record_serializer(SimpleStringSchema()),  # type: ignore[arg-type]
            "takes a KafkaRecordSerializationSchema",
        ),
        (
            lambda: builder().set_record_serializer(KafkaRecordSerializationSchema.builder()),  # type: ignore[arg-type]
            r"…; call its build\(\)",
        ),
        (
            lambda: KafkaRecordSerializationSchema.builder().set_partitioner(lambda record: 0),  # type: ignore[arg-type,misc]
            "takes a function of record, key, value, topic and partitions",
        ),
        (
            lambda: KafkaRecordSerializationSchema.builder().set_headers(lambda: None),  # type: ignore[arg-type, misc]
            "takes a function of the record",
        ),
        (lambda: builder().set_property("acks", None), "the Kafka property acks is a text"),  # type: ignore[arg-type]
        (lambda: builder().set_property("acks", "some").build(), "refuses the sink's properties"),
        (
            lambda: builder().set_property("ssl.truststore.location", "jks").build(),
            "key store of Java",
        ),
        (
            lambda: exactly_once(transaction_timeout_ms="soon"),
            "transaction.timeout.ms is a whole number of milliseconds from 1000 on",
        ),
        (
            lambda: exactly_once(security_protocol="SASL_SSL", sasl_mechanism="GSSAPI"),
            "cannot be kept with sasl.mechanism=GSSAPI",
        ),
        (lambda: older(), "names no brokers"),
        (
            lambda: older(bootstrap_servers="localhost:9092").set_log_failures_only(True),
            r"set_log_failures_only\(True\) is not there",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_told_with_the_line(
    build: Callable[[], Any], says: str
) -> None:
    with pytest.raises(ProgramError, match=says) as caught:
        build()
    assert "test_sink_builders.py" in str(caught.value)


def test_without_the_extra_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(
        ProgramError, match=r"Kafka needs the extra: pip install 'flinkpy\[kafka\]'"
    ):
        builder().build()


def test_the_older_sink_gives_up_its_guarantee_if_it_does_not_flush() -> None:
    made = older(bootstrap_servers="localhost:9092")
    assert repr(made.set_flush_on_checkpoint(True)) == "FlinkKafkaProducer(words, AT_LEAST_ONCE)"
    assert repr(made.set_flush_on_checkpoint(False)) == "FlinkKafkaProducer(words, NONE)"
    assert (
        made.set_write_timestamp_to_kafka(True).ignore_failures_after_transaction_timeout() is made
    )


def test_settings_keep_what_javas_client_promises() -> None:
    from flinkpy.connectors.kafka.writing.producers import settings_of

    plain = settings_of({}, transactional=False)
    assert (plain["delivery.timeout.ms"], plain["enable.idempotence"], plain["partitioner"]) == (
        "120000",
        "true",
        "murmur2_random",
    )
    assert "transaction.timeout.ms" not in plain
    assert settings_of({}, transactional=True)["transaction.timeout.ms"] == "900000"
    assert (
        settings_of({"transaction.timeout.ms": "5000"}, transactional=True)["delivery.timeout.ms"]
        == "5000"
    )
    assert (
        settings_of({"delivery.timeout.ms": "7"}, transactional=False)["delivery.timeout.ms"] == "7"
    )


def test_two_sinks_of_a_job_that_write_with_one_prefix_are_refused() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream, sink = env.from_collection(["a"]), exactly_once()
    stream.sink_to(sink)
    stream.sink_to(builder().build())
    env.get_execution_plan()
    stream.map(str.upper).sink_to(sink)
    with pytest.raises(
        ProgramError,
        match=r"both write with the transactional id prefix 'words' at localhost:9092; give each",
    ):
        env.get_execution_plan()


def test_an_encoder_of_columns_over_rows_is_refused_at_the_line_of_the_program() -> None:
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic("t")
        .set_value_serialization_schema(JsonColumnarEncoder())
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers("localhost:9092")
        .set_record_serializer(schema)
        .build()
    )
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(
        ProgramError,
        match=(
            r"test_sink_builders\.py:\d+: .*makes messages of columns, and this stream has rows: "
            r".* select\(\)"
        ),
    ):
        env.from_collection([1]).sink_to(sink)
    env.from_arrow(pa.table({"n": [1]})).sink_to(sink)
