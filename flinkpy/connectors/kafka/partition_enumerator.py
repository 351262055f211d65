"""Finds the partitions of the topics, and assigns each to one reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from flinkpy.connectors.kafka.kafka_offsets import KafkaTopicPartition
from flinkpy.connectors.source_api.source import SplitEnumerator, SplitEnumeratorContext
from flinkpy.core.secrets.engine_logs import engine_logger

_LOG = engine_logger(__name__)


@dataclass(frozen=True)
class KafkaSplit:
    """A partition, the offset of the next record to read, and the offset to stop before (None:
    without end)."""

    split_id: str
    partition: KafkaTopicPartition
    offset: int
    stop: int | None = None

    @staticmethod
    def of(partition: KafkaTopicPartition, offset: int, stop: int | None = None) -> KafkaSplit:
        return KafkaSplit(f"{partition.topic}-{partition.partition}", partition, offset, stop)


@dataclass(frozen=True)
class PartitionsSeen:
    """The enumerator's state in a checkpoint: the partitions it has found (None: it has not looked
    yet), the splits not assigned, and what the program said of their ends ("": a checkpoint that
    does not know)."""

    seen: frozenset[KafkaTopicPartition] | None
    left: tuple[KafkaSplit, ...]
    ends: object = ""


Stops = Mapping[KafkaTopicPartition, int | None]


@dataclass(frozen=True)
class ReadersMayBegin:
    """Tells a reader that it has its first partitions, so that one without any knows it. ``stops``
    are other ends for partitions that it was restored with."""

    stops: Stops = field(default_factory=dict)


class Found(NamedTuple):
    """Splits of the partitions that are new, and other ends for those that were seen."""

    new: Sequence[KafkaSplit]
    stops: Stops


def with_stop(split: KafkaSplit, stops: Stops) -> KafkaSplit:
    """The split, with the end that it has there."""
    return replace(split, stop=stops[split.partition]) if split.partition in stops else split


def owner_of(partition: KafkaTopicPartition, readers: int) -> int:
    """The reader of a partition: the partitions of a topic go round the readers, from one that the
    topic's name says. The same as Flink's."""
    text = partition.topic.encode("utf-16-be")
    hashed = 0
    for place in range(0, len(text), 2):  # String.hashCode() of Java
        hashed = (31 * hashed + int.from_bytes(text[place : place + 2], "big")) & 0xFFFFFFFF
    return ((hashed * 31 & 0x7FFFFFFF) % readers + partition.partition) % readers


class PartitionEnumerator(SplitEnumerator[KafkaSplit]):
    """Looks for partitions, once or every ``interval_s``, and pushes them to their readers.

    ``look(seen, ends_are_others)`` runs in the background; ``seen`` is None at the first look.
    Without ``interval_s`` the readers are told that no more will come. A look that fails fails the
    job only if the readers wait for it: later they have partitions to go on with.

    ``ends`` is what the program says of the partitions' ends. A checkpoint's partitions keep
    theirs, unless the program says something else now."""

    def __init__(
        self,
        context: SplitEnumeratorContext[KafkaSplit],
        look: Callable[[frozenset[KafkaTopicPartition] | None, bool], Found],
        interval_s: float | None,
        stop_looking: Callable[[], None],
        ends: object = None,
        checkpoint: PartitionsSeen | None = None,
    ) -> None:
        self._context = context
        self._look = look
        self._interval_s = interval_s
        self._stop_looking = stop_looking
        self._ends = ends
        self._restored = PartitionsSeen(None, (), ends) if checkpoint is None else checkpoint
        self._seen, ends_before = self._restored.seen, self._restored.ends
        self._ends_are_others = self._seen is not None and ends_before not in ("", ends)
        self._stops: Stops = {}
        self._left: dict[int, list[KafkaSplit]] = {}
        self._add(self._restored.left)

    @property
    def _is_awaited(self) -> bool:
        """Whether the readers wait for the first look."""
        return self._seen is None or self._ends_are_others

    def start(self) -> None:
        if self._is_awaited or self._interval_s is not None:
            self._context.call_async(
                lambda: self._look(self._seen, self._ends_are_others), self._found, self._interval_s
            )

    def _found(self, found: Found | None, error: BaseException | None) -> None:
        if error is not None or found is None:
            if self._is_awaited and error is not None:
                raise error
            _LOG.warning("looking for new partitions of Kafka: %s", error)
            return
        new, is_first = found.new, self._is_awaited
        if self._ends_are_others:
            self._stops, self._ends_are_others = found.stops, False
            self._left = {
                reader: [with_stop(split, self._stops) for split in splits]
                for reader, splits in self._left.items()
            }
        self._seen = (self._seen or frozenset()).union(split.partition for split in new)
        self._add(new)
        if new and not is_first:
            _LOG.info("new partitions of Kafka: %s", ", ".join(split.split_id for split in new))
        for subtask in self._context.registered_readers if new or is_first else ():
            self._serve(subtask)

    def _add(self, splits: Iterable[KafkaSplit]) -> None:
        for split in splits:
            self._left.setdefault(owner_of(split.partition, self._context.parallelism), []).append(
                split
            )

    def _serve(self, subtask: int) -> None:
        """Gives a reader what there is for it."""
        if self._is_awaited:
            return
        self._context.assign_splits(subtask, self._left.pop(subtask, []))
        self._context.send_event_to_reader(subtask, ReadersMayBegin(self._stops))
        if self._interval_s is None:
            self._context.signal_no_more_splits(subtask)

    def add_reader(self, subtask: int) -> None:
        self._serve(subtask)

    def handle_split_request(self, subtask: int, host: str) -> None:
        """Readers do not ask: they are given their partitions."""

    def add_splits_back(self, splits: list[KafkaSplit], subtask: int) -> None:
        self._left.setdefault(subtask, []).extend(splits)
        if subtask in self._context.registered_readers:
            self._serve(subtask)

    def snapshot_state(self, checkpoint_id: int) -> Any:
        left = tuple(split for splits in self._left.values() for split in splits)
        return PartitionsSeen(
            self._seen, left, self._restored.ends if self._ends_are_others else self._ends
        )

    def close(self) -> None:
        self._stop_looking()

    def __repr__(self) -> str:
        return (
            "<PartitionEnumerator: "
            f"{'looking' if self._seen is None else f'{len(self._seen)} partitions seen'}>"
        )
