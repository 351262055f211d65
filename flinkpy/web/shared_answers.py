"""Answers of the cluster for those who serve HTTP: awaited in an event loop, and kept for a moment
for those who ask the same."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from flinkpy.core.clock import Clock
from flinkpy.core.futures import Future

T = TypeVar("T")

FRESH_S = 0.5  # how long an answer is good enough for the next one who asks
KEPT = 200


async def answer_of(future: Future[T]) -> T:
    """Awaits a future of an endpoint. Its callbacks run in other threads."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(source: Future[T]) -> None:
        if answer.done():  # nobody waits any more
            return
        if source.error is not None:
            answer.set_exception(source.error)
        else:
            answer.set_result(source.result(0))

    def relay(source: Future[T]) -> None:
        try:
            loop.call_soon_threadsafe(settle, source)
        except RuntimeError:  # the server has stopped meanwhile
            pass

    future.add_done_callback(relay)
    return await answer


class SharedAnswers:
    """While an answer is on its way, and for ``fresh_s`` after it was asked for, all who ask for
    the same get it. So a page that is open in many browsers costs the cluster no more than one. All
    calls come from one event loop."""

    def __init__(self, clock: Clock, fresh_s: float = FRESH_S) -> None:
        self._clock, self._fresh_s = clock, fresh_s
        self._answers: OrderedDict[tuple[Any, ...], tuple[float, asyncio.Future[Any]]] = (
            OrderedDict()
        )

    def get(self, key: tuple[Any, ...], ask: Callable[[], Future[T]]) -> Awaitable[T]:
        now = self._clock.monotonic()
        known = self._answers.get(key)
        if known is not None:
            asked_at, answer = known
            if not answer.done() or (now - asked_at < self._fresh_s and answer.exception() is None):
                return asyncio.shield(answer)
        made: asyncio.Future[T] = asyncio.ensure_future(answer_of(ask()))
        # whoever asked may be gone
        made.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._answers[key] = (now, made)
        self._answers.move_to_end(key)
        keep_latest(self._answers)
        return asyncio.shield(made)

    def forget(self) -> None:
        self._answers.clear()


def keep_latest(remembered: OrderedDict[Any, Any]) -> None:
    while len(remembered) > KEPT:
        remembered.popitem(last=False)
