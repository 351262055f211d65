"""Courier: delivers something over a network that loses, delays and doubles messages, one batch at
a time.

A batch is collected when it is sent, so whatever becomes due while one is under way goes with the
next: a busy courier sends large batches, an idle one sends at once, and batches arrive in order. A
batch that failed is collected anew after a pause. Its first copy may have arrived nevertheless, so
the receiver must accept a message twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from flinkpy.actors.rpc.service import Cancellable
from flinkpy.core.futures import Future

B = TypeVar("B")
A = TypeVar("A")

Schedule = Callable[[float, Callable[[], None]], Cancellable]
"""Runs an action after the given seconds, in the thread that the courier belongs to."""


class Courier(Generic[B, A]):
    """``collect()`` returns what is due now, or None; ``send(batch)`` asks; ``on_answer(batch,
    answer)`` or ``on_failure(error)`` is called when the call is answered or has failed."""

    def __init__(
        self,
        schedule: Schedule,
        retry_s: float,
        collect: Callable[[], B | None],
        send: Callable[[B], Future[A]],
        on_answer: Callable[[B, A], None],
        on_failure: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self._schedule, self._retry_s = schedule, retry_s
        self._collect = collect
        self._send = send
        self._on_answer = on_answer
        self._on_failure = on_failure
        self._under_way = False
        self._closed = False

    def kick(self) -> None:
        """Something may be due: sends it now, or after the batch that is under way."""
        if self._under_way or self._closed:
            return
        batch = self._collect()
        if batch is None:
            return
        self._under_way = True
        self._send(batch).add_done_callback(lambda done: self._answered(batch, done))

    def close(self) -> None:
        """Sends nothing more and ignores late answers."""
        self._closed = True

    def _answered(self, batch: B, done: Future[A]) -> None:
        if self._closed:
            return
        if done.error is None:
            self._under_way = False
            self._on_answer(batch, done.result(timeout=0))
            self.kick()
            return
        self._on_failure(done.error)
        if not self._closed:
            self._schedule(self._retry_s, self._again)

    def _again(self) -> None:
        self._under_way = False
        self.kick()


T = TypeVar("T")


class EventSender(Generic[T]):
    """Sends numbered events so that the other side sees each once, in order, whatever the network
    does (see :class:`EventReceiver`)."""

    def __init__(
        self, schedule: Schedule, retry_s: float, send: Callable[[int, tuple[T, ...]], Future[None]]
    ) -> None:
        self._first = 0
        self._waiting: list[T] = []
        self._courier: Courier[tuple[T, ...], None] = Courier(
            schedule,
            retry_s,
            lambda: tuple(self._waiting) or None,
            lambda events: send(self._first, events),
            self._arrived,
        )

    def send(self, event: T) -> None:
        self._waiting.append(event)
        self._courier.kick()

    def close(self) -> None:
        self._courier.close()

    def _arrived(self, events: tuple[T, ...], answer: None) -> None:
        self._first += len(events)
        del self._waiting[: len(events)]


class EventReceiver(Generic[T]):
    """Returns each event once.

    >>> receiver = EventReceiver(); receiver.fresh(0, ("a", "b")), receiver.fresh(0, ("a", "b")), receiver.fresh(1, ("b", "c"))
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
