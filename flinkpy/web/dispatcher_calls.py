"""The Dispatcher for those who serve HTTP."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo
from flinkpy.actors.gateways import (
    ClusterOverview,
    DispatcherGateway,
    JobMetrics,
    JobOverview,
    SavepointRequest,
    SavepointStatus,
)
from flinkpy.core.clock import Clock
from flinkpy.core.ids import JobId
from flinkpy.web.shared_answers import SharedAnswers, answer_of, keep_latest


class DispatcherCalls:
    """What handlers ask. All calls come from the server's event loop.

    Those who ask for the same at the same time share an answer, see :class:`SharedAnswers`.
    """

    def __init__(self, dispatcher: DispatcherGateway, clock: Clock) -> None:
        self._dispatcher, self.clock = dispatcher, clock
        self._answers = SharedAnswers(clock)
        # for savepoints, here
        self._asked: OrderedDict[tuple[JobId, str], SavepointRequest] = OrderedDict()

    def jobs(self) -> Awaitable[list[JobOverview]]:
        return self._answers.get(("jobs",), self._dispatcher.list_jobs)

    def cluster(self) -> Awaitable[ClusterOverview]:
        return self._answers.get(("cluster",), self._dispatcher.request_cluster_overview)

    def execution_graph(self, job_id: JobId) -> Awaitable[ExecutionGraphInfo]:
        return self._answers.get(
            ("graph", job_id), lambda: self._dispatcher.request_execution_graph(job_id)
        )

    def metrics(self, job_id: JobId) -> Awaitable[JobMetrics]:
        return self._answers.get(
            ("metrics", job_id), lambda: self._dispatcher.request_job_metrics(job_id)
        )

    async def cancel(self, job_id: JobId) -> None:
        await answer_of(self._dispatcher.cancel_job(job_id))
        self._answers.forget()

    async def savepoint(self, job_id: JobId, request: SavepointRequest) -> SavepointStatus:
        """Asks for it, or how it stands."""
        self._asked[job_id, request.trigger_id] = request
        keep_latest(self._asked)
        return await answer_of(self._dispatcher.request_savepoint(job_id, request, 0.0))

    def asked_savepoint(self, job_id: JobId, trigger_id: str) -> SavepointRequest | None:
        """The request under that id, if it came this way."""
        return self._asked.get((job_id, trigger_id))
