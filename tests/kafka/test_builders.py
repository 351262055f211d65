"""What the builders of Kafka sources refuse, with the line of the program and what to call instead.
No broker is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flinkpy.common.serialization import SimpleStringSchema
from flinkpy.connectors.kafka import client_properties
from flinkpy.connectors.kafka.client_properties import for_librdkafka
from flinkpy.connectors.kafka.kafka_offsets import Offsets
from flinkpy.connectors.kafka.partition_enumerator import owner_of
from flinkpy.connectors.source_api.source import Boundedness
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.connectors.kafka import (
    FlinkKafkaConsumer,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaSink,
    KafkaSource,
    KafkaSourceBuilder,
    KafkaTopicPartition,
)
from flinkpy.datastream.formats.raw import RawColumnarDecoder

pytest.importorskip("confluent_kafka", reason=client_properties.MISSING_PACKAGE)


def complete() -> KafkaSourceBuilder:
    return (
        KafkaSource.builder()
        .set_bootstrap_servers("localhost:9")
        .set_topics("orders")
        .set_value_only_deserializer(SimpleStringSchema())
    )


BUILD: list[tuple[Callable[[], Any], str]] = [
    (lambda: KafkaSource.builder().build(), "call set_bootstrap_servers"),
    (lambda: KafkaSource.builder().set_bootstrap_servers("localhost:9").build(), "call set_topics"),
    (
        lambda: (
            KafkaSource.builder().set_bootstrap_servers("localhost:9").set_topics("orders").build()
        ),
        "call set_value_only_deserializer",
    ),
    (lambda: KafkaSource.builder().set_topics(), "names of topics"),
    (lambda: KafkaSource.builder().set_topics(["orders"]), "one argument each"),  # type: ignore[arg-type]
    (lambda: KafkaSource.builder().set_topic_pattern("("), "regular expression"),
    (lambda: KafkaSource.builder().set_partitions(set()), "at least one"),
    (lambda: complete().set_topic_pattern("a.*"), "was set before, to orders"),
    (lambda: complete().set_value_only_deserializer("json"), "takes a DeserializationSchema"),  # type: ignore[arg-type]
    (
        lambda: complete().set_columns("json"),  # type: ignore[arg-type]
        "takes a ColumnarDecoder of flinkpy.datastream.formats",
    ),
    (
        lambda: complete().set_starting_offsets("earliest"),  # type: ignore[arg-type]
        "such as KafkaOffsetsInitializer.latest()",
    ),
    (lambda: complete().set_bounded(None), "set_bounded() takes a KafkaOffsetsInitializer"),  # type: ignore[arg-type]
    (
        lambda: (
            complete().set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()).build()
        ),
        "with set_group_id()",
    ),
    (
        lambda: complete().set_property("isolation.level", "read_comitted").build(),
        "isolation.level",
    ),
    (lambda: complete().set_property("no.such.property", "1").build(), "no.such.property"),
    (
        lambda: complete().set_property("ssl.truststore.location", "/store.jks").build(),
        "ssl.ca.location",
    ),
    (
        lambda: complete().set_property("partition.discovery.interval.ms", "often").build(),
        "number of milliseconds",
    ),
    (
        lambda: complete().set_property("commit.offsets.on.checkpoint", "yes").build(),
        "commit.offsets.on.checkpoint is true or false, this is 'yes'",
    ),
    (
        lambda: complete().set_value_only_deserializer(RawColumnarDecoder()),  # type: ignore[arg-type]
        "a columnar decoder goes to set_columns()",
    ),
    (
        lambda: StreamExecutionEnvironment.get_execution_environment().from_source(complete()),  # type: ignore[arg-type]
        "; call its build()",
    ),
    (
        lambda: (
            StreamExecutionEnvironment.get_execution_environment()
            .from_collection([1])
            .sink_to(KafkaSink.builder())
        ),
        "; call its build()",
    ),
    (lambda: complete().set_property("group.id", None), "is a text"),  # type: ignore[arg-type]
    (lambda: KafkaTopicPartition("orders", -1), "a number from 0 on"),
    (lambda: KafkaOffsetsInitializer.timestamp(-1), "milliseconds since 1970"),
    (lambda: KafkaOffsetsInitializer.offsets({("orders", 0): 1}), "KafkaTopicPartition as keys"),  # type: ignore[dict-item]
    (
        lambda: KafkaOffsetsInitializer.committed_offsets("earliest"),  # type: ignore[arg-type]
        "one of KafkaOffsetResetStrategy",
    ),
    (
        lambda: FlinkKafkaConsumer(
            "orders", SimpleStringSchema(), {"bootstrap.servers": "localhost:9"}
        ).set_start_from_group_offsets(),
        "group.id",
    ),
]


@pytest.mark.parametrize(("call", "wanted"), BUILD)
def test_what_cannot_be_right_is_refused_while_the_program_is_built(
    call: Callable[[], Any], wanted: str
) -> None:
    with pytest.raises(ProgramError) as caught:
        call()
    assert wanted in str(caught.value)


def test_a_refusal_of_build_names_the_line_of_the_program() -> None:
    with pytest.raises(
        ProgramError, match=r"test_builders\.py:\d+: a Kafka source needs the address"
    ):
        KafkaSource.builder().build()


def test_without_the_package_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ProgramError, match=r"pip install 'flinkpy\[kafka\]'"):
        complete().build()


def test_a_source_is_bounded_if_it_is_said_to_be() -> None:
    latest = KafkaOffsetsInitializer.latest()
    assert complete().build().boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert complete().set_unbounded(latest).build().boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert complete().set_bounded(latest).build().boundedness is Boundedness.BOUNDED


def test_partitions_are_assigned_as_flink_assigns_them() -> None:
    """The numbers are what ``((topic.hashCode() * 31) & 0x7FFFFFFF) % readers`` gives in Java, and
    the next ones round."""
    assert [owner_of(KafkaTopicPartition("orders", partition), 3) for partition in range(4)] == [
        (JAVA_HASH_OF_ORDERS * 31 & 0x7FFFFFFF) % 3,
        *[((JAVA_HASH_OF_ORDERS * 31 & 0x7FFFFFFF) % 3 + partition) % 3 for partition in (1, 2, 3)],
    ]


JAVA_HASH_OF_ORDERS = -1008770331  # "orders".hashCode()


class Lookup:
    """Two partitions with the offsets 10 to 20; the group has committed 15 of the first."""

    group = "shop"

    def at_time(self, partitions: Any, time: int) -> Offsets:
        if time == 7:
            return {}
        return {each: {-2: 10, -1: 20}[time] for each in partitions}

    def committed(self, partitions: Any) -> Offsets:
        return {each: 15 for each in partitions if each.partition == 0}


A, B = KafkaTopicPartition("orders", 0), KafkaTopicPartition("orders", 1)


@pytest.mark.parametrize(
    ("initializer", "wanted", "reset"),
    [
        (KafkaOffsetsInitializer.earliest(), [10, 10], "earliest"),
        (KafkaOffsetsInitializer.latest(), [20, 20], "latest"),
        (KafkaOffsetsInitializer.timestamp(7), [20, 20], "latest"),
        (
            KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST),
            [15, 10],
            "earliest",
        ),
        (
            KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.LATEST),
            [15, 20],
            "latest",
        ),
        (KafkaOffsetsInitializer.offsets({A: 12}), [12, 10], "earliest"),
        (KafkaOffsetsInitializer.offsets({B: 12}), [15, 12], "earliest"),
        (
            KafkaOffsetsInitializer.offsets({A: 12, B: 13}, KafkaOffsetResetStrategy.NONE),
            [12, 13],
            "error",
        ),
    ],
)
def test_offsets_are_those_that_flink_resolves(
    initializer: KafkaOffsetsInitializer, wanted: list[int], reset: str
) -> None:
    found = initializer.resolve([A, B], Lookup())
    assert [found[A], found[B]] == wanted
    assert initializer.reset_property == reset


def test_a_group_that_has_committed_nothing_is_named() -> None:
    with pytest.raises(
        ProgramError, match=r"no offset of orders\[1\] that the group 'shop' has committed"
    ):
        KafkaOffsetsInitializer.committed_offsets().resolve([A, B], Lookup())


def test_properties_that_librdkafka_calls_otherwise_are_taken_by_their_names_in_java() -> None:
    complete().set_property("fetch.max.wait.ms", "50").set_property(
        "receive.buffer.bytes", "65536"
    ).build()
    assert for_librdkafka({"max.request.size": "4000000"}) == {"message.max.bytes": "4000000"}


def test_credentials_are_taken_from_the_property_that_java_has_them_in() -> None:
    jaas = (
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="anna" '
        'password="a\\"b";'
    )
    assert for_librdkafka(
        {"sasl.jaas.config": jaas, "sasl.mechanism": "PLAIN", "key.deserializer": "org.x"}
    ) == {"sasl.username": "anna", "sasl.password": 'a"b', "sasl.mechanism": "PLAIN"}
    with pytest.raises(ProgramError, match=r"set sasl\.username and sasl\.password"):
        for_librdkafka(
            {"sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;"}
        )


def test_the_older_consumer_begins_where_its_methods_say() -> None:
    properties = {"bootstrap.servers": "localhost:9", "group.id": "shop"}

    def begin(consumer: KafkaSource) -> str:
        return repr(consumer._reading.start)

    consumer = FlinkKafkaConsumer(["orders"], SimpleStringSchema(), properties)
    assert begin(consumer) == "KafkaOffsetsInitializer.committed_offsets(LATEST)"
    assert begin(consumer.set_start_from_earliest()) == "KafkaOffsetsInitializer.earliest()"
    assert begin(consumer.set_start_from_latest()) == "KafkaOffsetsInitializer.latest()"
    assert begin(consumer.set_start_from_timestamp(5)) == "KafkaOffsetsInitializer.timestamp(5)"
    assert (
        begin(consumer.set_start_from_group_offsets())
        == "KafkaOffsetsInitializer.committed_offsets(LATEST)"
    )
    assert begin(
        FlinkKafkaConsumer(
            "a", SimpleStringSchema(), {**properties, "auto.offset.reset": "earliest"}
        )
    ) == ("KafkaOffsetsInitializer.committed_offsets(EARLIEST)")
    env = StreamExecutionEnvironment.get_execution_environment()
    assert env.add_source(consumer).get_type() == consumer.get_produced_type()


@pytest.mark.parametrize(("name", "value"), [("linger.ms", "soon"), ("fetch.min.bytes", "many")])
def test_a_property_that_is_no_number_is_named_with_its_value(name: str, value: str) -> None:
    with pytest.raises(
        ProgramError,
        match=(
            f"refuses the source's properties: {name} is a number, this is '{value}'; "
            "librdkafka's list"
        ),
    ):
        complete().set_property(name, value).build()
