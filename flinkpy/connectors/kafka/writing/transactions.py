"""The transactions of one subtask: each has a producer of its own, which is made ready in the
background while the one before is written.

A producer is used once. With each one the broker counts up the epoch of its transactional id, so a
committable can never end another transaction than its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from flinkpy.connectors.kafka.writing.producers import KafkaProducer, TransactionalProducer
from flinkpy.connectors.kafka.writing.transaction_client import (
    COMMIT_S,
    PATIENCE_S,
    TransactionClient,
)
from flinkpy.connectors.kafka.writing.transactional_ids import TransactionalIds
from flinkpy.connectors.kafka.writing.wire import ProducerId
from flinkpy.core.clock import Clock
from flinkpy.core.errors import FlinkpyError

ABORT_S = 5.0


@dataclass(frozen=True)
class KafkaCommittable:
    """A prepared transaction: all messages are with the broker, and only their commit is missing.
    ``live`` is its producer, as long as the committable has not left its process."""

    transactional_id: str
    producer_id: ProducerId
    live: Prepared | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return KafkaCommittable, (self.transactional_id, self.producer_id)


class Prepared:
    """A prepared transaction in the process of its producer."""

    def __init__(self, producer: TransactionalProducer, ids: TransactionalIds) -> None:
        self._producer: TransactionalProducer | None = producer
        self._id, self._ids = producer.transactional_id, ids

    def commit(self) -> bool:
        """False if it is not certain that the transaction was committed."""
        producer, self._producer = self._producer, None
        if producer is None:
            return False
        try:
            producer.commit(COMMIT_S)
        except FlinkpyError:
            return False
        finally:
            release(producer)
        return True

    def was_committed(self) -> None:
        self._ids.commit(self._id)

    @property
    def waits(self) -> bool:
        """Whether nobody has tried to commit it."""
        return self._producer is not None

    def hear(self) -> None:
        if self._producer is not None:
            self._producer.hear()


class Transactions:
    """The producers of one subtask. ``ids`` say under which transactional id the next one
    writes."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        ids: TransactionalIds,
        clock: Clock,
        on_ready: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._ids = ids
        self._clock = clock
        self._on_ready = on_ready
        self._next: _MadeReady | None = None
        self._prepared: list[Prepared] = []

    def make_ready(self) -> None:
        """Begins to make the next producer, if it was not begun and an id is free. When it is
        ready, its thread calls ``on_ready``."""
        if self._next is None and self._ids.has_free:
            self._next = self._begin_to_make()

    @property
    def is_awaited(self) -> bool:
        """Whether ``begin`` would wait for the next producer."""
        return self._next is not None and not self._next.is_ready

    def begin(self) -> TransactionalProducer:
        """The producer of a new transaction; waits until it is ready. Raises
        TooManyTransactionsError if there is no id for it."""
        ready, self._next = self._next or self._begin_to_make(), None
        producer = ready.wait()
        producer.begin()
        self.make_ready()
        return producer

    def _begin_to_make(self) -> _MadeReady:
        return _MadeReady(
            TransactionalProducer(self._settings, self._ids.take(), self._clock),
            self._check_still_own,
            self._on_ready,
        )

    def _check_still_own(self) -> None:
        """Raises TakenOverError if the next attempt has begun its turn."""
        own = self._ids.own
        if own is None:
            return
        client = TransactionClient(self._settings, self._clock)
        try:
            client.check_still_own(*own)
        finally:
            client.close()

    def prepare(self, producer: TransactionalProducer) -> KafkaCommittable:
        """The transaction is whole, and part of the checkpoint that began last."""
        self._ids.prepare(producer.transactional_id)
        prepared = Prepared(producer, self._ids)
        self._prepared = [*(each for each in self._prepared if each.waits), prepared]
        return KafkaCommittable(producer.transactional_id, producer.producer_id, prepared)

    def hear(self) -> None:
        """Takes what librdkafka tells of the producers that wait, for their turn or for their
        commit."""
        if self._next is not None:
            self._next.hear()
        for each in self._prepared:
            each.hear()

    def abort(self, producer: TransactionalProducer) -> None:
        """Nobody will ask for it. Nobody waits either: if the broker does not hear of it, the next
        attempt aborts."""

        def abort() -> None:
            with contextlib.suppress(FlinkpyError):
                producer.abort(ABORT_S)
            producer.release()

        threading.Thread(
            target=abort, name=f"kafka abort {producer.transactional_id}", daemon=True
        ).start()

    def close(self) -> None:
        """Prepared transactions stay as they are: a checkpoint may have them."""
        ready, self._next = self._next, None
        if ready is not None:
            ready.discard()


class _MadeReady:
    """A producer that is initialized on a thread of its own. ``check`` raises if it must not
    write."""

    def __init__(
        self,
        producer: TransactionalProducer,
        check: Callable[[], None],
        on_ready: Callable[[], None],
    ) -> None:
        self._producer = producer
        self._check = check
        self._on_ready = on_ready
        self.is_ready = False  # or it has failed, which wait() says
        self._error: BaseException | None = None
        self._is_discarded = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(
            target=self._run, name=f"kafka transaction {producer.transactional_id}", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        try:
            self._producer.initialize(PATIENCE_S, lambda: self._is_discarded)
            if not self._is_discarded:
                self._check()
        except BaseException as error:
            self._error = error
        with self._lock:
            self.is_ready = True
            if self._is_discarded:
                self._producer.release()
                return
        self._on_ready()

    def wait(self) -> TransactionalProducer:
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._producer

    def hear(self) -> None:
        if self.is_ready:
            self._producer.hear()

    def discard(self) -> None:
        with self._lock:
            self._is_discarded = True
            if self.is_ready:
                release(self._producer)


def release(producer: KafkaProducer) -> None:
    """Frees librdkafka's threads and connections, which takes it a moment: on a thread of its
    own."""
    threading.Thread(target=producer.release, name="kafka release", daemon=True).start()
