"""The metrics of the whole cluster, fetched from the inspectors of its processes when somebody
asks, and not more often than the interval says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo
from flinkpy.actors.gateways import JobOverview
from flinkpy.core.errors import FlinkpyError
from flinkpy.core.ids import ExecutionVertexId, JobId, ResourceId
from flinkpy.core.lifecycles import JOB
from flinkpy.metrics.definitions import Scope
from flinkpy.metrics.readings import ProcessReading, TaskReading
from flinkpy.metrics.samples import Sample, of_engine, of_process
from flinkpy.web.answers.metric_answers import of_cluster, of_job
from flinkpy.web.dispatcher_calls import DispatcherCalls
from flinkpy.web.inspector_calls import InspectorCalls


@dataclass(frozen=True)
class ClusterReading:
    """What the processes told. Those that did not answer are left out."""

    job_manager: ProcessReading = field(default_factory=ProcessReading)
    task_managers: Mapping[ResourceId, ProcessReading] = field(default_factory=dict)
    hosts: Mapping[ResourceId, str] = field(default_factory=dict)
    # of each subtask the latest attempt
    tasks: Mapping[tuple[JobId, ExecutionVertexId], TaskReading] = field(default_factory=dict)


@dataclass
class LatestReading:
    """The newest reading and when it was asked for, which fetchers in several threads share: what
    one has fetched, none fetches again."""

    known: tuple[float, ClusterReading] | None = None


class MetricFetcher:
    """Fetches the metrics of all processes, as Flink's class of this name does. All calls come from
    the server's event loop. ``inspectors`` None: no process can be asked."""

    def __init__(
        self,
        calls: DispatcherCalls,
        inspectors: InspectorCalls | None,
        interval_s: float,
        host: str,
        latest: LatestReading | None = None,
    ) -> None:
        self._calls = calls
        self._inspectors = inspectors
        self._interval_s = interval_s
        self._host = host
        self._latest = latest or LatestReading()
        self._under_way: asyncio.Future[ClusterReading] | None = None

    async def reading(self) -> ClusterReading:
        """At most ``interval_s`` old. All who ask meanwhile share it."""
        known = self._latest.known
        if known is not None and self._calls.clock.monotonic() - known[0] < self._interval_s:
            return known[1]
        if self._under_way is None or self._under_way.done():
            self._under_way = asyncio.ensure_future(self._fetch())
        return await asyncio.shield(self._under_way)

    async def _fetch(self) -> ClusterReading:
        asked_s, reading = self._calls.clock.monotonic(), await self._fetched()
        self._latest.known = asked_s, reading
        return reading

    async def _fetched(self) -> ClusterReading:
        inspectors = self._inspectors
        if inspectors is None:
            return ClusterReading()
        of_job_manager, told = await asyncio.gather(
            inspectors.ask(
                inspectors.job_manager, "metrics", lambda inspector: inspector.request_metrics()
            ),
            inspectors.ask_all("metrics", lambda inspector: inspector.request_metrics()),
        )
        hosts = {
            each.resource_id: each.process.host or each.host
            for each in await inspectors.task_executors()
        }
        tasks: dict[tuple[JobId, ExecutionVertexId], TaskReading] = {}
        for task in (task for reading in told.values() for task in reading.tasks):
            key = task.attempt_id.job_id, task.attempt_id.vertex
            if key not in tasks or tasks[key].attempt_id.attempt < task.attempt_id.attempt:
                tasks[key] = task
        return ClusterReading(of_job_manager, told, hosts, tasks)

    async def samples(self) -> list[Sample]:
        """All metrics of the cluster, as exporters have them."""
        reading, overview, jobs = await asyncio.gather(
            self.reading(), self._calls.cluster(), self._calls.jobs()
        )
        labels = {"host": self._host}
        found = [
            *of_engine(
                Scope.JOB_MANAGER, {**of_cluster(overview), **reading.job_manager.values}, labels
            )
        ]
        for job in await asyncio.gather(
            *[self._graph(each) for each in jobs if not JOB.is_terminal(each.state)]
        ):
            if job is not None:
                found += of_engine(
                    Scope.JOB, of_job(job), {**labels, "job_id": job.job_id, "job_name": job.name}
                )
        for resource_id, process in reading.task_managers.items():
            found += of_process(resource_id, reading.hosts.get(resource_id, ""), process)
        return found

    async def _graph(self, job: JobOverview) -> ExecutionGraphInfo | None:
        try:
            return await self._calls.execution_graph(job.job_id)
        except (
            FlinkpyError
        ):  # it has ended meanwhile, or its JobMaster does not answer: the others are told
            return None
