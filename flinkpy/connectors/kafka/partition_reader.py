"""Reads the partitions of one subtask."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flinkpy.connectors.kafka.client_properties import is_refusal, is_unreadable
from flinkpy.connectors.kafka.kafka_offsets import KafkaTopicPartition, Offsets
from flinkpy.connectors.kafka.message_intake import MessageIntake
from flinkpy.connectors.kafka.partition_enumerator import (
    KafkaSplit,
    ReadersMayBegin,
    Stops,
    with_stop,
)
from flinkpy.connectors.kafka.record_decoding import CannotDecodeError, RecordDecoding
from flinkpy.connectors.source_api.source import InputStatus, ReaderContext, SourceReader
from flinkpy.core.elements import Batch, Watermark, WatermarkStatus
from flinkpy.core.errors import FlinkpyError
from flinkpy.formats.port import MalformedMessageError, shown

if TYPE_CHECKING:
    from confluent_kafka import Message


class MalformedRecordError(FlinkpyError):
    """A record of a topic cannot be decoded: says which, and why."""

    def __init__(self, place: str, cause: MalformedMessageError) -> None:
        super().__init__(place, cause)
        self.place, self.cause = place, cause

    def __str__(self) -> str:
        return (
            f"the record at {self.place} cannot be decoded: "
            f"{self.cause.why}{shown(self.cause.beginning)}"
        )


class _OffsetCommits:
    """What is committed to the broker once a checkpoint is complete. ``ended`` has the partitions
    that were read to their stop, until they are committed."""

    def __init__(self) -> None:
        self.ended: Offsets = {}
        self._of_checkpoints: dict[int, Offsets] = {}

    def snapshot(self, checkpoint_id: int, offsets: Offsets) -> None:
        """This is how far the other partitions are at the checkpoint."""
        self._of_checkpoints[checkpoint_id] = {**self.ended, **offsets}

    def take(self, checkpoint_id: int) -> Offsets | None:
        """The offsets of the checkpoint, which is complete, as those before it are."""
        offsets = self._of_checkpoints.get(checkpoint_id)
        self._of_checkpoints = {
            number: later
            for number, later in self._of_checkpoints.items()
            if number > checkpoint_id
        }
        if offsets:
            self.ended = {
                partition: end
                for partition, end in self.ended.items()
                if offsets.get(partition) != end
            }
        return offsets


class KafkaReader(SourceReader[KafkaSplit]):
    """Gives batches of one partition each. What its snapshot says was read is what it has given.

    It begins when its enumerator has assigned the first partitions, so that the event time of
    restored ones does not pass those. A subtask without partitions says that it is idle: it holds
    nobody back."""

    def __init__(
        self,
        context: ReaderContext,
        open_intake: Callable[[], MessageIntake],
        decoding: RecordDecoding,
        *,
        commits: bool,
    ) -> None:
        self._context = context
        self._open_intake = open_intake
        self._decoding = decoding
        self._commits = _OffsetCommits() if commits else None
        self._added: list[KafkaSplit] = []  # not begun
        self._splits: dict[KafkaTopicPartition, KafkaSplit] = {}  # where each partition is read on
        # messages, or the offset at which there are no more
        self._ready: deque[tuple[KafkaTopicPartition, list[Message], int | None]] = deque()
        self._may_begin = self._no_more = self._said_idle = False
        # of the first record of the last batch, or of the one that cannot be decoded
        self._place: tuple[KafkaTopicPartition, int] | None = None
        # read to their stop: a later run of the job may have another one
        self._done: list[KafkaSplit] = []
        self._stops: Stops = {}
        self._has_intake = False

    def start(self) -> None:
        self._intake = self._open_intake()
        self._has_intake = True

    # -- splits ------------------------------------------------------------------------------------

    def add_splits(self, splits: list[KafkaSplit]) -> None:
        self._added.extend(splits)

    def notify_no_more_splits(self) -> None:
        self._no_more = True

    def handle_source_event(self, event: Any) -> None:
        if isinstance(event, ReadersMayBegin):
            self._may_begin, self._stops = True, event.stops

    def _begin_added(self) -> None:
        added, self._added = [with_stop(split, self._stops) for split in self._added], []
        unread = [split for split in added if split.stop is None or split.offset < split.stop]
        self._done += [split for split in added if split not in unread]
        for split in unread:
            self._splits[split.partition] = split
            self._context.split_begun(split.split_id)
        if unread:
            self._intake.assign({split.partition: split.offset for split in unread})

    def _end(self, split: KafkaSplit) -> None:
        self._intake.unassign(split.partition)
        del self._splits[split.partition]
        if self._commits is not None:
            self._commits.ended[split.partition] = split.offset
        self._done.append(split)
        self._context.split_finished(split.split_id)

    # -- reading -----------------------------------------------------------------------------------

    def poll(self, limit: int) -> Batch | InputStatus | Watermark | WatermarkStatus:
        if not self._may_begin:
            return InputStatus.NOTHING_AVAILABLE
        if self._added:
            if self._said_idle:
                self._said_idle = False
                return WatermarkStatus(idle=False)
            self._begin_added()
        while True:
            while self._ready:
                batch = self._next_batch(*self._ready.popleft())
                if batch is not None:
                    return batch
            if not self._splits:
                return self._without_splits()
            messages = self._intake.take(limit)
            if not messages:
                return InputStatus.NOTHING_AVAILABLE
            self._sort_out(messages)

    def _without_splits(self) -> InputStatus | WatermarkStatus:
        if self._no_more:
            return InputStatus.END_OF_INPUT
        if not self._said_idle:
            self._said_idle = True
            return WatermarkStatus(idle=True)
        return InputStatus.NOTHING_AVAILABLE

    def _sort_out(self, messages: list[Message]) -> None:
        """Takes the messages apart by partition; what tells that a partition has ended comes behind
        its messages."""
        # its own methods, mapped, cost a tenth of any other way to call them
        from confluent_kafka import Message

        ends: list[tuple[KafkaTopicPartition, int]] = []
        if any(map(Message.error, messages)):
            ends = [
                (_partition_of(each), each.offset() or 0) for each in messages if self._is_end(each)
            ]
            messages = [each for each in messages if each.error() is None]
        if messages:
            self._ready.extend(
                (partition, each, None) for partition, each in _by_partition(messages)
            )
        self._ready.extend((partition, [], offset) for partition, offset in ends)

    def _is_end(self, message: Message) -> bool:
        """Whether it tells that the partition has no more messages now. Raises what else it tells;
        what the client mends by itself is no matter."""
        from confluent_kafka import KafkaError

        error = message.error()
        if error is None or error.code() == KafkaError._PARTITION_EOF:
            return error is not None
        if is_refusal(error) or is_unreadable(error):
            offset = message.offset()
            at = f", offset {offset}" if offset is not None and offset >= 0 else ""
            raise self._intake.failure_of(
                error, f"topic {message.topic()!r}, partition {message.partition()}{at}"
            )
        return False

    def _next_batch(
        self, partition: KafkaTopicPartition, messages: list[Message], end: int | None
    ) -> Batch | None:
        split = self._splits.get(partition)
        if split is None:  # what was fetched beyond its stop
            return None
        batch = None
        if end is not None:
            split = replace(split, offset=max(split.offset, end))
        else:
            messages, split = self._up_to_stop(messages, split)
            if messages:
                self._place = partition, messages[0].offset() or 0
                batch = self._decoded(partition, messages)
        self._splits[partition] = split
        if split.stop is not None and split.offset >= split.stop:
            self._end(split)
        return batch

    def _up_to_stop(
        self, messages: list[Message], split: KafkaSplit
    ) -> tuple[list[Message], KafkaSplit]:
        following = (messages[-1].offset() or 0) + 1
        if split.stop is not None and following > split.stop:
            messages = messages[
                : bisect_left([each.offset() or 0 for each in messages], split.stop)
            ]
            following = split.stop
        return messages, replace(split, offset=following)

    def _decoded(self, partition: KafkaTopicPartition, messages: list[Message]) -> Batch | None:
        try:
            return self._decoding.decode(messages)
        except CannotDecodeError as error:
            self._place = partition, messages[error.index].offset() or 0
            if isinstance(error.__cause__, MalformedMessageError):
                raise MalformedRecordError(self.position() or "", error.__cause__) from None
            raise (error.__cause__ or error) from None

    def pending_records(self) -> int | None:
        return self._intake.pending(
            {partition: split.offset for partition, split in self._splits.items()}
        )

    def split_of_batch(self) -> str | None:
        if self._place is None:
            return None
        partition, _ = self._place
        return f"{partition.topic}-{partition.partition}"

    def position(self) -> str | None:
        if self._place is None:
            return None
        partition, offset = self._place
        return f"topic {partition.topic!r}, partition {partition.partition}, offset {offset}"

    # -- checkpoints -------------------------------------------------------------------------------

    def snapshot_state(self, checkpoint_id: int) -> list[KafkaSplit]:
        if self._commits is not None:
            self._commits.snapshot(
                checkpoint_id,
                {partition: split.offset for partition, split in self._splits.items()},
            )
        return [*self._splits.values(), *self._added, *self._done]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        offsets = None if self._commits is None else self._commits.take(checkpoint_id)
        if offsets:
            self._intake.commit(offsets)

    def close(self) -> None:
        self._ready.clear()
        if self._has_intake:  # it may be that none could be opened
            self._intake.close()

    def __repr__(self) -> str:
        return f"<KafkaReader: {len(self._splits)} partitions, {len(self._added)} waiting>"


def _partition_of(message: Message) -> KafkaTopicPartition:
    return KafkaTopicPartition(message.topic() or "", message.partition() or 0)


def _by_partition(messages: list[Message]) -> list[tuple[KafkaTopicPartition, list[Message]]]:
    """The messages of each partition, in order. Mostly all are of one: the client fetches a
    partition at a time."""
    from confluent_kafka import Message

    topics, numbers = list(map(Message.topic, messages)), list(map(Message.partition, messages))
    if topics.count(topics[0]) == len(topics) and numbers.count(numbers[0]) == len(numbers):
        return [(_partition_of(messages[0]), messages)]
    found: dict[tuple[Any, Any], list[Message]] = {}
    for place, message in zip(zip(topics, numbers), messages):
        found.setdefault(place, []).append(message)
    return [(_partition_of(each[0]), each) for each in found.values()]
