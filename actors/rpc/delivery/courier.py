"""Courier: delivers something over a network that loses, delays and doubles messages, one batch at
a time.

A batch is collected when it is sent, so whatever becomes due while one is under way goes with the
next: a busy courier sends large batches, an idle one sends at once, and batches arrive in order. A
batch that failed is collected anew after a pause. Its first copy may have arrived nevertheless, so
the receiver must accept a message twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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


K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True)
class NumberedEvents(Generic[K, T]):
    """Events for one receiver, of which the first has the number ``first``."""

    receiver: K
    first: int
    events: tuple[T, ...]


class EventOutbox(Generic[K, T]):
    """Events that have not arrived, for many receivers, which a courier carries together. Each
    receiver sees each of its events once, in order, whatever the network does (see
    :class:`EventReceiver`).

    >>> outbox = EventOutbox()
    >>> outbox.add("one", "a"); outbox.add("other", "b"); batch = outbox.waiting()
    >>> outbox.add("one", "c"); outbox.arrived(batch); outbox.waiting()
    (NumberedEvents(receiver='one', first=1, events=('c',)),)
    """

    def __init__(self) -> None:
        self._first: dict[K, int] = {}  # the number of the first that has not arrived
        self._waiting: dict[K, list[T]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, receiver: K, event: T) -> None:
        self._waiting.setdefault(receiver, []).append(event)

    def waiting(self) -> tuple[NumberedEvents[K, T], ...]:
        return tuple(
            NumberedEvents(receiver, self._first.get(receiver, 0), tuple(events))
            for receiver, events in self._waiting.items()
        )

    def arrived(self, batch: Iterable[NumberedEvents[K, T]]) -> None:
        """The receivers have these, which were waiting."""
        for each in batch:
            events = self._waiting.get(each.receiver)
            if events is None:
                continue  # was forgotten
            del events[: len(each.events)]
            if not events:
                del self._waiting[each.receiver]
            self._first[each.receiver] = each.first + len(each.events)

    def forget(self, receiver: K) -> None:
        """There will be nothing more for it."""
        self._first.pop(receiver, None)
        self._waiting.pop(receiver, None)


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
