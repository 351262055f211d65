"""What a JobMaster can tell of its job: counters of its tasks, merged accumulators, overview and details."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from flinkpy.actors.gateways import JobDetails, JobOverview, JobResult, VertexDetails
from flinkpy.core.ids import ExecutionAttemptId, ExecutionVertexId, JobVertexId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.graph.deployment import TaskExecutionState, TaskMetrics
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.details import SchedulerDetails


def merge_accumulators(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Numbers add up, lists are joined, sets united, objects with ``merge(other)`` merged; of anything else the last one stays.

    >>> merge_accumulators({"n": 1, "seen": ["a"]}, {"n": 2, "seen": ["b"]})
    {'n': 3, 'seen': ['a', 'b']}
    """
    merged = dict(one)
    for name, value in other.items():
        merged[name] = _merge(merged[name], value) if name in merged else value
    return merged


def _merge(one: Any, other: Any) -> Any:
    def both(*kinds: type[Any]) -> bool:
        return isinstance(one, kinds) and isinstance(other, kinds)

    if both(int, float, complex) or both(list) or both(tuple):
        return one + other
    if both(set, frozenset):
        return one | other
    if not callable(getattr(one, "merge", None)):
        return other
    merged = copy.deepcopy(one)  # what was reported stays as it is: the result may be asked for again
    returned = merged.merge(other)
    return merged if returned is None else returned


class JobStatusBook:
    """Written by the JobMaster as reports come in. Of each subtask the latest attempt counts."""

    def __init__(self, job_graph: JobGraph, start_ms: int) -> None:
        self._job_graph, self._start_ms = job_graph, start_ms
        self._end_ms: int | None = None
        self._metrics: dict[ExecutionVertexId, TaskMetrics] = {}
        self._counted_ms: dict[JobVertexId, int] = {}
        self._accumulators: dict[ExecutionVertexId, dict[str, Any]] = {}

    def metrics(self, metrics: Iterable[TaskMetrics], now_ms: int) -> None:
        """Counters only grow, so a late report changes nothing."""
        for one in metrics:
            known = self._metrics.get(one.attempt_id.vertex)
            if known is None or _age(one) >= _age(known):
                self._metrics[one.attempt_id.vertex] = one
                self._counted_ms[one.attempt_id.vertex.vertex_id] = now_ms

    def task_reported(self, report: TaskExecutionState, now_ms: int) -> None:
        if report.accumulators:
            self._accumulators[report.attempt_id.vertex] = report.accumulators
        if report.metrics is not None:
            self.metrics((report.metrics,), now_ms)

    def ended(self, now_ms: int) -> None:
        self._end_ms = now_ms

    # -- telling -----------------------------------------------------------------------------------------------------------

    def result(self, state: JobState, error: BaseException | None) -> JobResult:
        assert self._end_ms is not None
        merged: dict[str, Any] = {}
        for accumulators in self._accumulators.values():
            merged = merge_accumulators(merged, accumulators)
        return JobResult(self._job_graph.job_id, self._job_graph.name, state, self._end_ms - self._start_ms, error, merged)

    def details(self, scheduler: SchedulerDetails, state: JobState, error: BaseException | None) -> JobDetails:
        tasks: dict[ExecutionState, int] = {}
        for vertex in scheduler.vertices:
            for task_state, count in vertex.states.items():
                tasks[task_state] = tasks.get(task_state, 0) + count
        overview = JobOverview(self._job_graph.job_id, self._job_graph.name, state, self._start_ms, self._end_ms, tasks)
        read, written = self._sums()
        vertices = tuple(
            VertexDetails(each.vertex_id, each.name, each.parallelism, each.states, read.get(each.vertex_id, 0), written.get(each.vertex_id, 0),
                          self._counted_ms.get(each.vertex_id, 0))
            for each in scheduler.vertices
        )
        return JobDetails(overview, vertices, error)

    def _sums(self) -> tuple[dict[JobVertexId, int], dict[JobVertexId, int]]:
        read: dict[JobVertexId, int] = {}
        written: dict[JobVertexId, int] = {}
        for vertex, metrics in self._metrics.items():
            read[vertex.vertex_id] = read.get(vertex.vertex_id, 0) + metrics.records_in
            written[vertex.vertex_id] = written.get(vertex.vertex_id, 0) + metrics.records_out
        return read, written


def _age(metrics: TaskMetrics) -> tuple[int, int]:
    attempt_id: ExecutionAttemptId = metrics.attempt_id
    return attempt_id.attempt, metrics.records_in + metrics.records_out + metrics.busy_ms + metrics.back_pressured_ms + metrics.idle_ms
