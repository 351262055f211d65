"""What a JobMaster reports about its job: state, counters of its tasks, merged accumulators,
overview and details."""

from __future__ import annotations

import copy
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from flinkpy.actors.execution_graph_info import (
    ExecutionGraphInfo,
    InputInfo,
    TimeShares,
    summary_of,
)
from flinkpy.actors.gateways import (
    JobDetails,
    JobMetrics,
    JobOverview,
    JobResult,
    SavepointStatus,
    VertexDetails,
)
from flinkpy.actors.job_master.graph_report import GraphReport, inputs_of, wall_ms
from flinkpy.actors.job_master.subtask_metrics import SubtaskMetrics, operator_details
from flinkpy.actors.job_store import ArchivedJob
from flinkpy.core.clock import Clock
from flinkpy.core.ids import ExecutionAttemptId, ExecutionVertexId, JobVertexId, ResourceId
from flinkpy.core.lifecycles import JOB, ExecutionState, JobState
from flinkpy.core.options.engine import ATTEMPTS_HISTORY
from flinkpy.core.options.schema import read
from flinkpy.core.secrets.hidden_secrets import without_secrets
from flinkpy.graph.deployment import TaskExecutionState, TaskMetrics
from flinkpy.graph.job_graph import JobGraph, JobVertex
from flinkpy.metrics.shown_accumulators import Shown, shown
from flinkpy.runtime.memory.memory_report import MemoryReport
from flinkpy.scheduler.scheduler import Scheduler
from flinkpy.scheduler.scheduler_report import SchedulerDetails, SchedulerReport, VertexSummary


def merge_accumulators(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Merges two sets of accumulators: adds numbers, joins lists, unites sets, merges objects with
    ``merge(other)``; else ``other`` wins.

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
    # the reported accumulator must stay as it is: another result may be requested
    merged = copy.deepcopy(one)
    returned = merged.merge(other)
    return merged if returned is None else returned


SAVEPOINTS_KEPT = 32  # that are over, and that clients may still ask about


class JobStatusBook:
    """The job's state and error, and the latest reports of its tasks: for each subtask those of its
    latest attempt."""

    def __init__(self, job_graph: JobGraph, clock: Clock) -> None:
        self._job_graph = job_graph
        self._clock = clock
        self._start_ms = clock.time_ms()
        self._attempts_kept = read(job_graph.configuration, ATTEMPTS_HISTORY)
        self._graph_report = GraphReport(job_graph, clock)
        self._end_ms: int | None = None
        self._savepoints: deque[SavepointStatus] = deque(maxlen=SAVEPOINTS_KEPT)
        self.state = JobState.INITIALIZING
        self._entered_ms = {self.state: self._start_ms}
        self.error: BaseException | None = None
        self._subtasks: dict[ExecutionVertexId, SubtaskMetrics] = {}

    @property
    def has_ended(self) -> bool:
        return self._end_ms is not None

    def record_state(self, state: JobState, error: BaseException | None, now_ms: int) -> None:
        """The job is in a new state. The error that a terminal state comes with is the one that
        counts. A job that runs again has none."""
        self.state = state
        self._entered_ms = {**self._entered_ms, state: now_ms}
        self.error = (
            error if JOB.is_terminal(state) or state is JobState.RUNNING else error or self.error
        )

    def record_savepoint(self, status: SavepointStatus) -> None:
        """A savepoint that a client has asked for is over."""
        self._savepoints.append(status)

    def record_end(self, now_ms: int) -> None:
        """The job has reached its last state."""
        self._end_ms = now_ms

    def record_metrics(self, metrics: Iterable[TaskMetrics], now_ms: int) -> None:
        """Records the readings of running tasks; they may come late."""
        for one in metrics:
            self._subtask(one.attempt_id).record_reading(one, now_ms)

    def record_task_end(self, report: TaskExecutionState, now_ms: int) -> None:
        """The task has ended: later readings of this attempt are ignored."""
        self._subtask(report.attempt_id).record_reading(
            report.metrics or TaskMetrics(report.attempt_id), now_ms, report.accumulators
        )

    def _subtask(self, attempt_id: ExecutionAttemptId) -> SubtaskMetrics:
        found = self._subtasks.get(attempt_id.vertex)
        if found is None:
            found = self._subtasks[attempt_id.vertex] = SubtaskMetrics(self._attempts_kept)
        return found

    # -- reports -----------------------------------------------------------------------------------

    def graph_info(self, scheduler: SchedulerReport) -> ExecutionGraphInfo:
        """The whole job, for those who watch it."""
        return self._graph_report.info(
            self.state, self._entered_ms, self._end_ms, scheduler, self._subtasks
        )

    def archived(self, scheduler: SchedulerReport) -> ArchivedJob:
        """How the job ended, and what there is to tell of it then."""
        assert self._end_ms is not None
        runtime_ms = self._end_ms - self._start_ms
        result = JobResult(
            self._job_graph.job_id,
            self._job_graph.name,
            self.state,
            runtime_ms,
            self.error,
            self._accumulators(),
            scheduler.details.restarts,
            JobState.RUNNING in self._entered_ms,
        )
        told = self.job_metrics()
        lasting = {
            name: value for name, value in told.engine.items() if not name.endswith("PerSecond")
        }
        metrics = replace(told, accumulators={}, engine=lasting)
        return ArchivedJob(
            result,
            replace(
                self.details(scheduler.details), graph=self.graph_info(scheduler), metrics=metrics
            ),
        )

    def _accumulators(self) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for subtask in self._subtasks.values():
            merged = merge_accumulators(merged, subtask.accumulators())
        return merged

    def details(
        self, scheduler: SchedulerDetails, fullest: tuple[tuple[ResourceId, MemoryReport], ...] = ()
    ) -> JobDetails:
        tasks: dict[ExecutionState, int] = {}
        for vertex in scheduler.vertices:
            for task_state, count in vertex.states.items():
                tasks[task_state] = tasks.get(task_state, 0) + count
        overview = JobOverview(
            self._job_graph.job_id,
            self._job_graph.name,
            self.state,
            self._start_ms,
            self._end_ms,
            tasks,
            scheduler.restarts,
            *self._last_failure(scheduler),
        )
        known: dict[JobVertexId, list[SubtaskMetrics]] = {}
        for subtask_id, subtask in self._subtasks.items():
            known.setdefault(subtask_id.vertex_id, []).append(subtask)
        inputs = {vertex.id: inputs_of(vertex) for vertex in self._job_graph.vertices}
        vertices = tuple(
            _vertex_details(each, known.get(each.vertex_id, []), inputs[each.vertex_id])
            for each in scheduler.vertices
        )
        last_failure = (
            without_secrets(str(scheduler.failures[-1].error)) if scheduler.failures else ""
        )
        return JobDetails(
            overview,
            vertices,
            self.error,
            scheduler.restarts,
            last_failure,
            scheduler.checkpoints.latest_id,
            tuple(self._savepoints),
            fullest=fullest,
        )

    def _last_failure(self, scheduler: SchedulerDetails) -> tuple[int | None, str]:
        """When it was, and the failure in a line."""
        if not scheduler.failures:
            return None, ""
        last = scheduler.failures[-1]
        failed_ms = wall_ms(self._clock.time_ms(), self._clock.monotonic(), last.at)
        return failed_ms, summary_of(type(last.error).__name__, without_secrets(str(last.error)))

    def job_metrics(self) -> JobMetrics:
        """Returns what the job's functions and the engine count in the subtasks now."""
        merged: dict[str, Any] = {}
        by_vertex: dict[JobVertexId, dict[str, Any]] = {}
        by_attempt: dict[ExecutionAttemptId, Shown] = {}
        for subtask_id, subtask in self._subtasks.items():
            own = subtask.accumulators()
            merged = merge_accumulators(merged, own)
            by_vertex[subtask_id.vertex_id] = merge_accumulators(
                by_vertex.get(subtask_id.vertex_id, {}), own
            )
            for number, told in subtask.shown_by_attempt(own).items():
                by_attempt[ExecutionAttemptId(self._job_graph.job_id, *subtask_id, number)] = told
        return JobMetrics(
            merged,
            engine_metrics(self._job_graph.vertices, self._subtasks),
            {vertex_id: shown(each) for vertex_id, each in by_vertex.items()},
            by_attempt,
            tuple(last for each in self._subtasks.values() if (last := each.last) is not None),
        )


class EndOfJob:
    """Has the job's end recorded, once: ``record(job)`` gets what there is to tell of it then."""

    def __init__(
        self,
        status: JobStatusBook,
        scheduler: Scheduler,
        clock: Clock,
        record: Callable[[ArchivedJob], None],
    ) -> None:
        self._status = status
        self._scheduler = scheduler
        self._clock = clock
        self._record = record
        self._is_recorded = False

    def record_end(self, state: JobState, error: BaseException | None) -> None:
        """The job is about to end in this state."""
        if not self._is_recorded:
            self._is_recorded = True
            ended = copy.copy(self._status)
            now_ms = self._clock.time_ms()
            ended.record_state(state, error, now_ms)
            ended.record_end(now_ms)
            self._record(ended.archived(self._scheduler.report()))


def _vertex_details(
    vertex: VertexSummary, subtasks: list[SubtaskMetrics], inputs: tuple[InputInfo, ...]
) -> VertexDetails:
    counted = [subtask.metrics for subtask in subtasks if subtask.metrics is not None]
    busy, back_pressured, idle = map(
        max, zip(TimeShares(), *(subtask.shares for subtask in subtasks))
    )
    return VertexDetails(
        vertex.vertex_id,
        vertex.name,
        vertex.parallelism,
        vertex.states,
        sum(metrics.records_in for metrics in counted),
        sum(metrics.records_out for metrics in counted),
        max((subtask.counted_ms for subtask in subtasks), default=0),
        busy,
        back_pressured,
        idle,
        inputs,
        tuple(operator_details(counted)),
    )


def engine_metrics(
    vertices: Iterable[JobVertex], subtasks: Mapping[ExecutionVertexId, SubtaskMetrics]
) -> dict[str, float]:
    """Metrics under Flink's names, each behind the name of the task or the operator and the
    subtask: ``Map.0.numRecordsIn``. If several share a name, none of them is reported, because a
    reader could not tell them apart."""
    found: dict[str, float] = {}
    names = Counter(operator.name for vertex in vertices for operator in vertex.operators)
    titles = Counter(vertex.name for vertex in vertices)
    for vertex in vertices:
        named = {
            operator.operator_id: operator.name
            for operator in vertex.operators
            if names[operator.name] == 1
        }
        for index in range(vertex.parallelism):
            subtask = subtasks.get(ExecutionVertexId(vertex.id, index))
            if subtask is None or subtask.metrics is None:
                continue
            reading = subtask.metrics.reading
            for operator in () if reading is None else reading.operators:
                if operator.operator_id in named:
                    found |= _named(named[operator.operator_id], index, operator.values)
            for operator_id, records_in, records_out in subtask.metrics.operators:
                if operator_id in named:
                    found |= _named(
                        named[operator_id],
                        index,
                        {"numRecordsIn": records_in, "numRecordsOut": records_out},
                    )
            if titles[vertex.name] == 1:
                busy, back_pressured, idle = subtask.shares
                flattened = {} if reading is None else reading.flat_values()
                found |= _named(
                    vertex.name,
                    index,
                    {
                        **flattened,
                        "numRecordsIn": subtask.metrics.records_in,
                        "numRecordsOut": subtask.metrics.records_out,
                        "busyTimeMsPerSecond": busy,
                        "backPressuredTimeMsPerSecond": back_pressured,
                        "idleTimeMsPerSecond": idle,
                    },
                )
    return found


def _named(name: str, subtask: int, values: Mapping[str, float]) -> dict[str, float]:
    return {f"{name}.{subtask}.{metric}": value for metric, value in values.items()}
