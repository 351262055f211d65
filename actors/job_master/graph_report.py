"""Puts together what a JobMaster tells of its job to those who watch it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo, FailureInfo, InputInfo, SubtaskInfo, VertexInfo
from flinkpy.actors.job_master.subtask_metrics import SubtaskMetrics
from flinkpy.core.clock import Clock
from flinkpy.core.ids import ExecutionVertexId
from flinkpy.core.lifecycles import JobState
from flinkpy.graph.deployment import TaskMetrics
from flinkpy.graph.job_graph import JobGraph, JobVertex
from flinkpy.scheduler.details import ExecutionSummary, FailureRecord, SchedulerDetails


class GraphReport:
    """Of one job. The scheduler's times are monotonic seconds; what is told are milliseconds since 1970."""

    def __init__(self, job_graph: JobGraph, clock: Clock) -> None:
        self._job_graph, self._clock = job_graph, clock

    def info(
        self, state: JobState, entered_ms: Mapping[JobState, int], end_ms: int | None, scheduler: SchedulerDetails,
        executions: Iterable[ExecutionSummary], metrics: Mapping[ExecutionVertexId, SubtaskMetrics],
    ) -> ExecutionGraphInfo:
        job, now_ms = self._job_graph, self._clock.time_ms()
        began_ms = now_ms - round(self._clock.monotonic() * 1000)  # when the monotonic clock was 0
        subtasks: dict[str, list[SubtaskInfo]] = {}
        for each in executions:
            subtasks.setdefault(each.attempt_id.vertex_id, []).append(_subtask(each, metrics.get(each.attempt_id.vertex), began_ms))
        return ExecutionGraphInfo(
            job.job_id, job.name, state, min(entered_ms.values()), end_ms, now_ms, dict(entered_ms), dict(job.configuration),
            tuple(_vertex(vertex, tuple(subtasks.get(vertex.id, ()))) for vertex in job.vertices),
            tuple(_failure(each, began_ms) for each in scheduler.failures), scheduler.restarts, scheduler.checkpoints)


def _vertex(vertex: JobVertex, subtasks: tuple[SubtaskInfo, ...]) -> VertexInfo:
    inputs = tuple(InputInfo(edge.data_set.producer, edge.ship_strategy, edge.data_set.partition_type.name) for edge in vertex.inputs)
    operators = tuple((operator.operator_id, operator.name) for operator in vertex.operators)
    return VertexInfo(vertex.id, vertex.name, vertex.max_parallelism, vertex.slot_sharing_group, operators, inputs, subtasks)


def _subtask(execution: ExecutionSummary, known: SubtaskMetrics | None, began_ms: int) -> SubtaskInfo:
    attempt_id = execution.attempt_id
    counted = known.metrics if known is not None else None
    if known is None or counted is None or counted.attempt_id != attempt_id:  # nothing was reported of this attempt yet
        known, counted = SubtaskMetrics(), TaskMetrics(attempt_id)
    entered_ms = {state: began_ms + round(at * 1000) for state, at in execution.entered.items()}
    return SubtaskInfo(
        attempt_id.subtask_index, attempt_id.attempt, execution.state, entered_ms, execution.location,
        counted.records_in, counted.records_out, counted.busy_ms, counted.back_pressured_ms, counted.idle_ms, known.shares)


def _failure(failure: FailureRecord, began_ms: int) -> FailureInfo:
    return FailureInfo(began_ms + round(failure.at * 1000), type(failure.error).__name__, str(failure.error), failure.subtask, failure.restarted)
