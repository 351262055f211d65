"""What a source asks the brokers before it reads: which partitions there are, and which offsets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from flinkpy.connectors.kafka.client_properties import (
    for_librdkafka,
    is_refusal,
    making_a_client,
    refusal,
)
from flinkpy.connectors.kafka.kafka_offsets import LATEST, KafkaTopicPartition, Offsets
from flinkpy.core.clock import Clock
from flinkpy.core.errors import ProgramError
from flinkpy.core.secrets.engine_logs import engine_logger

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, TopicPartition

_LOG = engine_logger(__name__)
T = TypeVar("T")

ATTEMPT_S = 1.0  # how long one attempt waits for an answer
PAUSE_S = 0.1
WARN_AFTER_S = 5.0
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class BrokerQuestions:
    """Asks until there is an answer, at most for ``patience_s``. Raises ProgramError if there is
    none by then, and at once for what asking again cannot mend. It blocks, so it belongs to a
    thread that may; ``stopped`` ends the waiting."""

    def __init__(
        self,
        properties: Mapping[str, str],
        clock: Clock,
        patience_s: float,
        stopped: threading.Event,
    ) -> None:
        self._servers = properties["bootstrap.servers"]
        self._properties = properties
        self._clock = clock
        self._patience_s = patience_s
        self._stopped = stopped
        self.group = properties.get("group.id")
        self._told: KafkaError | None = None  # the last error that the client told
        self._consumer: Consumer

    @contextmanager
    def connected(self) -> Iterator[BrokerQuestions]:
        """The questions, while there is a client to ask them."""
        from confluent_kafka import Consumer

        config: dict[str, Any] = {
            "group.id": "flinkpy",
            "isolation.level": "read_uncommitted",
            "log_level": 0,
            **for_librdkafka(self._properties),
            "enable.auto.commit": False,
            "error_cb": self._tell,
        }
        with making_a_client():
            self._consumer = Consumer(config)
        try:
            yield self
        finally:
            self._consumer.close()

    def _tell(self, error: KafkaError) -> None:
        self._told = error

    # -- partitions --------------------------------------------------------------------------------

    def partitions_of(self, topics: Collection[str]) -> set[KafkaTopicPartition]:
        """All partitions of the topics. Raises ProgramError for a topic that does not exist."""
        return {
            KafkaTopicPartition(topic, each)
            for topic in topics
            for each in self._ask(partial(self._numbers, topic), f"topic {topic!r}")
        }

    def _numbers(self, topic: str, timeout: float) -> list[int]:
        from confluent_kafka import KafkaException

        metadata = self._consumer.list_topics(topic, timeout).topics[topic]
        if metadata.error is not None:  # a topic that is new may have no leader yet
            raise KafkaException(metadata.error)
        return list(metadata.partitions)

    def partitions_matching(self, matches: Callable[[str], object]) -> set[KafkaTopicPartition]:
        """All partitions of the topics whose names match. Kafka's own topics do not count."""
        topics = self._ask(lambda timeout: self._consumer.list_topics(timeout=timeout)).topics
        return {
            KafkaTopicPartition(topic, each)
            for topic, metadata in topics.items()
            if topic not in INTERNAL_TOPICS and matches(topic)
            for each in metadata.partitions
        }

    # -- offsets (kafka_offsets.OffsetLookup) ------------------------------------------------------

    def at_time(self, partitions: Collection[KafkaTopicPartition], time: int) -> Offsets:
        return self._offsets(
            partitions,
            time,
            lambda asked, timeout: self._consumer.offsets_for_times(asked, timeout),
        )

    def committed(self, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        if self.group is None:
            return {}
        return self._offsets(
            partitions, LATEST, lambda asked, timeout: self._consumer.committed(asked, timeout)
        )

    def _offsets(
        self,
        partitions: Collection[KafkaTopicPartition],
        offset: int,
        call: Callable[[list[TopicPartition], float], list[TopicPartition]],
    ) -> Offsets:
        """What the call says of each partition; those that it knows no offset of are left out."""
        from confluent_kafka import KafkaException, TopicPartition

        def asked(timeout: float) -> list[TopicPartition]:
            answers = call(
                [TopicPartition(each.topic, each.partition, offset) for each in partitions], timeout
            )
            failed = [answer.error for answer in answers if answer.error is not None]
            if failed:
                raise KafkaException(failed[0])
            return answers

        answers = self._ask(asked) if partitions else []
        return {
            KafkaTopicPartition(each.topic, each.partition): each.offset
            for each in answers
            if each.offset >= 0
        }

    # -- patience ----------------------------------------------------------------------------------

    def _ask(self, call: Callable[[float], T], place: str = "") -> T:
        from confluent_kafka import KafkaException

        began, warned = self._clock.monotonic(), False
        while True:
            try:
                return call(ATTEMPT_S)
            except KafkaException as error:
                failure: KafkaError = error.args[0]
            self._consumer.poll(0)  # lets the client tell what it knows
            for known in (failure, self._told):
                if known is not None and is_refusal(known):
                    raise refusal(known, self._servers, place) from None
            waited, reason = self._clock.monotonic() - began, (self._told or failure).str()
            if waited >= self._patience_s or self._stopped.wait(PAUSE_S):
                raise ProgramError(
                    f"no Kafka broker at {self._servers} has answered within "
                    f"{self._patience_s:g} s ({reason}): check the address, "
                    "and the property security.protocol"
                )
            if waited >= WARN_AFTER_S and not warned:
                warned = True
                _LOG.warning(
                    "no Kafka broker at %s has answered for %.0f s (%s); asking on",
                    self._servers,
                    waited,
                    reason,
                )
