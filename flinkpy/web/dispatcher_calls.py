"""The Dispatcher for those who serve HTTP: its answers awaited in an event loop, and those that many ask for kept for a moment."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo
from flinkpy.actors.gateways import ClusterOverview, DispatcherGateway, JobMetrics, JobOverview, SavepointRequest, SavepointStatus
from flinkpy.core.clock import Clock
from flinkpy.core.futures import Future
from flinkpy.core.ids import JobId

T = TypeVar("T")

FRESH_S = 0.5  # how long an answer is good enough for the next one who asks
KEPT = 200  # answers, and requests for savepoints


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


class DispatcherCalls:
    """What handlers ask. All calls come from the server's event loop.

    Answers are shared: while one is on its way, and for ``FRESH_S`` behind that, all who ask for the same get it. So a
    page that is open in many browsers costs the job no more than one.
    """

    def __init__(self, dispatcher: DispatcherGateway, clock: Clock) -> None:
        self._dispatcher, self.clock = dispatcher, clock
        self._answers: OrderedDict[tuple[Any, ...], tuple[float, asyncio.Future[Any]]] = OrderedDict()
        self._asked: OrderedDict[tuple[JobId, str], SavepointRequest] = OrderedDict()  # for savepoints, here

    def jobs(self) -> Awaitable[list[JobOverview]]:
        return self._shared(("jobs",), self._dispatcher.list_jobs)

    def cluster(self) -> Awaitable[ClusterOverview]:
        return self._shared(("cluster",), self._dispatcher.request_cluster_overview)

    def execution_graph(self, job_id: JobId) -> Awaitable[ExecutionGraphInfo]:
        return self._shared(("graph", job_id), lambda: self._dispatcher.request_execution_graph(job_id))

    def metrics(self, job_id: JobId) -> Awaitable[JobMetrics]:
        return self._shared(("metrics", job_id), lambda: self._dispatcher.request_job_metrics(job_id))

    async def cancel(self, job_id: JobId) -> None:
        await answer_of(self._dispatcher.cancel_job(job_id))
        self._answers.clear()

    async def savepoint(self, job_id: JobId, request: SavepointRequest) -> SavepointStatus:
        """Asks for it, or how it stands."""
        self._asked[job_id, request.trigger_id] = request
        _keep_latest(self._asked)
        return await answer_of(self._dispatcher.request_savepoint(job_id, request, 0.0))

    def asked_savepoint(self, job_id: JobId, trigger_id: str) -> SavepointRequest | None:
        """The request under that id, if it came this way."""
        return self._asked.get((job_id, trigger_id))

    def _shared(self, key: tuple[Any, ...], ask: Callable[[], Future[T]]) -> Awaitable[T]:
        now = self.clock.monotonic()
        known = self._answers.get(key)
        if known is not None:
            asked_at, answer = known
            if not answer.done() or (now - asked_at < FRESH_S and answer.exception() is None):
                return asyncio.shield(answer)
        made: asyncio.Future[T] = asyncio.ensure_future(answer_of(ask()))
        made.add_done_callback(lambda done: done.cancelled() or done.exception())  # whoever asked may be gone
        self._answers[key] = (now, made)
        self._answers.move_to_end(key)
        _keep_latest(self._answers)
        return asyncio.shield(made)


def _keep_latest(remembered: OrderedDict[Any, Any]) -> None:
    while len(remembered) > KEPT:
        remembered.popitem(last=False)
