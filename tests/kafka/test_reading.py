"""What a Kafka source reads: every record once, from where and up to where it is told, whoever
reads."""

from __future__ import annotations

import pytest

from flinkpy.common.serialization import ByteArraySchema, DeserializationSchema, SimpleStringSchema
from flinkpy.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecord,
    KafkaSource,
    KafkaTopicPartition,
)
from tests.connectors.harness import World
from tests.kafka.broker import Broker, Record
from tests.kafka.reading import LATEST, failure, numbered, read_to_end, strings, texts, until

COUNT = 300


@pytest.fixture
def topic(broker: Broker) -> str:
    """Three partitions with a hundred records each, of the times 1000, 1010, 1020 and so on."""
    name = broker.new_topic(3)
    for partition in range(3):
        first = partition * 100
        broker.produce(
            name,
            [
                Record(value, partition=partition, timestamp=1000 + 10 * place)
                for place, value in enumerate(numbered(100, first))
            ],
        )
    return name


@pytest.mark.parametrize(("parallelism", "size"), [(1, 100), (2, 7), (3, 4096), (5, 100)])
def test_every_record_comes_once_whoever_reads_it(
    broker: Broker, topic: str, parallelism: int, size: int
) -> None:
    values = read_to_end(
        strings(broker, topic).set_bounded(LATEST).build(), parallelism, batch_records=size
    )
    assert sorted(values, key=int) == texts(COUNT)


def test_the_records_of_a_partition_come_in_order(broker: Broker, topic: str) -> None:
    values = read_to_end(strings(broker, topic).set_bounded(LATEST).build())
    for partition in range(3):
        first = 100 * partition
        assert [value for value in values if first <= int(value) < first + 100] == texts(100, first)


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 2), (2, 1), (3, 2)])
def test_from_a_checkpoint_the_rest_is_read_by_any_number_of_readers(
    broker: Broker, topic: str, before: int, after: int
) -> None:
    source = strings(broker, topic).build()
    with World(source, before, batch_records=10) as first:
        until(first, lambda: len(first.values) >= COUNT)
        broker.produce(topic, numbered(50, COUNT), partition=1)
        with first.checkpoint(after) as second:
            until(second, lambda: len(second.values) >= 50)
            assert sorted(first.values, key=int) == texts(COUNT)
            assert second.values == texts(50, COUNT)


def test_in_the_middle_of_a_topic_a_checkpoint_neither_loses_nor_doubles(
    broker: Broker, topic: str
) -> None:
    source = strings(broker, topic).set_bounded(LATEST).build()
    with World(source, 2, batch_records=10) as first:
        until(first, lambda: len(first.values) > 20, steps=1)
        with first.checkpoint(3) as second:
            assert len(first.values) < COUNT
            until(second, lambda: second.finished)
            assert sorted(first.values + second.values, key=int) == texts(COUNT)


# -- where it begins and stops ---------------------------------------------------------------------


def start(
    offsets: dict[int, int], topic: str, *strategy: KafkaOffsetResetStrategy
) -> KafkaOffsetsInitializer:
    return KafkaOffsetsInitializer.offsets(
        {KafkaTopicPartition(topic, partition): offset for partition, offset in offsets.items()},
        *strategy,
    )


def test_it_begins_at_a_time(broker: Broker, topic: str) -> None:
    values = read_to_end(
        strings(broker, topic)
        .set_starting_offsets(KafkaOffsetsInitializer.timestamp(1975))
        .set_bounded(LATEST)
        .build()
    )
    assert sorted(values) == ["198", "199", "298", "299", "98", "99"]


def test_a_time_after_the_last_record_is_the_end(broker: Broker, topic: str) -> None:
    assert (
        read_to_end(
            strings(broker, topic)
            .set_starting_offsets(KafkaOffsetsInitializer.timestamp(5000))
            .set_bounded(LATEST)
            .build()
        )
        == []
    )


def test_it_begins_at_given_offsets(broker: Broker, topic: str) -> None:
    values = read_to_end(
        strings(broker, topic)
        .set_starting_offsets(start({0: 99, 1: 98, 2: 100}, topic))
        .set_bounded(LATEST)
        .build()
    )
    assert sorted(values) == ["198", "199", "99"]


def test_a_partition_without_a_given_offset_begins_as_the_strategy_says(
    broker: Broker, topic: str
) -> None:
    given = start({0: 99, 1: 99}, topic, KafkaOffsetResetStrategy.LATEST)
    assert sorted(
        read_to_end(strings(broker, topic).set_starting_offsets(given).set_bounded(LATEST).build())
    ) == ["199", "99"]


def test_it_begins_where_the_group_has_committed(broker: Broker, topic: str) -> None:
    group = broker.unused_name("group")
    broker.commit_offsets(group, topic, {0: 99, 1: 100, 2: 97})
    builder = (
        strings(broker, topic)
        .set_group_id(group)
        .set_starting_offsets(KafkaOffsetsInitializer.committed_offsets())
    )
    assert sorted(read_to_end(builder.set_bounded(LATEST).build())) == ["297", "298", "299", "99"]


def test_where_nothing_is_committed_the_strategy_says_where_it_begins(
    broker: Broker, topic: str
) -> None:
    group = broker.unused_name("group")
    broker.commit_offsets(group, topic, {0: 99, 1: 99})
    committed = KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)
    values = read_to_end(
        strings(broker, topic)
        .set_group_id(group)
        .set_starting_offsets(committed)
        .set_bounded(LATEST)
        .build()
    )
    assert sorted(values, key=int) == ["99", "199", *texts(100, 200)]


def test_without_a_committed_offset_and_a_strategy_it_says_what_to_call(
    broker: Broker, topic: str
) -> None:
    builder = (
        strings(broker, topic)
        .set_group_id(broker.unused_name("group"))
        .set_starting_offsets(KafkaOffsetsInitializer.committed_offsets())
    )
    assert "committed_offsets(KafkaOffsetResetStrategy.EARLIEST)" in failure(builder.build())


@pytest.mark.parametrize("bounded", [True, False])
def test_it_stops_before_given_offsets(broker: Broker, topic: str, bounded: bool) -> None:
    stop = start({0: 2, 1: 0, 2: 1}, topic)
    builder = strings(broker, topic)
    source = (builder.set_bounded(stop) if bounded else builder.set_unbounded(stop)).build()
    assert sorted(read_to_end(source, 2)) == ["0", "1", "200"]


def test_it_stops_at_a_time(broker: Broker, topic: str) -> None:
    assert sorted(
        read_to_end(
            strings(broker, topic).set_bounded(KafkaOffsetsInitializer.timestamp(1020)).build()
        ),
        key=int,
    ) == ["0", "1", "100", "101", "200", "201"]


def test_it_stops_where_the_topic_ended_when_it_began_although_more_records_come(
    broker: Broker, topic: str
) -> None:
    with World(strings(broker, topic).set_bounded(LATEST).build(), batch_records=10) as world:
        until(world, lambda: len(world.values) > 10, steps=1)
        broker.produce(topic, numbered(20, 1000))
        until(world, lambda: world.finished)
        assert sorted(world.values, key=int) == texts(COUNT)


def test_latest_begins_with_what_comes_from_now_on(broker: Broker, topic: str) -> None:
    with World(strings(broker, topic).set_starting_offsets(LATEST).build(), 2) as world:
        until(
            world,
            lambda: all(subtask.operator._opened()._may_begin for subtask in world.subtasks),  # type: ignore[attr-defined]
        )
        broker.produce(topic, numbered(5, 1000))
        until(world, lambda: len(world.values) >= 5)
        assert world.values == texts(5, 1000)


def test_an_offset_that_is_gone_is_an_error_only_if_no_strategy_says_where_to_go_on(
    broker: Broker, topic: str
) -> None:
    def builder(strategy: KafkaOffsetResetStrategy) -> KafkaSource:
        return (
            strings(broker, topic)
            .set_starting_offsets(start({0: 100, 1: 100, 2: 5000}, topic, strategy))
            .build()
        )

    with World(builder(KafkaOffsetResetStrategy.EARLIEST)) as world:
        until(world, lambda: len(world.values) >= 100)
        assert world.values == texts(100, 200)
    assert (
        f"{topic}[2] has no offset 5000, but those from 0 to 100: begin there, or say with a "
        "KafkaOffsetResetStrategy"
    ) in failure(builder(KafkaOffsetResetStrategy.NONE))


@pytest.mark.parametrize(
    ("strategy", "values"),
    [(KafkaOffsetResetStrategy.EARLIEST, texts(100, 200)), (KafkaOffsetResetStrategy.LATEST, [])],
)
def test_an_offset_that_is_gone_is_replaced_in_a_stream_that_ends_as_in_one_that_does_not(
    broker: Broker, topic: str, strategy: KafkaOffsetResetStrategy, values: list[str]
) -> None:
    def source(strategy: KafkaOffsetResetStrategy) -> KafkaSource:
        return (
            strings(broker, topic)
            .set_starting_offsets(start({0: 100, 1: 100, 2: 5000}, topic, strategy))
            .set_bounded(LATEST)
            .build()
        )

    assert read_to_end(source(strategy)) == values
    assert f"{topic}[2] has no offset 5000" in failure(source(KafkaOffsetResetStrategy.NONE))


# -- from a checkpoint, with another end -----------------------------------------------------------


@pytest.mark.parametrize("readers", [1, 2, 4])
def test_a_stream_without_end_that_goes_on_with_one_ends_there(
    broker: Broker, topic: str, readers: int
) -> None:
    with World(strings(broker, topic).build(), 2, batch_records=10) as first:
        until(first, lambda: len(first.values) > 50, steps=1)
        rest = read_to_end(
            strings(broker, topic).set_bounded(LATEST).build(),
            readers,
            restored=first.saved(readers),
        )
        assert sorted(first.values + rest, key=int) == texts(COUNT)


def test_a_stream_with_an_end_that_goes_on_without_one_reads_on_behind_it(
    broker: Broker, topic: str
) -> None:
    with World(
        strings(broker, topic).set_bounded(start({0: 2, 1: 100, 2: 0}, topic)).build(),
        2,
        batch_records=10,
    ) as first:
        until(first, lambda: {"0", "1"} <= set(first.values) and len(first.values) > 50, steps=1)
        with World(strings(broker, topic).build(), restored=first.saved(1)) as second:
            until(second, lambda: len(first.values) + len(second.values) >= COUNT)
            assert sorted(first.values + second.values, key=int) == texts(COUNT)
            saved = second.saved(1)
    broker.produce(topic, numbered(5, 1000))
    assert sorted(
        read_to_end(strings(broker, topic).set_bounded(LATEST).build(), restored=saved)
    ) == texts(5, 1000)


def test_a_stream_that_goes_on_with_the_same_end_has_the_one_of_its_first_run(
    broker: Broker, topic: str
) -> None:
    source = strings(broker, topic).set_bounded(LATEST).build()
    with World(source, batch_records=10) as first:
        until(first, lambda: len(first.values) > 50, steps=1)
        broker.produce(topic, numbered(5, 1000))
        assert sorted(
            first.values + read_to_end(source, restored=first.saved(1)), key=int
        ) == texts(COUNT)


# -- which partitions ------------------------------------------------------------------------------


def test_it_reads_given_partitions(broker: Broker, topic: str) -> None:
    source = (
        strings(broker)
        .set_partitions({KafkaTopicPartition(topic, 2), KafkaTopicPartition(topic, 0)})
        .set_bounded(LATEST)
        .build()
    )
    assert sorted(read_to_end(source), key=int) == texts(100) + texts(100, 200)


def test_it_reads_several_topics(broker: Broker) -> None:
    topics = [broker.new_topic(2), broker.new_topic(1)]
    for place, each in enumerate(topics):
        broker.produce(each, numbered(10, 10 * place))
    assert sorted(
        read_to_end(strings(broker, *topics).set_bounded(LATEST).build(), 2), key=int
    ) == texts(20)


def test_a_pattern_matches_whole_names(broker: Broker) -> None:
    base = broker.unused_name("pattern")
    for name in (f"{base}-a", f"{base}-b", f"x{base}-a", f"{base}-abc"):
        broker.create_topic(name)
        broker.produce(name, [name.encode()])
    source = strings(broker).set_topic_pattern(f"{base}-[ab]").set_bounded(LATEST).build()
    assert sorted(read_to_end(source)) == [f"{base}-a", f"{base}-b"]


def test_new_partitions_and_topics_are_found_while_it_reads_and_begin_with_their_first_record(
    broker: Broker,
) -> None:
    base = broker.unused_name("found")
    broker.create_topic(f"{base}-1")
    source = (
        strings(broker)
        .set_topic_pattern(f"{base}-.*")
        .set_starting_offsets(LATEST)
        .set_property("partition.discovery.interval.ms", "100")
        .build()
    )
    with World(source, 2) as world:
        until(world, lambda: bool(world.scheduled))
        broker.create_topic(f"{base}-2", 2)
        broker.produce(f"{base}-2", numbered(10), partition=1)
        look_again(world)
        until(world, lambda: len(world.values) >= 10)
        with world.checkpoint(1) as second:
            broker.produce(f"{base}-2", numbered(10, 10), partition=1)
            until(second, lambda: len(second.values) >= 10)
            look_again(second)
            second.run()
            assert (world.values, second.values) == (texts(10), texts(10, 10))


def look_again(world: World) -> None:
    _, action = world.scheduled.pop()
    action()


def test_a_topic_that_does_not_exist_is_named(broker: Broker) -> None:
    message = failure(strings(broker, "no-such-topic").build())
    assert "has no topic 'no-such-topic'" in message
    assert "create it" in message


def test_a_partition_that_does_not_exist_is_named(broker: Broker, topic: str) -> None:
    source = (
        strings(broker)
        .set_partitions({KafkaTopicPartition(topic, 0), KafkaTopicPartition(topic, 3)})
        .build()
    )
    assert f"no partition {topic}[3]: the topic has 3, counted from 0" in failure(source)


def test_a_broker_that_refuses_the_credentials_is_named(broker: Broker) -> None:
    """The broker of the tests knows no SCRAM."""
    password = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "me",
        "sasl.password": "secret",
    }
    message = failure(strings(broker, broker.new_topic()).set_properties(password).build())
    assert f"Kafka at {broker.bootstrap} refuses the credentials" in message
    assert (
        "check the properties security.protocol, sasl.mechanism, sasl.username and sasl.password"
    ) in message
    assert "secret" not in message


def test_a_broker_that_does_not_answer_is_told_after_a_bounded_time() -> None:
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers("127.0.0.1:1")
        .set_topics("orders")
        .set_value_only_deserializer(SimpleStringSchema())
        .set_property("default.api.timeout.ms", "300")
        .build()
    )
    message = failure(source)
    assert "no Kafka broker at 127.0.0.1:1 has answered within 0.3 s" in message
    assert "check the address" in message


# -- what it gives ---------------------------------------------------------------------------------


def test_whole_records_have_everything(broker: Broker) -> None:
    topic = broker.new_topic(2)
    broker.produce(
        topic,
        [
            Record(b"a", b"key", 1, 1234, [("one", b"1"), ("one", None)]),
            Record(None, b"gone", 1, 1235),
            Record(b"", None, 1, 1236),
        ],
    )
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.bootstrap)
        .set_topics(topic)
        .set_whole_records()
        .set_bounded(LATEST)
        .build()
    )
    assert read_to_end(source) == [
        KafkaRecord(topic, 1, 0, 1234, (("one", b"1"), ("one", None)), b"key", b"a"),
        KafkaRecord(topic, 1, 1, 1235, (), b"gone", None),
        KafkaRecord(topic, 1, 2, 1236, (), None, b""),
    ]


class Even(DeserializationSchema):
    def deserialize(self, data: bytes) -> int | None:
        return int(data) if int(data) % 2 == 0 else None


def test_records_without_a_value_and_those_deserialized_to_none_are_skipped(broker: Broker) -> None:
    topic = broker.new_topic()
    broker.produce(topic, [Record(b"1"), Record(b"2"), Record(None), Record(b"4"), Record(b"7")])
    source = strings(broker, topic).set_value_only_deserializer(Even()).set_bounded(LATEST).build()
    with World(source) as world:
        until(world, lambda: world.finished)
        [batch] = world.subtasks[0].output.batches
        assert world.values == [2, 4]
        assert len(batch.timestamps or ()) == 2
    assert read_to_end(
        strings(broker, topic)
        .set_value_only_deserializer(ByteArraySchema())
        .set_bounded(LATEST)
        .build()
    ) == [b"1", b"2", b"4", b"7"]


@pytest.mark.parametrize("tombstone", [True, False])
def test_a_record_that_cannot_be_deserialized_is_named_by_its_place(
    broker: Broker, tombstone: bool
) -> None:
    topic = broker.new_topic(2)
    broker.produce(
        topic,
        [
            *[Record(None if tombstone else b"2", partition=1)] * 7,
            Record(b"two", partition=1),
            Record(b"2", partition=1),
        ],
    )
    message = failure(strings(broker, topic).set_value_only_deserializer(Even()).build())
    assert "invalid literal for int() with base 10: b'two'" in message
    assert f"from topic '{topic}', partition 1, offset 7" in message


class FirstEven(DeserializationSchema):
    def deserialize(self, data: bytes) -> str:
        return next(letter for letter in data.decode() if letter in "2468")


@pytest.mark.finding("bugs 2")
@pytest.mark.parametrize("tombstone", [True, False])
def test_a_stop_iteration_while_a_record_is_deserialized_does_not_end_the_batch(
    broker: Broker, tombstone: bool
) -> None:
    topic = broker.new_topic()
    broker.produce(
        topic, [Record(None if tombstone else b"2"), Record(b"12"), Record(b"3"), Record(b"4")]
    )
    message = failure(
        strings(broker, topic).set_value_only_deserializer(FirstEven()).set_bounded(LATEST).build()
    )
    assert "StopIteration" in message
    assert "return next(letter for letter" in message
    assert f"from topic '{topic}', partition 0, offset 2" in message


def test_records_of_aborted_transactions_are_left_out_if_the_property_says_so(
    broker: Broker,
) -> None:
    from confluent_kafka import Producer

    topic = broker.new_topic()
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": broker.unused_name("transaction"),
        }
    )
    producer.init_transactions()
    for number in range(4):
        producer.begin_transaction()
        producer.produce(topic, str(number).encode())
        producer.flush()
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()

    def source(level: str) -> KafkaSource:
        return (
            strings(broker, topic)
            .set_property("isolation.level", level)
            .set_bounded(LATEST)
            .build()
        )

    # Behind the last record of a transaction stands a marker: the end of the topic is an offset
    # that no record has
    assert read_to_end(source("read_committed")) == ["0", "2"]
    assert read_to_end(source("read_uncommitted")) == ["0", "1", "2", "3"]
    assert read_to_end(strings(broker, topic).set_bounded(LATEST).build()) == ["0", "1", "2", "3"]
