"""A Kafka-protocol broker as a process of its own, for the tests of the Kafka connectors.

It is noida-db, one binary from the package index that starts in a fraction of a second; it knows
consumer groups, transactions and ``read_committed``. It is not Apache Kafka, and what it shows is
shown for this broker. It loses its last records if it is killed, so tests kill workers and not the
broker."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest

from tests.ports import free_port
from tests.waiting import eventually

NEEDS_BROKER = "needs a Kafka-protocol broker: pip install 'flinkpy[dev]' brings noida-db"
NEEDS_CLIENT = "needs the extra: pip install 'flinkpy[kafka]'"
ANSWER_S = 60.0  # a bound on hanging, not a measure


@dataclass
class Record:
    """What tests write and read, comparable."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    timestamp: int = 0  # 0 when written: the time of writing
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)
    offset: int = -1  # known when it has been read


class Broker:
    """A running broker, and what tests do with it. The calls return when the broker has
    answered."""

    def __init__(self, port: int, pid: int) -> None:
        from confluent_kafka.admin import AdminClient

        self._pid = pid
        self.bootstrap = f"127.0.0.1:{port}"
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        self._numbers = itertools.count()

    def new_topic(self, partitions: int = 1, name: str = "topic") -> str:
        """Creates a topic that no other test has."""
        unique = self.unused_name(name)
        self.create_topic(unique, partitions)
        return unique

    def unused_name(self, name: str) -> str:
        """A name of a topic, group or transaction that no other test has."""
        return f"{name}-{os.getpid()}-{next(self._numbers)}"

    def create_topic(self, name: str, partitions: int = 1) -> None:
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

        # Tests write records of 1970, which the broker would soon throw away
        topic = NewTopic(
            name, num_partitions=partitions, replication_factor=1, config={"retention.ms": "-1"}
        )
        self._admin.create_topics([topic])[name].result(ANSWER_S)

    def add_partitions(self, topic: str, total: int) -> None:
        from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

        self._admin.create_partitions([NewPartitions(topic, total)])[topic].result(ANSWER_S)

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Meanwhile the broker answers nobody."""
        os.kill(self._pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._pid, signal.SIGCONT)

    def produce(self, topic: str, records: Iterable[Record | bytes], partition: int = 0) -> None:
        """Writes records, in order; plain bytes go to ``partition``."""
        from confluent_kafka import Producer

        failed: list[Any] = []
        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "linger.ms": 1, "queue.buffering.max.messages": 0}
        )
        for each in records:
            record = each if isinstance(each, Record) else Record(each, partition=partition)
            producer.produce(
                topic,
                record.value,
                record.key,
                record.partition,
                timestamp=record.timestamp,
                headers=list(record.headers),
                on_delivery=lambda error, message: (
                    failed.append(error) if error is not None else None
                ),
            )
            producer.poll(0)
        assert producer.flush(ANSWER_S) == 0, "the broker has not taken all records"
        assert not failed, failed

    def read(self, topic: str, *, committed: bool = True) -> list[Record]:
        """All records of the topic, by partition and offset; only those of committed transactions
        unless ``committed`` is False."""
        partitions = self._admin.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions
        return [
            record
            for partition in sorted(partitions)
            for record in self._read_partition(topic, partition, committed)
        ]

    def values(self, topic: str) -> list[bytes | None]:
        """The values of all committed records of the topic."""
        return [record.value for record in self.read(topic)]

    def _read_partition(self, topic: str, partition: int, committed: bool) -> Iterator[Record]:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "fetch.wait.max.ms": 10,
            }
        )
        try:
            # connects; otherwise the first fetch waits half a second for that
            consumer.list_topics(topic, ANSWER_S)
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
            while True:
                message = consumer.poll(ANSWER_S)
                assert message is not None, (
                    f"the broker does not say where {topic}[{partition}] ends"
                )
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    return
                yield Record(
                    message.value(),
                    message.key(),
                    partition,
                    message.timestamp()[1],
                    list(message.headers() or []),  # type: ignore[arg-type]
                    message.offset() or 0,
                )
        finally:
            consumer.close()

    def committed_offsets(self, group: str, topic: str) -> dict[int, int]:
        """The group's committed offset of each partition that has one."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": group, "enable.auto.commit": False}
        )
        try:
            partitions = [
                TopicPartition(topic, each)
                for each in self._admin.list_topics(topic, timeout=ANSWER_S)
                .topics[topic]
                .partitions
            ]
            return {
                each.partition: each.offset
                for each in consumer.committed(partitions, ANSWER_S)
                if each.offset >= 0
            }
        finally:
            consumer.close()

    def commit_offsets(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        """Sets the group's committed offsets."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": group, "enable.auto.commit": False}
        )
        try:
            consumer.commit(
                offsets=[TopicPartition(topic, *each) for each in offsets.items()],
                asynchronous=False,
            )
        finally:
            consumer.close()


@contextmanager
def running_broker(folder: Path) -> Iterator[Broker]:
    """Starts a broker that keeps its data in ``folder``, and ends it. Skips the test where there is
    none."""
    pytest.importorskip("confluent_kafka", reason=NEEDS_CLIENT)
    binary = Path(pytest.importorskip("noida_db", reason=NEEDS_BROKER).__file__).with_name(
        "noida-db"
    )
    binary.chmod(0o755)  # the wheel does not say that it can be run
    log = (folder / "broker.log").open("wb")
    port = free_port()
    # The binary itself: the script of the same name would leave it behind when it is killed.
    command = [
        str(binary),
        "start",
        "--data-dir",
        str(folder / "data"),
        "--only",
        "kafka",
        "--kafka-port",
        str(port),
    ]
    with log, _process(command, log) as process:
        eventually(lambda: process.poll() is not None or _listens(port))
        if process.poll() is not None:
            pytest.skip(
                "noida-db does not run on this machine: "
                f"{(folder / 'broker.log').read_text()[:200]}"
            )
        yield Broker(port, process.pid)


@contextmanager
def _process(command: list[str], log: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Runs the command, and kills it in the end, because it takes its time after SIGTERM."""
    process = subprocess.Popen(
        command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0
