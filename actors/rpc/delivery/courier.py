"""Courier: gets something across a network that loses, delays and doubles, one batch at a time.

What is due is collected when a batch leaves, so whatever gathers while one is under way goes with the next: a busy line sends large batches, an
idle one sends at once, and batches arrive in order. A batch that failed is collected anew after a pause; its owner must not mind that the first
copy may have arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.core.futures import Future

B = TypeVar("B")
A = TypeVar("A")


class Courier(Generic[B, A]):
    """``collect`` gives what is due now or None, ``send`` asks, ``on_answer(batch, answer)`` and ``on_failure(error)`` hear how it went."""

    def __init__(
        self, endpoint: RpcEndpoint, retry_s: float, collect: Callable[[], B | None], send: Callable[[B], Future[A]],
        on_answer: Callable[[B, A], None], on_failure: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self._endpoint, self._retry_s = endpoint, retry_s
        self._collect, self._send, self._on_answer, self._on_failure = collect, send, on_answer, on_failure
        self._under_way = False
        self._closed = False

    def kick(self) -> None:
        """Something may be due. Sends it, unless a batch is under way: then it goes next."""
        if self._under_way or self._closed:
            return
        batch = self._collect()
        if batch is None:
            return
        self._under_way = True
        self._send(batch).add_done_callback(lambda done: self._answered(batch, done))

    def close(self) -> None:
        """Nothing leaves any more, and late answers are ignored."""
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
            self._endpoint.schedule_run_async(self._retry_s, self._again)

    def _again(self) -> None:
        self._under_way = False
        self.kick()


T = TypeVar("T")


class EventSender(Generic[T]):
    """Sends numbered events so that the other side sees each once, in order, whatever the network does (see :class:`EventReceiver`)."""

    def __init__(self, endpoint: RpcEndpoint, retry_s: float, send: Callable[[int, tuple[T, ...]], Future[None]]) -> None:
        self._first = 0
        self._waiting: list[T] = []
        self._courier: Courier[tuple[T, ...], None] = Courier(
            endpoint, retry_s, lambda: tuple(self._waiting) or None, lambda events: send(self._first, events), self._arrived,
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
    """Skips what it has seen.

    >>> receiver = EventReceiver(); receiver.fresh(0, ("a", "b")), receiver.fresh(0, ("a", "b")), receiver.fresh(1, ("b", "c"))
    (('a', 'b'), (), ('c',))
    """

    def __init__(self) -> None:
        self._next = 0

    def fresh(self, first: int, events: tuple[T, ...]) -> tuple[T, ...]:
        """The events not seen before. A gap cannot be: the sender goes on only when the last batch was answered."""
        new = events[max(0, self._next - first):]
        self._next = max(self._next, first + len(events))
        return new
