"""Puts together what a JobMaster tells of its job to those who watch it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from flinkpy.actors.execution_graph_info import (
    ExecutionGraphInfo,
    FailureInfo,
    InputInfo,
    SchedulerEventInfo,
    SubtaskInfo,
    TimeShares,
    VertexInfo,
)
from flinkpy.actors.job_master.subtask_metrics import SubtaskMetrics
from flinkpy.core.clock import Clock
from flinkpy.core.ids import ExecutionVertexId
from flinkpy.core.lifecycles import JobState
from flinkpy.core.secrets.hidden_secrets import without_secrets
from flinkpy.graph.deployment import TaskMetrics
from flinkpy.graph.job_graph import JobGraph, JobVertex
from flinkpy.scheduler.scheduler_report import ExecutionSummary, FailureRecord, SchedulerReport


class GraphReport:
    """Reports on one job. The scheduler's times are monotonic seconds; those of the report are
    milliseconds since 1970."""

    def __init__(self, job_graph: JobGraph, clock: Clock) -> None:
        self._job_graph, self._clock = job_graph, clock

    def info(
        self,
        state: JobState,
        entered_ms: Mapping[JobState, int],
        end_ms: int | None,
        scheduler: SchedulerReport,
        metrics: Mapping[ExecutionVertexId, SubtaskMetrics],
    ) -> ExecutionGraphInfo:
        job, now_ms = self._job_graph, self._clock.time_ms()
        told_ms = partial(wall_ms, now_ms, self._clock.monotonic())
        subtasks: dict[str, list[SubtaskInfo]] = {}
        for attempts in scheduler.attempts:
            current = attempts[0].attempt_id
            subtasks.setdefault(current.vertex_id, []).append(
                _subtask(attempts, metrics.get(current.vertex, SubtaskMetrics()), told_ms)
            )
        details = scheduler.details
        return ExecutionGraphInfo(
            job.job_id,
            job.name,
            state,
            min(entered_ms.values()),
            end_ms,
            now_ms,
            dict(entered_ms),
            dict(job.configuration),
            tuple(_vertex(vertex, tuple(subtasks.get(vertex.id, ()))) for vertex in job.vertices),
            tuple(_failure(each, told_ms) for each in details.failures),
            details.restarts,
            details.checkpoints,
            scheduler.checkpoints,
            tuple(
                SchedulerEventInfo(
                    told_ms(each.at), each.kind, without_secrets(each.details), each.commands
                )
                for each in scheduler.events
            ),
        )


def wall_ms(now_ms: int, now_s: float, at_s: float) -> int:
    """When the monotonic clock was at ``at_s``, now that it is at ``now_s``. ``now_ms`` was cut
    off: what has happened before a time that was told is never told to be later.

    >>> wall_ms(5000, 2.0, 1.5)
    4500
    """
    return now_ms - math.ceil(round((now_s - at_s) * 1000, 3))


def inputs_of(vertex: JobVertex) -> tuple[InputInfo, ...]:
    """What the vertex reads."""
    return tuple(
        InputInfo(edge.data_set.producer, edge.ship_strategy, edge.data_set.partition_type.name)
        for edge in vertex.inputs
    )


def _vertex(vertex: JobVertex, subtasks: tuple[SubtaskInfo, ...]) -> VertexInfo:
    operators = tuple((operator.operator_id, operator.name) for operator in vertex.operators)
    return VertexInfo(
        vertex.id,
        vertex.name,
        vertex.max_parallelism,
        vertex.slot_sharing_group,
        operators,
        inputs_of(vertex),
        subtasks,
    )


def _subtask(
    attempts: Sequence[ExecutionSummary], known: SubtaskMetrics, told_ms: Callable[[float], int]
) -> SubtaskInfo:
    """The first of these is the current one."""
    counted = {
        **known.earlier,
        **({} if known.metrics is None else {known.metrics.attempt_id.attempt: known.metrics}),
    }
    current, *earlier = (
        _attempt(each, counted.get(each.attempt_id.attempt), told_ms) for each in attempts
    )
    is_counted = known.metrics is not None and known.metrics.attempt_id == attempts[0].attempt_id
    return replace(
        current, shares=known.shares if is_counted else TimeShares(), earlier=tuple(earlier)
    )


def _attempt(
    execution: ExecutionSummary, counted: TaskMetrics | None, told_ms: Callable[[float], int]
) -> SubtaskInfo:
    attempt_id = execution.attempt_id
    counted = counted or TaskMetrics(attempt_id)  # nothing was reported of it yet
    entered_ms = {state: told_ms(at) for state, at in execution.entered.items()}
    return SubtaskInfo(
        attempt_id.subtask_index,
        attempt_id.attempt,
        execution.state,
        entered_ms,
        execution.location,
        counted.records_in,
        counted.records_out,
        _bytes(counted, "numBytesIn"),
        _bytes(counted, "numBytesOut"),
        counted.busy_ms,
        counted.back_pressured_ms,
        counted.idle_ms,
        failure=execution.failure,
    )


def _bytes(counted: TaskMetrics, name: str) -> int | None:
    counter = None if counted.reading is None else counted.reading.values.get(name)
    return int(counter) if isinstance(counter, (int, float)) else None


def _failure(failure: FailureRecord, told_ms: Callable[[float], int]) -> FailureInfo:
    return FailureInfo(
        told_ms(failure.at),
        type(failure.error).__name__,
        without_secrets(str(failure.error)),
        failure.subtask,
        failure.restarted,
        None if failure.attempt_id is None else failure.attempt_id.attempt,
        failure.location,
        tuple(_failure(each, told_ms) for each in failure.concurrent),
    )
