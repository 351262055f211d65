"""A reader's consumer. librdkafka fetches on threads of its own, into a queue that is bounded; the
task's thread takes what is there and never waits.

Only when there is nothing, a thread waits for the next message, and wakes the reader up. So while
messages flow, no Python thread stands between librdkafka and the task; and when the task does not
take, librdkafka's queue fills and it stops fetching.

Only one thread uses the consumer at a time: a commit blocks for good while another thread waits for
messages (confluent-kafka 2.16). So while a thread waits, it carries out what the task asks for."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from flinkpy.connectors.kafka.client_properties import (
    for_librdkafka,
    is_refusal,
    making_a_client,
    refusal,
)
from flinkpy.connectors.kafka.kafka_offsets import KafkaTopicPartition, Offsets
from flinkpy.core.clock import Clock
from flinkpy.core.errors import FlinkpyError
from flinkpy.core.secrets.engine_logs import engine_logger

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, TopicPartition

_LOG = engine_logger(__name__)

# messages; the client's objects of four thousand do not stay in the processor's cache, and cost
# half as much again
AT_ONCE = 1_000
# how long the thread waits at a time; what the task asks for, and closing, waits as long at most
WAIT_S = 0.1
WARN_AFTER_S, QUIET_S = 5.0, 30.0
DEFAULTS: dict[str, Any] = {
    "isolation.level": "read_uncommitted",  # as in Kafka's Java client
    # A reader of many has a smaller share of memory than a program that does nothing else:
    # librdkafka fetches ahead 64 MB by itself
    "queued.max.messages.kbytes": 16384,
    "log_level": 0,  # errors come to error_cb
}


class Outage:
    """Decides when to warn that the brokers are away: once, when errors have been coming for some
    seconds."""

    def __init__(self) -> None:
        self._since = self._last = -QUIET_S
        self._reason: str | None = None
        self._warned = False

    def failed(self, reason: str, now: float) -> None:
        """Notes an error of the connection."""
        if now - self._last >= QUIET_S:
            self._since, self._warned = now, False
        self._last, self._reason = now, reason

    def ended(self) -> None:
        """Notes that the brokers are there."""
        self._last, self._reason = -QUIET_S, None

    def warning(self, now: float) -> str | None:
        """What to warn of now."""
        if self._reason is None or self._warned or now - self._since < WARN_AFTER_S:
            return None
        self._warned = True
        return f"for {now - self._since:.0f} s ({self._reason})"


class MessageIntake:
    """Takes messages of the partitions that are assigned to it. All calls come from the task's
    thread."""

    def __init__(
        self, properties: Mapping[str, str], clock: Clock, wake_up: Callable[[], None]
    ) -> None:
        from confluent_kafka import Consumer

        self._clock = clock
        self._wake_up = wake_up
        self._servers = properties["bootstrap.servers"]
        self._outage = Outage()
        self._failure: Exception | None = None
        self._changed = threading.Condition()
        self._arrived: list[Message] = []
        self._asked: deque[Callable[[], object]] = deque()
        self._ends: Offsets = {}  # behind the last record of each partition, as far as known
        self._waits = self._stopped = False
        config = {
            "group.id": "flinkpy",
            **DEFAULTS,
            **for_librdkafka(properties),
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            # says where a partition ends although its last offsets have no records
            "enable.partition.eof": True,
            "error_cb": self._error_told,
            "on_commit": self._commit_answered,
        }
        with making_a_client():
            self._consumer = Consumer(config)
        # a daemon, so that a call that does not return does not keep the process alive
        self._thread = threading.Thread(
            target=self._wait_for_messages, name=f"Kafka {self._servers}"[:60], daemon=True
        )
        self._thread.start()

    # -- the task's thread -------------------------------------------------------------------------

    def assign(self, offsets: Offsets) -> None:
        """Begins to fetch partitions from these offsets."""
        self._do(lambda: self._consumer.incremental_assign(_positions(offsets)))

    def unassign(self, partition: KafkaTopicPartition) -> None:
        """Fetches no more of the partition. Messages of it may still come."""
        self._do(lambda: self._consumer.incremental_unassign(_positions({partition: 0})))

    def _do(self, action: Callable[[], object]) -> None:
        """Does it now, or has the thread do it that has the consumer."""
        with self._changed:
            if self._waits:
                self._asked.append(action)
                return
        action()

    def take(self, limit: int) -> list[Message]:
        """The messages that are there, at most ``limit`` and ``AT_ONCE``, also those that tell of
        errors and of the ends of partitions. If there is none, the reader is woken up when one
        comes."""
        with self._changed:
            if self._failure is not None:
                raise self._failure
            if self._waits:
                return []
            messages, self._arrived = self._arrived, []
        taken = self._consumer.consume(max(1, min(limit, AT_ONCE) - len(messages)), 0)
        messages = messages + taken if messages else taken
        if messages:
            self._outage.ended()
        else:
            with self._changed:
                self._waits = True
                self._changed.notify()
        return messages

    def pending(self, offsets: Offsets) -> int | None:
        """How many records follow these offsets, as far as the brokers' last answers say; None
        before the first answers. While the waiting thread has the consumer, this returns the count
        of the last look and has that thread look again: a call from here would wait for that
        thread, and hold the interpreter's lock meanwhile."""
        partitions = list(offsets)
        self._do(lambda: self._look_at_ends(partitions))
        ends = self._ends
        if any(ends.get(partition, -1) < 0 for partition in offsets):
            return None
        return sum(max(0, ends[partition] - offset) for partition, offset in offsets.items())

    def _look_at_ends(self, partitions: list[KafkaTopicPartition]) -> None:
        from confluent_kafka import KafkaException

        positions = _positions(dict.fromkeys(partitions, 0))
        with suppress(KafkaException):  # of a partition that is gone meanwhile
            self._ends = {
                partition: self._consumer.get_watermark_offsets(each, cached=True)[1]
                for partition, each in zip(partitions, positions)
            }

    def commit(self, offsets: Offsets) -> None:
        """Commits the offsets to the group, in the background."""
        self._do(lambda: self._commit(offsets))

    def _commit(self, offsets: Offsets) -> None:
        from confluent_kafka import KafkaException

        try:
            self._consumer.commit(offsets=_positions(offsets), asynchronous=True)
        except KafkaException as error:
            self._warn_of_commit(error.args[0])

    def close(self) -> None:
        """Has the thread close the consumer; nobody waits for it."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    # -- the waiting thread ------------------------------------------------------------------------

    def _wait_for_messages(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waits or self._stopped)
                # otherwise what was asked for, such as the last commit, comes before the end
                if not self._waits:
                    break
            arrived: list[Message] = (
                self._tried(lambda: self._consumer.consume(1, 0 if self._stopped else WAIT_S)) or []
            )
            while (asked := self._next_asked(arrived)) is not None:
                self._tried(asked)
            warning = self._outage.warning(self._clock.monotonic())
            if warning is not None and not arrived:
                _LOG.warning(
                    (
                        "the Kafka brokers at %s have not been reached %s; reading goes on when "
                        "they are back"
                    ),
                    self._servers,
                    warning,
                )
        self._consumer.close()

    def _tried(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except Exception as error:
            self._failure = self._failure or error
            return None

    def _next_asked(self, arrived: list[Message]) -> Callable[[], object] | None:
        """What the task has asked for. If there is nothing more, and something to tell it, it has
        the consumer again."""
        with self._changed:
            if self._asked:
                return self._asked.popleft()
            if not arrived and self._failure is None and not self._stopped:
                return None
            self._arrived, self._waits = arrived, False
        if not self._stopped:
            self._wake_up()
        return None

    # -- what the client tells, on the thread that asks it -----------------------------------------

    def _error_told(self, error: KafkaError) -> None:
        if is_refusal(error):
            self._failure = self._failure or self.failure_of(error)
        else:
            self._outage.failed(error.str(), self._clock.monotonic())

    def _commit_answered(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        failed = error or next((each.error for each in partitions if each.error is not None), None)
        if failed is not None:
            self._warn_of_commit(failed)

    def _warn_of_commit(self, error: KafkaError) -> None:
        _LOG.warning(
            (
                "offsets were not committed to the group at %s (%s); the job's checkpoints have "
                "them, and the next one commits again"
            ),
            self._servers,
            error.str(),
        )

    def failure_of(self, error: KafkaError, place: str = "") -> FlinkpyError:
        """The error as a sentence."""
        return refusal(error, self._servers, place)


def _positions(offsets: Offsets) -> list[TopicPartition]:
    from confluent_kafka import TopicPartition

    return [
        TopicPartition(partition.topic, partition.partition, offset)
        for partition, offset in offsets.items()
    ]
