"""Courier: delivers something over a network that loses, delays and doubles messages, one batch at
a time.

A batch is collected when it is sent, so whatever becomes due while one is under way goes with the
next: a busy courier sends large batches, an idle one sends at once, and batches arrive in order. A
batch that failed is collected anew after a pause. Its first copy may have arrived nevertheless, so
the receiver must accept a message twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from flinkpy.actors.rpc.service import Timers
from flinkpy.core.futures import Future

B = TypeVar("B")
A = TypeVar("A")


class Delivery(Protocol[B, A]):
    """What a courier carries, and to whom."""

    def due(self) -> B | None:
        """What is due now, if anything is."""
        ...

    def send(self, batch: B) -> Future[A]:
        """Asks the receiver to take it."""
        ...

    def answered(self, batch: B, answer: A) -> None:
        """The receiver has it."""
        ...

    def failed(self, error: BaseException) -> None:
        """The call failed, and will be repeated unless this closes the courier."""
        ...


class Courier(Generic[B, A]):
    """Sends what is due of one delivery. ``timers`` are those of the thread that both belong to."""

    def __init__(self, timers: Timers, retry_s: float, delivery: Delivery[B, A]) -> None:
        self._timers = timers
        self._retry_s = retry_s
        self._delivery = delivery
        self._under_way = False
        self._closed = False

    def kick(self) -> None:
        """Something may be due: sends it now, or after the batch that is under way."""
        if self._under_way or self._closed:
            return
        batch = self._delivery.due()
        if batch is None:
            return
        self._under_way = True
        self._delivery.send(batch).add_done_callback(lambda done: self._answered(batch, done))

    def close(self) -> None:
        """Sends nothing more and ignores late answers."""
        self._closed = True

    def _answered(self, batch: B, done: Future[A]) -> None:
        if self._closed:
            return
        if done.error is None:
            self._under_way = False
            self._delivery.answered(batch, done.result(timeout=0))
            self.kick()
            return
        self._delivery.failed(done.error)
        if not self._closed:
            self._timers.schedule(self._retry_s, self._again)

    def _again(self) -> None:
        self._under_way = False
        self.kick()


T = TypeVar("T")


class EventSender(Generic[T]):
    """Sends numbered events so that the other side sees each once, in order, whatever the network
    does (see :class:`EventReceiver`)."""

    def __init__(
        self, timers: Timers, retry_s: float, send: Callable[[int, tuple[T, ...]], Future[None]]
    ) -> None:
        self._waiting = _WaitingEvents(send)
        self._courier: Courier[tuple[T, ...], None] = Courier(timers, retry_s, self._waiting)

    def send(self, event: T) -> None:
        self._waiting.events.append(event)
        self._courier.kick()

    def close(self) -> None:
        self._courier.close()


class _WaitingEvents(Generic[T]):
    """Those that have not arrived, of which the first has the number ``first``."""

    def __init__(self, send: Callable[[int, tuple[T, ...]], Future[None]]) -> None:
        self._send = send
        self._first = 0
        self.events: list[T] = []

    def due(self) -> tuple[T, ...] | None:
        return tuple(self.events) or None

    def send(self, batch: tuple[T, ...]) -> Future[None]:
        return self._send(self._first, batch)

    def answered(self, batch: tuple[T, ...], answer: None) -> None:
        self._first += len(batch)
        del self.events[: len(batch)]

    def failed(self, error: BaseException) -> None:
        """It is repeated."""


class EventReceiver(Generic[T]):
    """Returns each event once.

    >>> receiver = EventReceiver()
    >>> receiver.fresh(0, ("a", "b")), receiver.fresh(0, ("a", "b")), receiver.fresh(1, ("b", "c"))
    (('a', 'b'), (), ('c',))
    """

    def __init__(self) -> None:
        self._next = 0

    def fresh(self, first: int, events: tuple[T, ...]) -> tuple[T, ...]:
        """Returns the events not seen before. There are no gaps: the sender sends the next batch
        only when the last one was answered."""
        new = events[max(0, self._next - first) :]
        self._next = max(self._next, first + len(events))
        return new
