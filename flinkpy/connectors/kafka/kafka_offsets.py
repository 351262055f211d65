"""Where reading a topic begins and ends, under PyFlink's names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from flinkpy.core.errors import ProgramError

EARLIEST, LATEST = -2, -1  # instead of a time, as in Kafka's protocol


@dataclass(frozen=True, order=True)
class KafkaTopicPartition:
    """A partition of a topic.

    >>> KafkaTopicPartition("orders", 0)
    orders[0]
    """

    topic: str
    partition: int

    def __post_init__(self) -> None:
        if not isinstance(self.topic, str) or not self.topic:
            raise ProgramError(f"a topic has a name, this is {self.topic!r:.80}")
        if (
            isinstance(self.partition, bool)
            or not isinstance(self.partition, int)
            or self.partition < 0
        ):
            raise ProgramError(f"a partition is a number from 0 on, this is {self.partition!r:.80}")

    def __repr__(self) -> str:
        return f"{self.topic}[{self.partition}]"


class KafkaOffsetResetStrategy(Enum):
    """Where to go on if the wanted offset is not there.

    >>> KafkaOffsetResetStrategy.EARLIEST.name
    'EARLIEST'
    """

    LATEST = 0
    EARLIEST = 1
    NONE = 2


_RESET_TIMES = {
    KafkaOffsetResetStrategy.EARLIEST: EARLIEST,
    KafkaOffsetResetStrategy.LATEST: LATEST,
}
_RESET_PROPERTY = {
    KafkaOffsetResetStrategy.EARLIEST: "earliest",
    KafkaOffsetResetStrategy.LATEST: "latest",
    KafkaOffsetResetStrategy.NONE: "error",
}

Offsets = dict[KafkaTopicPartition, int]


class OffsetLookup(Protocol):
    """What is asked of the brokers."""

    @property
    def group(self) -> str | None:
        """The consumer group, if there is one."""
        ...

    def at_time(self, partitions: Collection[KafkaTopicPartition], time: int) -> Offsets:
        """The first offset at or after the time (milliseconds, or EARLIEST, or LATEST); no entry
        for a partition without one."""
        ...

    def committed(self, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """The group's committed offsets; no entry for a partition without one."""
        ...


@dataclass(frozen=True, repr=False)
class KafkaOffsetsInitializer:
    """An offset for each partition, to begin or to stop at; made by its static methods.

    >>> KafkaOffsetsInitializer.timestamp(1_700_000_000_000)
    KafkaOffsetsInitializer.timestamp(1700000000000)
    """

    _text: str
    _resolve: Callable[[Collection[KafkaTopicPartition], OffsetLookup], Offsets]
    _reset: KafkaOffsetResetStrategy
    needs_group: bool = False

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """The first offset that the partition still has."""
        return KafkaOffsetsInitializer(
            "earliest()", _At(EARLIEST), KafkaOffsetResetStrategy.EARLIEST
        )

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """The offset that the next record will get, when the job starts."""
        return KafkaOffsetsInitializer("latest()", _At(LATEST), KafkaOffsetResetStrategy.LATEST)

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """The offset of the first record whose timestamp (in milliseconds) is at or after the given
        one; the end of a partition without such a record. Raises ProgramError for a timestamp below
        0."""
        if isinstance(timestamp, bool) or not isinstance(timestamp, int) or timestamp < 0:
            raise ProgramError(
                f"timestamp() takes milliseconds since 1970, this is {timestamp!r:.80}"
            )
        return KafkaOffsetsInitializer(
            f"timestamp({timestamp})", _At(timestamp), KafkaOffsetResetStrategy.LATEST
        )

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """The offsets committed by the consumer group; ``offset_reset_strategy`` says what holds
        for a partition without one. With NONE the job fails then."""
        strategy = _checked_strategy(offset_reset_strategy)
        return KafkaOffsetsInitializer(
            f"committed_offsets({strategy.name})", _Given({}, strategy), strategy, needs_group=True
        )

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """The given offsets. A partition without one has the offset committed by the group, or that
        of the strategy, which also holds for offsets that the partition does not have."""
        strategy = _checked_strategy(offset_reset_strategy)
        for partition, offset in offsets.items():
            if not isinstance(partition, KafkaTopicPartition):
                raise ProgramError(
                    "offsets() takes a dict with KafkaTopicPartition as keys, this is "
                    f"{partition!r:.80}"
                )
            if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
                raise ProgramError(
                    f"the offset of {partition} is a number from 0 on, this is {offset!r:.80}"
                )
        return KafkaOffsetsInitializer(
            f"offsets({dict(offsets)!r:.80}, {strategy.name})",
            _Given(dict(offsets), strategy),
            strategy,
        )

    def resolve(self, partitions: Collection[KafkaTopicPartition], lookup: OffsetLookup) -> Offsets:
        """The offset of each partition. Raises ProgramError for one that has none."""
        return self._resolve(partitions, lookup)

    def beginnings(
        self, partitions: Collection[KafkaTopicPartition], lookup: OffsetLookup
    ) -> Offsets:
        """The offset of each partition, to begin at. One that the partition does not have is
        replaced as the strategy says; with NONE it raises ProgramError."""
        found = self.resolve(partitions, lookup)
        if isinstance(self._resolve, _At):
            return found
        first, end = lookup.at_time(partitions, EARLIEST), lookup.at_time(partitions, LATEST)
        outside = [
            each
            for each in partitions
            if each in first and each in end and not first[each] <= found[each] <= end[each]
        ]
        if outside and self._reset is KafkaOffsetResetStrategy.NONE:
            each = outside[0]
            raise ProgramError(
                f"{each} has no offset {found[each]}, but those from {first[each]} to "
                f"{end[each]}: begin there, or say with a "
                "KafkaOffsetResetStrategy, EARLIEST or LATEST, where to begin"
            )
        there = first if self._reset is KafkaOffsetResetStrategy.EARLIEST else end
        return {**found, **{each: there[each] for each in outside}}

    @property
    def reset_property(self) -> str:
        """The property ``auto.offset.reset`` of a consumer that begins here."""
        return _RESET_PROPERTY[self._reset]

    def __repr__(self) -> str:
        return f"KafkaOffsetsInitializer.{self._text}"


@dataclass(frozen=True)
class _At:
    """Offsets at a time; the end of a partition that has none."""

    time: int

    def __call__(
        self, partitions: Collection[KafkaTopicPartition], lookup: OffsetLookup
    ) -> Offsets:
        found = lookup.at_time(partitions, self.time)
        missing = [each for each in partitions if each not in found]
        return {**found, **lookup.at_time(missing, LATEST)} if missing else found


@dataclass(frozen=True)
class _Given:
    """Given offsets, else committed ones, else those of the strategy."""

    offsets: Offsets
    strategy: KafkaOffsetResetStrategy

    def __call__(
        self, partitions: Collection[KafkaTopicPartition], lookup: OffsetLookup
    ) -> Offsets:
        found = {each: self.offsets[each] for each in partitions if each in self.offsets}
        missing = [each for each in partitions if each not in found]
        if missing:
            found |= lookup.committed(missing)
        missing = [each for each in missing if each not in found]
        if missing and self.strategy is KafkaOffsetResetStrategy.NONE:
            group = "a group" if lookup.group is None else f"the group {lookup.group!r}"
            which = f"{', '.join(map(repr, missing[:3]))}{' …' if missing[3:] else ''}"
            raise ProgramError(
                f"there is no offset of {which} that {group} has committed: say where to "
                "begin, as with "
                "KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)"
            )
        return (
            {**found, **lookup.at_time(missing, _RESET_TIMES[self.strategy])} if missing else found
        )


def _checked_strategy(strategy: object) -> KafkaOffsetResetStrategy:
    if not isinstance(strategy, KafkaOffsetResetStrategy):
        raise ProgramError(
            f"an offset reset strategy is one of KafkaOffsetResetStrategy, this is {strategy!r:.80}"
        )
    return strategy
