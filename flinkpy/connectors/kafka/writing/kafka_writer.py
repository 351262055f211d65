"""Writes the records of one subtask into Kafka: plainly, or in a transaction for each
checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flinkpy.connectors.kafka.writing.messages import MessageMaker
from flinkpy.connectors.kafka.writing.producers import KafkaProducer, TransactionalProducer
from flinkpy.connectors.kafka.writing.record_serialization import KafkaRecordSerializationSchema
from flinkpy.connectors.kafka.writing.transactional_ids import TransactionalIds
from flinkpy.connectors.kafka.writing.transactions import KafkaCommittable, Transactions, release
from flinkpy.core.elements import Batch
from flinkpy.core.errors import FlinkpyError
from flinkpy.operators.context import OperatorContext, TimerHandle
from flinkpy.operators.sinks.sink_port import SinkWriter
from flinkpy.state.api import ListState

# how often librdkafka is heard while somebody waits for it, and otherwise
SOON_S = 0.002
LOOK_S = 0.2


class KafkaWriter(SinkWriter):
    """Writes with one producer. If it does not ``flushes``, only the end of the input waits for the
    broker."""

    _hears_on = False  # whether librdkafka tells something even if nothing is written

    def __init__(
        self,
        schema: KafkaRecordSerializationSchema,
        settings: Mapping[str, Any],
        context: OperatorContext,
        *,
        with_event_time: bool = True,
        flushes: bool = True,
    ) -> None:
        self._settings = settings
        self._clock = context.clock
        self._timers = context.timers
        self._flushes = flushes
        self._maker = MessageMaker(
            schema,
            context,
            lambda topic: self._writing().partitions_of(topic),
            with_event_time=with_event_time,
        )
        self._most = int(settings["queue.buffering.max.messages"]) // 2
        self._is_full = self._is_flushing = False
        self._failure: FlinkpyError | None = None
        self._timer: TimerHandle | None = None
        self._on_available: Callable[[], None] | None = None
        self._producer: KafkaProducer | None = None

    def _writing(self) -> KafkaProducer:
        """The producer that writes now."""
        if self._producer is None:
            self._producer = self._begin()
        return self._producer

    def _begin(self) -> KafkaProducer:
        return KafkaProducer(self._settings, self._clock)

    def write_batch(self, batch: Batch) -> None:
        self._raise_failure()
        messages = self._maker.messages(batch)
        producer = self._writing()
        producer.send(messages)
        self._is_full = producer.queued > self._most
        if self._is_full:
            self._look_soon()
        else:
            self._look_later()

    @property
    def available(self) -> bool:
        return self._failure is not None or not (self._is_full or self._is_flushing)

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._on_available = on_available

    def _tell_available(self) -> None:
        if self.available and self._on_available is not None:
            self._on_available()

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = self._timers.call_later(
                SOON_S if self._is_full or self._is_flushing else LOOK_S, self._look
            )

    def _look_soon(self) -> None:
        """Somebody waits."""
        self._cancel_timer()
        self._look_later()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        """Messages are delivered, or fail, while no batch comes. A failure is raised by the next
        call."""
        self._timer = None
        queued = 0
        try:
            queued = self._hear()
        except FlinkpyError as error:
            self._failure = error
        waited = self._is_full or self._is_flushing
        self._is_full = self._is_full and queued > self._most // 2
        self._is_flushing = self._is_flushing and queued > 0
        if self._failure is None and (queued or self._hears_on):
            self._look_later()
        if self._failure is not None or (waited and self.available):
            self._tell_available()

    def _hear(self) -> int:
        """Takes librdkafka's delivery reports, and returns how many messages still wait for the
        broker."""
        if self._producer is None:
            return 0
        self._producer.poll()
        return self._producer.queued

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def flush(self) -> None:
        if self._flushes:
            self._begin_to_flush()

    def finish(self) -> None:
        self._begin_to_flush()

    def _begin_to_flush(self) -> None:
        """``flushed`` says when it is done."""
        self._raise_failure()
        if self._producer is not None and not self._producer.hurry():
            self._is_flushing = True
            self._look_soon()

    @property
    def flushed(self) -> bool:
        self._raise_failure()
        return not self._is_flushing

    def close(self) -> None:
        self._cancel_timer()
        producer, self._producer = self._producer, None
        if producer is not None:
            self._give_up(producer)

    def _give_up(self, producer: KafkaProducer) -> None:
        release(producer)


class TransactionalKafkaWriter(KafkaWriter):
    """Writes in transactions; each checkpoint prepares one. ``unfinished`` is a union list: all
    subtasks of the next run see what all of this one may have to commit."""

    _hears_on = True

    def __init__(
        self,
        schema: KafkaRecordSerializationSchema,
        settings: Mapping[str, Any],
        context: OperatorContext,
        ids: TransactionalIds,
        unfinished: ListState[Any],
        *,
        with_event_time: bool = True,
    ) -> None:
        super().__init__(schema, settings, context, with_event_time=with_event_time)
        self._ids, self._unfinished = ids, unfinished
        self._transactions = Transactions(
            settings, ids, context.clock, lambda: context.run_in_task(self._tell_available)
        )
        self._transactions.make_ready()
        self._look_later()

    @property
    def available(self) -> bool:
        return super().available and (
            self._failure is not None
            or self._producer is not None
            or not self._transactions.is_awaited
        )

    def _begin(self) -> KafkaProducer:
        return self._transactions.begin()

    def _hear(self) -> int:
        self._transactions.hear()
        return super()._hear()

    def prepare_commit(self) -> Sequence[KafkaCommittable]:
        self._ids.checkpoint_begins()
        self._transactions.make_ready()
        producer, self._producer = self._producer, None
        if producer is None:
            return ()
        assert isinstance(producer, TransactionalProducer)
        return (self._transactions.prepare(producer),)

    def snapshot_state(self, checkpoint_id: int) -> Sequence[Any]:
        self._unfinished.update([self._ids.unfinished()])
        return ()

    def close(self) -> None:
        super().close()
        self._transactions.close()

    def _give_up(self, producer: KafkaProducer) -> None:
        assert isinstance(producer, TransactionalProducer)
        self._transactions.abort(producer)
