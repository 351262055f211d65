"""What a Kafka source is told: which partitions, where it begins and stops, and what it gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from flinkpy.connectors.kafka.broker_questions import BrokerQuestions
from flinkpy.connectors.kafka.kafka_offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from flinkpy.connectors.kafka.record_decoding import RecordDecoding
from flinkpy.core.errors import ProgramError


@dataclass(frozen=True)
class Subscription:
    """Which partitions are read: one of the three is given."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: frozenset[KafkaTopicPartition] = frozenset()

    def find(self, brokers: BrokerQuestions) -> set[KafkaTopicPartition]:
        """The partitions there are. Raises ProgramError for a topic or partition that does not
        exist."""
        if self.pattern is not None:
            return brokers.partitions_matching(re.compile(self.pattern).fullmatch)
        if self.topics:
            return brokers.partitions_of(self.topics)
        there = brokers.partitions_of(sorted({each.topic for each in self.partitions}))
        missing = sorted(self.partitions - there)
        if missing:
            count = sum(each.topic == missing[0].topic for each in there)
            raise ProgramError(
                f"Kafka has no partition {missing[0]}: the topic has {count}, counted from 0"
            )
        return set(self.partitions)

    def __str__(self) -> str:
        return (
            self.pattern
            if self.pattern is not None
            else ", ".join(self.topics or map(repr, sorted(self.partitions)))
        )


@dataclass(frozen=True)
class KafkaReading:
    """All that a Kafka source is told. With ``stop`` and not ``bounded`` the stream counts as
    unbounded, and ends nevertheless."""

    properties: Mapping[str, str]
    subscription: Subscription
    decoding: RecordDecoding
    start: KafkaOffsetsInitializer = field(default_factory=KafkaOffsetsInitializer.earliest)
    stop: KafkaOffsetsInitializer | None = None
    bounded: bool = False
    discovery_interval_s: float | None = 300.0
    client_id_prefix: str = "flinkpy"
    commits: bool = True  # offsets to the group, when a checkpoint is complete
    patience_s: float = 60.0  # how long the brokers may take to answer before the job fails
