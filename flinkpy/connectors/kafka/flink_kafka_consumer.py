"""PyFlink's older name for reading topics of Kafka: the same source, set up by methods of the
object itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from flinkpy.common.serialization import DeserializationSchema
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.connectors.kafka.kafka_offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from flinkpy.connectors.kafka.kafka_source import KafkaSource, KafkaSourceBuilder
from flinkpy.core.program.program_line import refuse

_RESETS = {
    "earliest": KafkaOffsetResetStrategy.EARLIEST,
    "latest": KafkaOffsetResetStrategy.LATEST,
    "none": KafkaOffsetResetStrategy.NONE,
}


class FlinkKafkaConsumer(KafkaSource):
    """Reads the values of topics; ``env.add_source`` takes it. It begins with what the group has
    committed. Where nothing is committed, or there is no ``group.id``, the property
    ``auto.offset.reset`` says where: ``latest`` (this is the default), ``earliest`` or ``none``.
    New programs use ``KafkaSource``.

    >>> from flinkpy.common.serialization import SimpleStringSchema
    >>> FlinkKafkaConsumer(
    ...     "orders",
    ...     SimpleStringSchema(),
    ...     {"bootstrap.servers": "localhost:9092", "group.id": "shop"},
    ... ).set_start_from_earliest()
    FlinkKafkaConsumer(orders)
    """

    def __init__(
        self,
        topics: str | list[str],
        deserialization_schema: DeserializationSchema,
        properties: Mapping[str, str],
    ) -> None:
        named = [topics] if isinstance(topics, str) else list(topics)
        builder = (
            KafkaSourceBuilder()
            .set_topics(*named)
            .set_value_only_deserializer(deserialization_schema)
            .set_properties(properties)
        )
        reading = builder.build()._reading
        self._reset = reading.properties.get("auto.offset.reset", "latest").lower()
        if self._reset not in _RESETS:
            raise refuse(
                "the property auto.offset.reset is earliest, latest or none, this is "
                f"{self._reset!r:.80}"
            )
        super().__init__(reading)
        if "group.id" in reading.properties:
            self.set_start_from_group_offsets()
        elif self._reset != "none":
            self._begin(getattr(KafkaOffsetsInitializer, self._reset)())
        # A new partition begins at its first record anyway; FlinkKafkaConsumer looks for them only
        # if it is told to
        if "partition.discovery.interval.ms" not in properties:
            self._reading = replace(self._reading, discovery_interval_s=None)

    def set_commit_offsets_on_checkpoints(self, commit_on_checkpoints: bool) -> FlinkKafkaConsumer:
        """Sets whether offsets are committed to the group when a checkpoint is complete; by default
        they are."""
        self._reading = replace(self._reading, commits=bool(commit_on_checkpoints))
        return self

    def set_start_from_earliest(self) -> FlinkKafkaConsumer:
        """Begins with the earliest record."""
        return self._begin(KafkaOffsetsInitializer.earliest())

    def set_start_from_latest(self) -> FlinkKafkaConsumer:
        """Begins with what comes from now on."""
        return self._begin(KafkaOffsetsInitializer.latest())

    def set_start_from_timestamp(self, startup_offsets_timestamp: int) -> FlinkKafkaConsumer:
        """Begins with the first record at or after a time in milliseconds."""
        return self._begin(KafkaOffsetsInitializer.timestamp(startup_offsets_timestamp))

    def set_start_from_group_offsets(self) -> FlinkKafkaConsumer:
        """Begins where the group has committed; this is the default. Raises ProgramError without
        the property ``group.id``."""
        if "group.id" not in self._reading.properties:
            raise refuse("set_start_from_group_offsets() needs a group: give the property group.id")
        return self._begin(KafkaOffsetsInitializer.committed_offsets(_RESETS[self._reset]))

    def disable_filter_restored_partitions_with_subscribed_topics(self) -> FlinkKafkaConsumer:
        """Restored partitions are read on whatever the topics are, so there is nothing to
        disable."""
        return self

    def get_produced_type(self) -> TypeInformation | None:
        """The type of the values."""
        return self.produced_type

    def _begin(self, start: KafkaOffsetsInitializer) -> FlinkKafkaConsumer:
        self._reading = replace(self._reading, start=start)
        return self
