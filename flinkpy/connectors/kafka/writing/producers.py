"""librdkafka's producer, as the sink needs it: sends with bounded waits, remembers what could not
be delivered, and says it in one sentence."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from flinkpy.connectors.kafka.client_properties import (
    for_librdkafka,
    is_refusal,
    making_a_client,
    refusal,
    refused_settings,
    require_client,
)
from flinkpy.connectors.kafka.writing.messages import Message
from flinkpy.connectors.kafka.writing.wire import ProducerId
from flinkpy.core.clock import Clock
from flinkpy.core.errors import FlinkpyError, ProgramError, RecipientUnreachableError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

T = TypeVar("T")

DELIVERY_TIMEOUT_MS = 120_000  # as in Kafka's Java client
TRANSACTION_TIMEOUT_MS = 900_000  # the most that a broker allows unless it is configured
QUEUE_MESSAGES = 100_000
WAIT_S = 0.1
STATISTICS_MS = 50  # until the producer id is known; librdkafka tells it nowhere else
PARTITIONS_KNOWN_FOR_MS = 300_000
_METADATA_S = 10.0
_UNHEARD = logging.getLogger(f"{__name__}.librdkafka")  # what it says is raised here as an error
_UNHEARD.disabled = True
_TRANSACTIONAL = (
    "transactional.id",
    "statistics.interval.ms",
    "stats_cb",
    "transaction.timeout.ms",
)


class DeliveryError(FlinkpyError):
    """Messages could not be delivered. A restarted job writes them again."""


def settings_of(properties: Mapping[str, str], *, transactional: bool) -> dict[str, Any]:
    """The producer's settings under librdkafka's names, with defaults that keep what Kafka's Java
    client promises. Raises ProgramError for a transaction timeout that is no number."""
    settings = {
        "partitioner": "murmur2_random",
        "enable.idempotence": "true",
        "queue.buffering.max.messages": str(QUEUE_MESSAGES),
        "topic.metadata.propagation.max.ms": "10000",
        **for_librdkafka(properties),
    }
    if "message.timeout.ms" not in settings:
        settings.setdefault("delivery.timeout.ms", str(DELIVERY_TIMEOUT_MS))
    if not transactional:
        return {name: value for name, value in settings.items() if name not in _TRANSACTIONAL}
    timeout = settings.setdefault("transaction.timeout.ms", str(TRANSACTION_TIMEOUT_MS))
    if not str(timeout).isdigit() or int(timeout) < 1000:
        raise ProgramError(
            "the Kafka property transaction.timeout.ms is a whole number of milliseconds "
            f"from 1000 on, this is {timeout!r}"
        )
    if not properties.keys() & {"delivery.timeout.ms", "message.timeout.ms"}:
        settings["delivery.timeout.ms"] = str(min(int(timeout), DELIVERY_TIMEOUT_MS))
    return settings


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raises ProgramError if librdkafka is not there, or for a setting that it does not know or
    take. Connects to nothing."""
    require_client()
    from confluent_kafka import KafkaException, Producer

    def check(some: Mapping[str, Any]) -> None:
        Producer({**some, "log_level": 0, "logger": _UNHEARD})

    without_servers = {
        name: value for name, value in settings.items() if name != "bootstrap.servers"
    }
    try:
        check(without_servers)
    except KafkaException as error:
        raise refused_settings(error, without_servers, check, "sink") from None


class KafkaProducer:
    """One producer of librdkafka. Its calls come from one thread. It never blocks longer than
    librdkafka's delivery timeout."""

    def __init__(self, settings: Mapping[str, Any], clock: Clock) -> None:
        from confluent_kafka import KafkaException, Producer

        self._kafka_exception = KafkaException
        self._servers = str(settings.get("bootstrap.servers"))
        self._timeout_ms = settings.get("delivery.timeout.ms") or settings.get("message.timeout.ms")
        self._clock = clock
        self._failed: FlinkpyError | None = None
        self._told: KafkaError | None = None
        self._partitions: dict[str, tuple[int, list[int]]] = {}
        self._producer: Any = None
        with making_a_client():
            self._producer = Producer(
                {
                    "log_level": 0,
                    **settings,
                    "delivery.report.only.error": True,
                    "on_delivery": self._undelivered,
                    "error_cb": self._tell,
                    "logger": _UNHEARD,
                }
            )

    @property
    def queued(self) -> int:
        """How many messages wait in this process for the broker."""
        return len(self._producer)

    def send(self, messages: Iterable[Message]) -> None:
        """Sends all of them; waits where librdkafka's queue is full. Raises if something could not
        be delivered."""
        produce = self._producer.produce
        message: Message | None = None
        try:
            for message in messages:
                try:
                    produce(*message)
                except BufferError:
                    self._send_with_room(message)
        except self._kafka_exception as error:
            self.poll()  # it may know more about it
            raise self._explained(error.args[0], None if message is None else message[0]) from None
        self.poll()

    def _call(self, call: Callable[[], T], topic: str | None = None) -> T:
        """The result of a call of librdkafka, which may run callbacks. Raises what they heard, or
        the call's own error."""
        failure: KafkaError | None = None
        try:
            result = call()
        except self._kafka_exception as error:
            failure = error.args[0]
        if self._failed is not None:
            raise self._failed
        if failure is not None:
            raise self._explained(failure, topic)
        return result

    def _send_with_room(self, message: Message) -> None:
        while True:
            self.poll(WAIT_S)
            try:
                self._producer.produce(*message)
                return
            except BufferError:
                pass

    def poll(self, seconds: float = 0.0) -> None:
        """Hears from librdkafka; raises what could not be delivered."""
        self._call(lambda: self._producer.poll(seconds))

    def hurry(self) -> bool:
        """Sends what is gathered, without waiting. Whether all is delivered."""
        left: int = self._call(lambda: self._producer.flush(0))
        return left == 0

    def partitions_of(self, topic: str) -> list[int]:
        """The partitions of a topic, asked for every few minutes."""
        now = self._clock.time_ms()
        known = self._partitions.get(topic)
        if known is not None and now < known[0]:
            return known[1]
        found = self._call(
            lambda: self._producer.list_topics(topic, _METADATA_S).topics[topic], topic
        )
        if found.error is not None:
            raise self._explained(found.error, topic)
        partitions = sorted(found.partitions)
        self._partitions[topic] = (now + PARTITIONS_KNOWN_FOR_MS, partitions)
        return partitions

    def release(self) -> None:
        """Forgets what was not delivered, and frees librdkafka's threads. A transaction stays as it
        is: close() of the client would abort it."""
        with contextlib.suppress(self._kafka_exception):
            self._producer.purge()
        self._producer = None

    # -- what librdkafka says ----------------------------------------------------------------------

    def _undelivered(self, error: KafkaError, message: Any) -> None:
        from confluent_kafka import KafkaError

        # those were given up here
        if self._failed is None and error.code() not in (
            KafkaError._PURGE_QUEUE,
            KafkaError._PURGE_INFLIGHT,
        ):
            self._failed = self._explained(error, message.topic(), len(message))

    def _tell(self, error: KafkaError) -> None:
        """An error of the client as a whole. It goes on trying by itself, unless nothing helps."""
        self._told = error
        if self._failed is None and (is_refusal(error) or error.fatal()):
            self._failed = self._explained(error, None)

    def _explained(
        self, error: KafkaError, topic: str | None, size: int | None = None
    ) -> FlinkpyError:
        from confluent_kafka import KafkaError

        code, place = error.code(), "" if topic is None else f"topic {topic!r}"
        if code in (
            KafkaError._MSG_TIMED_OUT,
            KafkaError._TIMED_OUT,
            KafkaError._TRANSPORT,
            KafkaError._ALL_BROKERS_DOWN,
            KafkaError._RESOLVE,
        ):
            reason = "" if self._told is None else f" ({self._told.str().rstrip('.')})"
            return RecipientUnreachableError(
                f"Kafka at {self._servers} took no "
                f"messages{f' of {place}' if place else ''} within "
                f"delivery.timeout.ms={self._timeout_ms}{reason}: "
                "check bootstrap.servers and security.protocol, and whether the brokers are up"
            )
        if code in (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE):
            return ProgramError(
                f"a message{'' if size is None else f' of {size} bytes'} for "
                f"{place or 'Kafka'} is too large: raise the producer's "
                "message.max.bytes (set_property), and the topic's "
                "max.message.bytes, or write smaller records"
            )
        if code in (
            KafkaError._FENCED,
            KafkaError.PRODUCER_FENCED,
            KafkaError.INVALID_PRODUCER_EPOCH,
            KafkaError.INVALID_PRODUCER_ID_MAPPING,
            KafkaError.INVALID_TXN_STATE,
        ):
            return DeliveryError(
                "a Kafka transaction of this sink was taken from it "
                f"({error.str().rstrip('.')}): another job writes with the same "
                "transactional id prefix, which must be different for "
                "each sink, or the transaction was open for longer than "
                "transaction.timeout.ms"
            )
        if is_refusal(error) and code != KafkaError._FATAL:
            return refusal(error, self._servers, place)
        if code == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            return ProgramError(
                f"Kafka at {self._servers} does not let this user write in transactions: give "
                "it the rights Write and Describe on "
                "transactional ids with the sink's prefix"
            )
        return DeliveryError(
            f"Kafka at {self._servers} did not take the "
            f"messages{f' of {place}' if place else ''}: {error.str().rstrip('.')}"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} for {self._servers}>"


class TransactionalProducer(KafkaProducer):
    """A producer for one transaction."""

    def __init__(self, settings: Mapping[str, Any], transactional_id: str, clock: Clock) -> None:
        self.transactional_id = transactional_id
        self._id: ProducerId | None = None
        super().__init__(
            {
                **settings,
                "transactional.id": transactional_id,
                "statistics.interval.ms": STATISTICS_MS,
                "stats_cb": self._hear_statistics,
            },
            clock,
        )

    def initialize(
        self, patience_s: float, is_given_up: Callable[[], bool] = lambda: False
    ) -> None:
        """Aborts what was open under the id, and learns this producer's number. It blocks, until it
        is given up."""
        deadline = self._clock.monotonic() + patience_s
        while not is_given_up():
            try:
                self._producer.init_transactions(WAIT_S * 10)
                break
            except self._kafka_exception as error:
                failure = error.args[0]
                self.poll()
                if not failure.retriable() or self._clock.monotonic() > deadline:
                    raise self._explained(failure, None) from None
        while self._id is None and not is_given_up():
            self.poll(WAIT_S)
            if self._clock.monotonic() > deadline:
                raise DeliveryError(
                    "librdkafka does not tell the producer id of transaction "
                    f"{self.transactional_id!r}"
                )

    @property
    def producer_id(self) -> ProducerId:
        assert self._id is not None
        return self._id

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def commit(self, patience_s: float) -> None:
        """Raises DeliveryError or the like if it is not certain that the transaction was
        committed."""
        self._call(lambda: self._producer.commit_transaction(patience_s))

    def abort(self, patience_s: float) -> None:
        """Drops what was written. Raises if the broker did not hear of it.

        It waits until the broker has answered what is under way: a message that comes behind the
        abort would stay open for ever, and nobody would read on behind it."""
        self._call(lambda: self._producer.abort_transaction(patience_s))

    def hear(self) -> None:
        """Takes what librdkafka has told while nothing is written: its statistics would pile up.
        What it raises is left to the next call."""
        with contextlib.suppress(FlinkpyError):
            self.poll()

    def _hear_statistics(self, statistics: str) -> None:
        if self._id is not None:
            return
        eos = json.loads(statistics).get("eos", {})
        if eos.get("producer_id", -1) >= 0:
            self._id = ProducerId(eos["producer_id"], eos["producer_epoch"])
