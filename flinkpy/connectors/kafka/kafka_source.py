"""The source that reads topics of Kafka, and its builder, under PyFlink's names."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from flinkpy.common.serialization import DeserializationSchema
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.connectors.kafka.broker_questions import BrokerQuestions
from flinkpy.connectors.kafka.client_properties import check_consumer_properties, checked_property
from flinkpy.connectors.kafka.kafka_offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from flinkpy.connectors.kafka.message_intake import MessageIntake
from flinkpy.connectors.kafka.partition_enumerator import Found, KafkaSplit, PartitionEnumerator
from flinkpy.connectors.kafka.partition_reader import KafkaReader
from flinkpy.connectors.kafka.record_decoding import (
    ColumnNames,
    Columns,
    RecordDecoding,
    Values,
    WholeRecords,
)
from flinkpy.connectors.kafka.subscription import KafkaReading, Subscription
from flinkpy.connectors.source_api.source import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.clock import SystemClock
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.program_line import refuse
from flinkpy.formats.port import ColumnarDecoder

if TYPE_CHECKING:
    import pyarrow as pa

DISCOVERY_INTERVAL_MS, PATIENCE_MS = 300_000, 60_000


class KafkaSource(Source[KafkaSplit]):
    """Reads the partitions of topics side by side, each by one subtask. Made by
    ``KafkaSource.builder()``.

    >>> from flinkpy.common.serialization import SimpleStringSchema
    >>> source = (
    ...     KafkaSource.builder()
    ...     .set_bootstrap_servers("localhost:9092")
    ...     .set_topics("orders")
    ...     .set_group_id("shop")
    ...     .set_value_only_deserializer(SimpleStringSchema())
    ...     .build()
    ... )
    >>> source
    KafkaSource(orders)
    """

    has_timestamps = True  # those of Kafka's records
    gives_valid_times = True

    def __init__(self, reading: KafkaReading) -> None:
        self._reading = reading

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """A builder of such a source."""
        return KafkaSourceBuilder()

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self._reading.bounded else Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def is_columnar(self) -> bool:
        return self.schema is not None

    @property
    def schema(self) -> pa.Schema | None:
        """The schema of every batch, if they are columns."""
        return self._reading.decoding.schema

    @property
    def produced_type(self) -> TypeInformation | None:
        return self._reading.decoding.produced_type

    def create_enumerator(
        self, context: SplitEnumeratorContext[KafkaSplit], checkpoint: Any = None
    ) -> SplitEnumerator[KafkaSplit]:
        stopped = threading.Event()
        interval_s = None if self._reading.stop is not None else self._reading.discovery_interval_s
        return PartitionEnumerator(
            context,
            partial(self._look, stopped),
            interval_s,
            stopped.set,
            self._reading.stop,
            checkpoint,
        )

    def _look(
        self,
        stopped: threading.Event,
        seen: frozenset[KafkaTopicPartition] | None,
        ends_are_others: bool,
    ) -> Found:
        """Splits of the partitions that are new. Those of the first look begin where the source
        says, later ones at their first record."""
        reading = self._reading
        properties = {**reading.properties, "client.id": f"{reading.client_id_prefix}-enumerator"}
        with BrokerQuestions(
            properties, SystemClock(), reading.patience_s, stopped
        ).connected() as brokers:
            new = reading.subscription.find(brokers) - (seen or frozenset())
            start = (
                reading.start if seen is None else KafkaOffsetsInitializer.earliest()
            ).beginnings(new, brokers)
            ending = new | seen if seen is not None and ends_are_others else new
            stop = reading.stop.resolve(ending, brokers) if reading.stop is not None else {}
        splits = [
            KafkaSplit.of(partition, start[partition], stop.get(partition))
            for partition in sorted(new)
        ]
        return Found(splits, {partition: stop.get(partition) for partition in ending - new})

    def create_reader(self, context: ReaderContext) -> SourceReader[KafkaSplit]:
        reading = self._reading
        properties = {
            **reading.properties,
            "client.id": f"{reading.client_id_prefix}-{context.subtask_index}",
            "auto.offset.reset": reading.start.reset_property,
        }
        return KafkaReader(
            context,
            partial(MessageIntake, properties, context.clock, context.wake_up),
            reading.decoding,
            commits=reading.commits and "group.id" in reading.properties,
        )

    def told_apart_by(self) -> Any:
        return str(self._reading.subscription), self._reading.properties.get("group.id")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._reading.subscription})"


class KafkaSourceBuilder:
    """Builds a Kafka source. Bootstrap servers, what to read (topics, a pattern or partitions) and
    a deserializer must be set. Each method raises ProgramError for an argument that cannot be
    right, ``build`` for what is missing or does not go together.

    >>> KafkaSourceBuilder().set_topics("orders", "returns").set_property(
    ...     "isolation.level", "read_committed"
    ... )
    KafkaSourceBuilder(orders, returns)
    """

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._subscription: Subscription | None = None
        self._decoding: RecordDecoding | None = None
        self._start = KafkaOffsetsInitializer.earliest()
        self._stop: KafkaOffsetsInitializer | None = None
        self._bounded = False

    # -- what is read ------------------------------------------------------------------------------

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        """Sets the addresses of some brokers: ``host:port``, separated by commas."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """Sets the consumer group: offsets are committed to it when a checkpoint is complete. The
        job does not depend on them."""
        return self.set_property("group.id", group_id)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        """Reads all partitions of these topics, which must exist when the job starts."""
        if not topics or not all(isinstance(topic, str) and topic for topic in topics):
            raise refuse(
                f"set_topics() takes names of topics, one argument each, this is {topics!r:.80}"
            )
        return self._subscribe(Subscription(topics=tuple(dict.fromkeys(topics))))

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """Reads all topics whose whole names match a regular expression (of Python), also those
        that are created later."""
        try:
            re.compile(topic_pattern)
        except (TypeError, re.error) as error:
            raise refuse(
                "set_topic_pattern() takes a regular expression, this is "
                f"{topic_pattern!r:.80} ({error})"
            ) from None
        return self._subscribe(Subscription(pattern=topic_pattern))

    def set_partitions(self, partitions: Iterable[KafkaTopicPartition]) -> KafkaSourceBuilder:
        """Reads these partitions."""
        given = frozenset(partitions)
        if not given or not all(isinstance(each, KafkaTopicPartition) for each in given):
            raise refuse(
                "set_partitions() takes a set of KafkaTopicPartition, at least one, this is "
                f"{set(given)!r:.80}"
            )
        return self._subscribe(Subscription(partitions=given))

    def _subscribe(self, subscription: Subscription) -> KafkaSourceBuilder:
        if self._subscription is not None:
            raise refuse(
                f"what to read was set before, to {self._subscription}: call one of "
                "set_topics(), set_topic_pattern() and set_partitions()"
            )
        self._subscription = subscription
        return self

    # -- where it begins and ends ------------------------------------------------------------------

    def set_starting_offsets(
        self, starting_offsets_initializer: KafkaOffsetsInitializer
    ) -> KafkaSourceBuilder:
        """Sets where reading begins if the job does not start from a checkpoint; by default with
        the earliest record."""
        self._start = _checked_initializer(starting_offsets_initializer, "set_starting_offsets()")
        return self

    def set_unbounded(
        self, stopping_offsets_initializer: KafkaOffsetsInitializer
    ) -> KafkaSourceBuilder:
        """Sets where reading ends: before these offsets. The stream counts as unbounded, as a job
        in STREAMING mode wants it."""
        self._stop = _checked_initializer(stopping_offsets_initializer, "set_unbounded()")
        self._bounded = False
        return self

    def set_bounded(
        self, stopping_offsets_initializer: KafkaOffsetsInitializer
    ) -> KafkaSourceBuilder:
        """Makes the stream bounded: it ends before these offsets."""
        self._stop = _checked_initializer(stopping_offsets_initializer, "set_bounded()")
        self._bounded = True
        return self

    # -- what it gives -----------------------------------------------------------------------------

    def set_value_only_deserializer(
        self, deserialization_schema: DeserializationSchema
    ) -> KafkaSourceBuilder:
        """Gives the value of each record, through the schema. Records without a value are skipped,
        and those for which it returns None."""
        given: Any = deserialization_schema
        if not isinstance(given, DeserializationSchema):
            columns = (
                "; a columnar decoder goes to set_columns()"
                if isinstance(given, ColumnarDecoder)
                else ""
            )
            raise refuse(
                "set_value_only_deserializer() takes a DeserializationSchema, this is "
                f"{given!r:.80}{columns}"
            )
        self._decoding = Values(deserialization_schema)
        return self

    def set_whole_records(self) -> KafkaSourceBuilder:
        """Gives each record as a :class:`~flinkpy.connectors.kafka.record_decoding.KafkaRecord`:
        topic, partition, offset, timestamp, headers, key and value. (PyFlink cannot.)"""
        self._decoding = WholeRecords()
        return self

    def set_columns(
        self,
        decoder: ColumnarDecoder,
        *,
        topic: str | None = None,
        partition: str | None = None,
        offset: str | None = None,
        timestamp: str | None = None,
        key: str | None = None,
    ) -> KafkaSourceBuilder:
        """Gives columns: the values through a columnar format of ``flinkpy.formats``, many at a
        time. Each further argument is the name of a column with the record's topic, partition,
        offset, timestamp or key. (PyFlink cannot.)"""
        if not hasattr(decoder, "schema") or not callable(getattr(decoder, "decode", None)):
            raise refuse(
                "set_columns() takes a ColumnarDecoder of flinkpy.datastream.formats, such "
                f"as JsonColumnarDecoder, this is {decoder!r:.80}"
            )
        try:
            self._decoding = Columns(decoder, ColumnNames(topic, partition, offset, timestamp, key))
        except ProgramError as error:
            raise refuse(str(error)) from None
        return self

    def set_decoding(self, decoding: RecordDecoding) -> KafkaSourceBuilder:
        """Gives what a decoding of the engine's own makes of records, as those of tables."""
        self._decoding = decoding
        return self

    # -- properties --------------------------------------------------------------------------------

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        """Sets what the names of the clients begin with, in the brokers' logs and metrics; by
        default it is the group's name."""
        return self.set_property("client.id.prefix", prefix)

    def set_property(self, key: str, value: str) -> KafkaSourceBuilder:
        """Sets a property of Kafka's consumer, or of Flink's source
        (``partition.discovery.interval.ms``, ``client.id.prefix``,
        ``commit.offsets.on.checkpoint``)."""
        try:
            self._properties[key] = checked_property(key, value)
        except ProgramError as error:
            raise refuse(str(error)) from None
        return self

    def set_properties(self, props: Mapping[str, str]) -> KafkaSourceBuilder:
        """Sets many properties."""
        for key, value in props.items():
            self.set_property(key, value)
        return self

    def build(self) -> KafkaSource:
        """The source. Raises ProgramError for what is missing, and for properties that Kafka's
        client does not take."""
        return KafkaSource(self._checked_reading())

    def _checked_reading(self) -> KafkaReading:
        properties = dict(self._properties)
        if not properties.get("bootstrap.servers"):
            raise refuse(
                "a Kafka source needs the address of a broker: call "
                "set_bootstrap_servers('host:port')"
            )
        if self._subscription is None:
            raise refuse(
                "a Kafka source needs something to read: call set_topics(), "
                "set_topic_pattern() or set_partitions()"
            )
        if self._decoding is None:
            raise refuse(
                "a Kafka source needs to know what its records become: call "
                "set_value_only_deserializer(), set_whole_records() or "
                "set_columns()"
            )
        for initializer, call in (
            (self._start, "set_starting_offsets()"),
            (self._stop, "set_bounded() or set_unbounded()"),
        ):
            if (
                initializer is not None
                and initializer.needs_group
                and not properties.get("group.id")
            ):
                raise refuse(
                    f"{call} asks for the offsets that a group has committed: say which, with "
                    "set_group_id()"
                )
        interval_ms = _milliseconds(
            properties, "partition.discovery.interval.ms", DISCOVERY_INTERVAL_MS
        )
        commits = properties.pop("commit.offsets.on.checkpoint", "true").lower()
        if commits not in ("true", "false"):
            raise refuse(
                "the property commit.offsets.on.checkpoint is true or false, this is "
                f"{commits!r:.80}"
            )
        prefix = properties.pop("client.id.prefix", None) or properties.get("group.id", "flinkpy")
        patience_ms = _milliseconds(properties, "default.api.timeout.ms", PATIENCE_MS)
        try:
            check_consumer_properties(properties)
        except ProgramError as error:
            raise refuse(str(error)) from None
        return KafkaReading(
            properties,
            self._subscription,
            self._decoding,
            self._start,
            self._stop,
            self._bounded,
            interval_ms / 1000 if interval_ms > 0 else None,
            prefix,
            commits == "true",
            patience_ms / 1000,
        )

    def __repr__(self) -> str:
        return f"KafkaSourceBuilder({self._subscription or 'nothing to read yet'})"


def _checked_initializer(initializer: object, call: str) -> KafkaOffsetsInitializer:
    if not isinstance(initializer, KafkaOffsetsInitializer):
        raise refuse(
            f"{call} takes a KafkaOffsetsInitializer, such as "
            f"KafkaOffsetsInitializer.latest(), this is {initializer!r:.80}"
        )
    return initializer


def _milliseconds(properties: dict[str, str], key: str, default: int) -> int:
    text = properties.pop(key, str(default))
    try:
        return int(text)
    except ValueError:
        raise refuse(
            f"the property {key} is a number of milliseconds, this is {text!r:.80}"
        ) from None
