"""The Kafka sink without a cluster, with a real broker: what is written, and what a reader of
committed records sees when subtasks crash."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from flinkpy.common import SimpleStringSchema
from flinkpy.connectors.kafka.writing.kafka_sink import KafkaCommitter
from flinkpy.connectors.kafka.writing.kafka_writer import LOOK_S
from flinkpy.connectors.kafka.writing.messages import ANY_PARTITION, NOW
from flinkpy.connectors.kafka.writing.producers import TransactionalProducer, settings_of
from flinkpy.connectors.kafka.writing.transaction_client import (
    TakenOverError,
    TransactionClient,
    TransactionLostError,
)
from flinkpy.connectors.kafka.writing.transactional_ids import TransactionalIds, begin_turn
from flinkpy.connectors.kafka.writing.transactions import KafkaCommittable, Transactions
from flinkpy.core.clock import SystemClock
from flinkpy.core.elements import RowBatch
from flinkpy.core.errors import FlinkpyError, ProgramError, RecipientUnreachableError
from flinkpy.datastream.connectors.base import DeliveryGuarantee
from flinkpy.datastream.connectors.kafka import (
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSinkBuilder,
)
from flinkpy.operators.sinks.sink_operator import WritingOperator
from tests.connectors.sink_world import SinkWorld
from tests.kafka.broker import Broker
from tests.waiting import eventually


def into(
    broker: Broker, topic: str, guarantee: DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE
) -> KafkaSinkBuilder:
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    builder = (
        KafkaSink.builder()
        .set_bootstrap_servers(broker.bootstrap)
        .set_record_serializer(schema)
        .set_delivery_guarantee(guarantee)
    )
    return builder.set_transactional_id_prefix(f"tx-{topic}")


def seen(broker: Broker, topic: str) -> list[int]:
    """The numbers that a reader of committed records sees."""
    return sorted(int(value or b"") for value in broker.values(topic))


def flush(operator: WritingOperator) -> None:
    """Returns when all is with the broker."""
    writer: Any = operator.writer
    writer.flush()
    while not writer.flushed:
        writer._look()


@contextmanager
def world(
    sink: KafkaSink, parallelism: int = 1, configuration: dict[str, Any] | None = None
) -> Iterator[SinkWorld]:
    with closing(SinkWorld(sink, parallelism, configuration)) as world:
        yield world


@pytest.mark.parametrize("parallelism", [1, 2])
def test_records_are_seen_when_their_checkpoint_is_complete(
    broker: Broker, parallelism: int
) -> None:
    topic = broker.new_topic(2)
    with world(into(broker, topic).build(), parallelism) as job:
        for upto in range(7, 77, 7):
            job.feed(7)
            checkpoint = job.barrier()
            assert seen(broker, topic) == list(range(upto - 7))
            job.complete(checkpoint)
            assert seen(broker, topic) == list(range(upto))
        job.feed(5)
        job.end_input()
        job.last_checkpoint()
    assert seen(broker, topic) == list(range(75))


@pytest.mark.wide(but=("(2, 2)-True",))
@pytest.mark.parametrize(
    ("parallelism", "closed"),
    [((2, 2), True), ((2, 2), False), ((1, 3), False), ((3, 1), False)],
    ids=str,
)
@pytest.mark.parametrize(
    "moment",
    [
        "between checkpoints",
        "in a checkpoint",
        "complete, nobody told",
        "complete, one told",
        "one aborted before",
    ],
)
def test_a_crash_at_any_moment_shows_each_record_once(
    broker: Broker, moment: str, parallelism: tuple[int, int], closed: bool
) -> None:
    topic = broker.new_topic(2)
    before, after = parallelism
    with world(into(broker, topic).build(), before) as job:
        job.feed(6)
        job.complete(job.barrier())
        job.feed(6)
        if moment == "one aborted before":
            job.abort(job.barrier())
            job.feed(6)
        if moment == "in a checkpoint":
            job.barrier(subtasks=1)
        elif moment != "between checkpoints":
            job.complete(
                job.barrier(), told=lambda subtask: moment == "complete, one told" and subtask == 0
            )
            job.feed(6)
        job.crash(after, closed=closed)
        assert seen(broker, topic) == list(range(job.position)), (
            "what was left open hides what comes behind it"
        )
        job.feed(40 - job.position)
        job.complete(job.barrier())
        job.end_input()
        job.last_checkpoint()
        assert seen(broker, topic) == list(range(40))


@pytest.mark.wide
def test_crashes_in_a_row_leave_nothing_open(broker: Broker) -> None:
    topic = broker.new_topic()
    with world(into(broker, topic).build(), 2) as job:
        for parallelism in (3, 1, 2, 2, 1):
            job.feed(4)
            job.complete(job.barrier(), told=lambda subtask: False)
            job.feed(5)
            job.barrier()
            job.feed(5)
            job.crash(parallelism, closed=False)
        assert seen(broker, topic) == list(range(20))


def test_a_run_without_a_checkpoint_is_not_stuck_behind_one_that_had_more_subtasks(
    broker: Broker,
) -> None:
    topic = broker.new_topic()
    sink = into(broker, topic).build()
    with world(sink, 3) as lost:
        lost.feed(9)
        for operator in lost.operators:
            flush(operator)
        with world(sink, 1) as job:
            job.feed(4)
            job.complete(job.barrier())
            assert seen(broker, topic) == [0, 1, 2, 3]


def test_an_attempt_that_was_given_up_begins_no_transaction_behind_the_aborts_of_the_next_one(
    broker: Broker,
) -> None:
    topic = broker.new_topic()
    settings = settings_of({"bootstrap.servers": broker.bootstrap}, transactional=True)
    with closing(TransactionClient(settings, SystemClock())) as client:

        def begin() -> Transactions:
            turn = begin_turn(topic, 0, 1, [], is_first=False, abort=client.abort)
            return Transactions(
                settings, TransactionalIds(topic, 0, turn), SystemClock(), lambda: None
            )

        given_up = begin()
        first = given_up.begin()  # and the second one is being made ready
        first.send([(topic, b"1", None, ANY_PARTITION, None, None, NOW, None)])
        following, taken_over = begin(), ""
        # the one that was made ready before, or was under way, and one behind all aborts
        for _ in range(2):
            try:
                late = given_up.begin()
                late.send([(topic, b"2", None, ANY_PARTITION, None, None, NOW, None)])
                while not late.hurry():
                    late.poll(0.01)
            except TakenOverError as error:
                taken_over = str(error)
            except FlinkpyError:
                pass
        assert "taken over: by its next attempt" in taken_over
        producer = following.begin()
        producer.send([(topic, b"3", None, ANY_PARTITION, None, None, NOW, None)])
        producer.commit(30)
        producer.release()
        given_up.close()
        following.close()
    assert seen(broker, topic) == [3], "what was left open hides what comes behind it"


@pytest.mark.wide
def test_no_message_comes_behind_the_abort_of_its_transaction(broker: Broker) -> None:
    """It would stay open for ever, and nobody would read on behind it."""
    topic = broker.new_topic(1)
    settings = settings_of(
        {"bootstrap.servers": broker.bootstrap, "linger.ms": "0"}, transactional=True
    )
    for number in range(20):
        producer = TransactionalProducer(settings, broker.unused_name("aborted"), SystemClock())
        producer.initialize(30)
        producer.begin()
        message = (topic, b"aborted", None, 0, None, None, 0, None)
        producer.send([message])
        eventually(producer.hurry)  # the broker knows that the transaction has this partition
        with broker.silent():  # the next message is under way, and so is the abort
            producer.send([message])
            aborting = threading.Thread(target=producer.abort, args=(30,))
            aborting.start()
            aborting.join(0.02)
        aborting.join()
        producer.release()
        broker.produce(topic, [str(number).encode()])
    assert seen(broker, topic) == list(range(20))


def test_what_librdkafka_tells_of_waiting_transactions_does_not_pile_up(broker: Broker) -> None:
    """It tells its statistics twenty times a second, also of a transaction that is prepared, and of
    the next one, which nobody writes yet."""
    topic = broker.new_topic()
    with world(into(broker, topic).build()) as job:
        job.feed(3)
        flush(job.operators[0])
        writer: Any = job.operators[0].writer
        [committable] = writer.prepare_commit()
        eventually(lambda: bool(job.operators[0].available))
        waiting = [committable.live._producer, writer._transactions._next._producer]
        for _ in range(2):
            eventually(lambda: all(producer.queued > 5 for producer in waiting))
            told = [producer.queued for producer in waiting]
            job.timers.clock.advance(LOOK_S)  # type: ignore[attr-defined]  # it is the test's own
            job.timers.fire()
            assert all(producer.queued < before for producer, before in zip(waiting, told))


def test_in_a_job_without_checkpoints_all_is_seen_at_the_end(broker: Broker) -> None:
    topic = broker.new_topic()
    with world(into(broker, topic).build(), 2, configuration={}) as job:
        job.feed(9)
        for operator in job.operators:
            flush(operator)
        assert seen(broker, topic) == []
        job.end_input()
    assert seen(broker, topic) == list(range(9))


def test_at_least_once_loses_nothing_and_may_show_records_twice(broker: Broker) -> None:
    topic = broker.new_topic()
    with world(into(broker, topic, DeliveryGuarantee.AT_LEAST_ONCE).build(), 2) as job:
        job.feed(6)
        job.complete(job.barrier())
        assert seen(broker, topic) == list(range(6))
        job.feed(6)
        job.barrier()
        assert seen(broker, topic) == list(range(12)), "a checkpoint waits until all is delivered"
        job.crash()
        job.feed(10)
        job.end_input()
    assert seen(broker, topic) == sorted([*range(6), *range(6, 12), *range(6, 16)])


# -- another process -------------------------------------------------------------------------------

PREPARES = """
import pickle, sys
from tests.connectors.sink_world import SinkWorld
world = SinkWorld(pickle.load(sys.stdin.buffer))
world.feed(5)
operator = world.operators[0]
writer = operator.writer
writer.flush()
while not writer.flushed:
    writer._look()
[committable] = operator.writer.prepare_commit()
sys.stdout.buffer.write(pickle.dumps(committable) + b"END")
sys.stdout.buffer.flush()
sys.stdin.buffer.read()
"""


def prepared_by_a_process_that_is_killed(sink: KafkaSink) -> KafkaCommittable:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", PREPARES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        process.stdin.write(pickle.dumps(sink))
        process.stdin.flush()
        told = b""
        while not told.endswith(b"END"):
            part = os.read(process.stdout.fileno(), 1 << 16)
            assert part, "the process has failed"
            told += part
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    committable: KafkaCommittable = pickle.loads(told)
    return committable


def client_of(broker: Broker) -> TransactionClient:
    return TransactionClient(
        settings_of({"bootstrap.servers": broker.bootstrap}, transactional=True), SystemClock()
    )


def test_a_process_commits_what_a_killed_one_has_prepared_and_twice_is_as_once(
    broker: Broker,
) -> None:
    topic = broker.new_topic()
    committable = prepared_by_a_process_that_is_killed(into(broker, topic).build())
    assert committable.live is None
    assert seen(broker, topic) == []
    with closing(KafkaCommitter(client_of(broker))) as committer:
        committer.commit([committable])
        assert seen(broker, topic) == [0, 1, 2, 3, 4]
        committer.commit([committable])
    with closing(KafkaCommitter(client_of(broker))) as another:
        another.commit([committable])
    assert seen(broker, topic) == [0, 1, 2, 3, 4]


def test_a_prepared_transaction_that_somebody_aborted_is_told_as_lost_and_never_passed_over(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    topic = broker.new_topic()
    committable = prepared_by_a_process_that_is_killed(into(broker, topic).build())
    client = client_of(broker)
    client.abort(committable.transactional_id)
    with (
        closing(KafkaCommitter(client)) as committer,
        pytest.raises(TransactionLostError, match="records of its checkpoint are lost"),
    ):
        committer.commit([committable])
    with closing(KafkaCommitter(client, ignores_lost=True)) as committer:
        committer.commit([committable])
    assert "are lost" in caplog.text
    assert seen(broker, topic) == []


def test_two_jobs_with_one_prefix_are_told_so(broker: Broker) -> None:
    topic = broker.new_topic()
    sink = into(broker, topic).build()
    with world(sink) as first:
        first.feed(3)
        flush(first.operators[0])
        with (
            world(sink),
            pytest.raises(
                FlinkpyError, match="another job writes with the same transactional id prefix"
            ),
        ):
            write_and_flush(first)
    assert seen(broker, topic) == []


def write_and_flush(job: SinkWorld) -> None:
    job.feed(3)
    for operator in job.operators:
        flush(operator)
    job.end_input()


# -- what goes wrong -------------------------------------------------------------------------------


def plain(broker: Broker, topic: str) -> KafkaSinkBuilder:
    return into(broker, topic, DeliveryGuarantee.AT_LEAST_ONCE)


@pytest.mark.parametrize("guarantee", DeliveryGuarantee, ids=lambda each: each.name)
def test_a_topic_that_does_not_exist_is_named(broker: Broker, guarantee: DeliveryGuarantee) -> None:
    sink = (
        into(broker, "no such topic!", guarantee)
        .set_property("topic.metadata.propagation.max.ms", "1")
        .build()
    )
    with (
        world(sink) as job,
        pytest.raises(
            ProgramError, match=r"has no topic 'no such topic!'.*create it, or name another one"
        ),
    ):
        write_and_flush(job)


@pytest.mark.parametrize("guarantee", DeliveryGuarantee, ids=lambda each: each.name)
def test_a_message_that_is_too_large_is_told_with_the_topic(
    broker: Broker, guarantee: DeliveryGuarantee
) -> None:
    topic = broker.new_topic()
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_value_serialization_schema(Large())
        .build()
    )
    sink = (
        into(broker, topic, guarantee)
        .set_record_serializer(schema)
        .set_property("message.max.bytes", "5000")
        .build()
    )
    with (
        world(sink) as job,
        pytest.raises(
            ProgramError,
            match=(
                f"message.* for topic '{topic}' is too large: raise the producer's "
                "message.max.bytes"
            ),
        ),
    ):
        write_and_flush(job)


class Large(SimpleStringSchema):
    def serialize(self, value: Any) -> bytes:
        return bytes(10_000)


def test_brokers_that_are_not_there_are_named_when_the_delivery_times_out(broker: Broker) -> None:
    sink = (
        plain(broker, "t")
        .set_bootstrap_servers("127.0.0.1:1")
        .set_property("delivery.timeout.ms", "300")
        .build()
    )
    says = r"Kafka at 127\.0\.0\.1:1 took no messages of topic 't' within delivery\.timeout\.ms=300"
    with world(sink) as job, pytest.raises(RecipientUnreachableError, match=says):
        write_and_flush(job)


def test_a_transaction_timeout_above_the_brokers_is_refused_with_its_reason(broker: Broker) -> None:
    sink = into(broker, "t").set_property("transaction.timeout.ms", "100000000").build()
    with pytest.raises(
        ProgramError,
        match=(
            r"does not allow transaction\.timeout\.ms=100000000: it is larger than the broker's "
            r"transaction\.max"
        ),
    ):
        SinkWorld(sink)


def with_password(builder: KafkaSinkBuilder, mechanism: str) -> KafkaSinkBuilder:
    for name, value in {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="me" password="secret";'
        ),
    }.items():
        builder.set_property(name, value)
    return builder


def test_transactions_are_committed_over_connections_with_a_password(broker: Broker) -> None:
    """The broker of the tests takes any password, as PLAIN."""
    topic = broker.new_topic()
    committable = prepared_by_a_process_that_is_killed(
        with_password(into(broker, topic), "PLAIN").build()
    )
    properties = {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
    }
    with closing(
        KafkaCommitter(
            TransactionClient(settings_of(properties, transactional=True), SystemClock())
        )
    ) as committer:
        committer.commit([committable])
    assert seen(broker, topic) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "guarantee",
    [DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.EXACTLY_ONCE],
    ids=lambda each: each.name,
)
def test_a_broker_that_refuses_the_credentials_is_named_at_once(
    broker: Broker, guarantee: DeliveryGuarantee
) -> None:
    """The broker of the tests knows no SCRAM."""
    sink = with_password(into(broker, "t", guarantee), "SCRAM-SHA-256").build()
    with (
        pytest.raises(
            ProgramError, match=r"refuses the credentials .* sasl\.username and sasl\.password"
        ),
        world(sink) as job,
    ):
        write_and_flush(job)


def test_a_property_that_nobody_knows_is_told_in_one_sentence(broker: Broker) -> None:
    with pytest.raises(
        ProgramError,
        match=(
            r"test_writing\.py:\d+: Kafka's client refuses the sink's properties: "
            r".*no\.such\.property"
        ),
    ):
        plain(broker, "t").set_property("no.such.property", "1").build()


@pytest.mark.wide
def test_a_silent_broker_stops_the_writer_and_nothing_is_lost(broker: Broker) -> None:
    """librdkafka's queue is full: the task is told not to give more, and a batch that comes all the
    same waits."""
    topic = broker.new_topic()
    with world(
        plain(broker, topic).set_property("queue.buffering.max.messages", "100").build()
    ) as job:
        [operator] = job.operators
        told: list[bool] = []
        operator.writer.set_listener(lambda: told.append(operator.available))
        job.feed(3)
        flush(operator)
        with broker.silent():
            operator.process_batch(RowBatch(list(range(3, 63))))
            assert not operator.available
        operator.process_batch(RowBatch(list(range(63, 363))))
        flush(operator)
        assert told
        assert all(told)
        job.end_input()
    assert seen(broker, topic) == list(range(363))


def test_the_task_waits_without_blocking_until_the_next_transaction_can_begin(
    broker: Broker,
) -> None:
    topic = broker.new_topic()
    with world(into(broker, topic).build()) as job:
        [operator] = job.operators
        told: list[bool] = []
        eventually(lambda: operator.available)
        operator.writer.set_listener(lambda: told.append(operator.available))
        with broker.silent():
            job.feed(3)
            open_before = operator.available
            operator.writer.prepare_commit()
            assert (open_before, operator.available) == (True, False)
        eventually(lambda: told == [True])
        job.feed(3)
        flush(operator)
    assert seen(broker, topic) == []


# -- what is written -------------------------------------------------------------------------------


def test_keys_land_in_the_partitions_where_javas_client_puts_them(broker: Broker) -> None:
    """murmur2, as of Kafka's own tests: of "21" it is -973932308, of "foobar" -790332482, of
    "a-little-bit-long-string" -985981536."""
    hashes = {"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536}
    topic = broker.new_topic(7)
    keys = list(hashes)
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_value_serialization_schema(SimpleStringSchema())
        .set_key_serialization_schema(Picked(keys))
        .set_headers(lambda number: [("a", b"1"), ("a", None)])
        .set_timestamp(lambda number: 1000 + number)
        .build()
    )
    with world(plain(broker, topic).set_record_serializer(schema).build()) as job:
        job.feed(6)
        job.end_input()
    found = broker.read(topic)
    assert {(each.key, each.partition) for each in found} == {
        (key.encode(), (number & 0x7FFFFFFF) % 7) for key, number in hashes.items()
    }
    assert sorted((each.value, each.timestamp) for each in found) == [
        (str(number).encode(), 1000 + number) for number in range(6)
    ]
    assert all(each.headers == [("a", b"1"), ("a", None)] for each in found)


class Picked(SimpleStringSchema):
    def __init__(self, texts: list[str]) -> None:
        super().__init__()
        self._texts = texts

    def serialize(self, value: Any) -> bytes:
        text: str = self._texts[value % len(self._texts)]
        return text.encode()


def test_a_function_chooses_topics_and_partitions(broker: Broker) -> None:
    even, odd = broker.new_topic(3), broker.new_topic(3)
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic_selector(lambda number: odd if number % 2 else even)
        .set_value_serialization_schema(SimpleStringSchema())
        .set_partitioner(lambda number, key, value, topic, partitions: partitions[number % 3])
        .build()
    )
    with world(into(broker, "unused").set_record_serializer(schema).build()) as job:
        job.feed(12)
        job.end_input()
        job.last_checkpoint()
    for topic, numbers in ((even, range(0, 12, 2)), (odd, range(1, 12, 2))):
        assert sorted((each.partition, each.value) for each in broker.read(topic)) == sorted(
            (number % 3, str(number).encode()) for number in numbers
        )
