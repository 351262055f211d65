"""Failover: which subtasks a failure takes along, and the restart that follows.

A failed subtask takes its pipelined region with it. Downstream, every region that reads its results
restarts too (it may have read results the new attempt will not repeat); upstream, only those whose
blocking results are gone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from flinkpy.core.errors import (
    PartitionNotFoundError,
    ProgramError,
    TaskExecutorLostError,
    UserCodeError,
)
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.scheduler.attempts import Attempts
from flinkpy.scheduler.execution_model import Execution, ExecutionVertex, Failover, PipelinedRegion
from flinkpy.scheduler.execution_slots import SlotTable
from flinkpy.scheduler.job_lifecycle import JobLifecycle, is_symptom
from flinkpy.scheduler.planning.execution_plan import CurrentPlan
from flinkpy.scheduler.planning.regions import regions_of
from flinkpy.scheduler.protocol import Command, SetTimer, TimerFired
from flinkpy.scheduler.restart import RestartStrategy
from flinkpy.scheduler.scheduler_report import FailureRecord

_S, _J = ExecutionState, JobState


class Failovers:
    """What failures lead to: a restart of the subtasks concerned, or the end of the job. Owns the
    restarts under way (``pending``, by timer) and the record of past failures."""

    FAILURES_KEPT = 16
    CONCURRENT_KEPT = 16  # of one failure: errors may hold much of the program's data

    def __init__(
        self,
        plan: CurrentPlan,
        slots: SlotTable,
        job: JobLifecycle,
        attempts: Attempts,
        restart_strategy: RestartStrategy,
        commands: list[Command],
    ) -> None:
        self._plan = plan
        self._slots = slots
        self._job = job
        self._attempts = attempts
        self._restart_strategy = restart_strategy
        self._commands = commands
        self.pending: dict[str, Failover] = {}
        self.restarts = 0
        self.failures: deque[FailureRecord] = deque(maxlen=self.FAILURES_KEPT)

    @property
    def last_failure(self) -> BaseException | None:
        return self.failures[-1].error if self.failures else None

    # -- failures ----------------------------------------------------------------------------------

    def fail_attempts(self, executions: list[Execution], error: BaseException, now: float) -> None:
        """These attempts ended for one and the same reason. Those already being cancelled are
        cancelled now, which is no new failure."""
        failed = []
        for execution in executions:
            if execution.state is _S.CANCELING:
                self._attempts.end(execution, _S.CANCELED)
            else:
                execution.error = error
                self._attempts.end(execution, _S.FAILED)
                failed.append(execution)
        if failed and self._job.is_running:
            self._on_failure(failed, error, now)
        elif executions:
            self._job.blame(error)
            self._add_concurrent(self._fatal, failed, now)

    def failed_while_cancelled(
        self, execution: Execution, error: BaseException, now: float
    ) -> None:
        """The attempt was cancelled for an earlier failure, and has not ended well: perhaps it is
        what caused that one."""
        execution.error = error
        self._job.blame(error)
        failover = execution.vertex.failover
        self._attempts.end(execution, _S.FAILED)
        self._add_concurrent(self._fatal if failover is None else failover.error, [execution], now)

    def _add_concurrent(
        self, cause: BaseException | None, failed: Iterable[Execution], now: float
    ) -> None:
        """These have failed, too, while the job dealt with that failure."""
        index = next(
            (index for index, record in enumerate(self.failures) if record.error is cause), None
        )
        if index is not None:
            record = self.failures[index]
            added = [
                _record(each, now, record.restarted)
                for each in failed
                if each.attempt_id != record.attempt_id
            ]
            self.failures[index] = replace(
                record, concurrent=(*record.concurrent, *added)[: self.CONCURRENT_KEPT]
            )

    @property
    def _fatal(self) -> BaseException | None:
        """The failure that the job ends with, while it does."""
        return self.last_failure if self._job.state is _J.FAILING else None

    def _on_failure(self, failed: list[Execution], error: BaseException, now: float) -> None:
        vertices = (
            list(self._plan.graph.vertices)
            if self._plan.states.takes_all_along or self._plan.awaits_replacement
            else vertices_to_restart(execution.vertex for execution in failed)
        )
        known = next((each for each in self.pending.values() if each.error is error), None)
        # one cause that is reported in parts (a TaskExecutor with many slots died): one failure,
        # one restart
        if known is not None:
            self._extend(known, vertices)
            self._add_concurrent(error, failed, now)
            return
        delay_s = (
            self._restart_strategy.on_failure(now, says_worker_lost(error))
            if is_worth_a_restart(error)
            else None
        )
        self.failures.append(_record(failed[0], now, delay_s is not None))
        # As in Flink: also those that failed before, and have not been restarted yet
        self._add_concurrent(
            error,
            [vertex.execution for vertex in vertices if vertex.execution.state is _S.FAILED],
            now,
        )
        if delay_s is None:
            self._give_up(error)
        else:
            self._begin(vertices, error, delay_s)

    def fail_job(self, error: BaseException, now: float) -> None:
        """Something outside the tasks failed: the whole job restarts, or ends."""
        job = self._job
        if job.state in (_J.CANCELLING, _J.FAILING) or job.is_terminal:
            job.blame(error)
            return
        delay_s = self._restart_strategy.on_failure(now) if is_worth_a_restart(error) else None
        self.failures.append(FailureRecord(now, "", error, delay_s is not None))
        self._add_concurrent(
            error,
            [
                vertex.execution
                for vertex in self._plan.graph.vertices
                if vertex.execution.state is _S.FAILED
            ],
            now,
        )
        if job.state is _J.INITIALIZING:
            job.move(_J.CREATED)
        if delay_s is None:
            self._give_up(error)
            return
        if job.state is _J.CREATED:
            job.move(_J.RUNNING)
        self._begin(list(self._plan.graph.vertices), error, delay_s)

    def _give_up(self, error: BaseException) -> None:
        self._job.cause.offer(error)
        self._job.move(_J.FAILING)
        self.cancel_everything()

    def cancel_everything(self) -> None:
        """The job is to end: nothing restarts any more, and whatever runs is cancelled."""
        for failover in self.pending.values():
            for vertex in failover.vertices:
                vertex.failover = None
                self._slots.stop_retaining_slot(vertex)
        self.pending.clear()
        for vertex in self._plan.graph.vertices:
            self._attempts.cancel(vertex.execution)

    # -- restarts ----------------------------------------------------------------------------------

    def timer_fired(self, event: TimerFired) -> None:
        """The pause before a restart is over."""
        failover = self.pending.get(event.timer_id)
        if failover is not None:
            failover.pause_is_over = True

    def restart_ready(self, now: float) -> None:
        """Restarts the subtasks whose attempts have all ended and whose pause is over."""
        for failover in [each for each in self.pending.values() if each.is_ready]:
            self._restart(failover, now)

    def _begin(self, vertices: list[ExecutionVertex], error: BaseException, delay_s: float) -> None:
        self.restarts += 1
        failover = Failover(f"restart-{self.restarts}", error)
        self.pending[failover.timer_id] = failover
        self._extend(failover, vertices)
        self._commands.append(SetTimer(failover.timer_id, delay_s))
        if self._job.state is _J.RUNNING:
            self._job.move(_J.RESTARTING, error)

    def _extend(self, failover: Failover, vertices: list[ExecutionVertex]) -> None:
        for vertex in vertices:
            # an earlier one still waits: this one takes all of it over
            if vertex.failover is not None:
                self._absorb(failover, vertex.failover)
        for vertex in vertices:
            if vertex.failover is None:
                self._enlist(vertex, failover)

    def _absorb(self, failover: Failover, earlier: Failover) -> None:
        if earlier is failover:
            return
        del self.pending[earlier.timer_id]
        failover.running += earlier.running
        failover.vertices.update(earlier.vertices)
        for vertex in earlier.vertices:
            vertex.failover = failover

    def _enlist(self, vertex: ExecutionVertex, failover: Failover) -> None:
        """One more subtask to restart: its slot is retained from here on, and its attempt is
        cancelled."""
        vertex.failover = failover
        failover.vertices[vertex] = None
        self._slots.retain_slot(vertex)
        execution = vertex.execution
        if execution.state is not _S.CREATED and not execution.is_terminal:
            failover.running += 1
            self._attempts.cancel(execution)

    def _restart(self, failover: Failover, now: float) -> None:
        del self.pending[failover.timer_id]
        old = [vertex.execution for vertex in failover.vertices if vertex.execution.has_begun]
        vertices = self._vertices_of_next_plan(failover, now)
        self._commands.append(self._plan.states.restart(old, vertices))
        self._attempts.release_results(old)
        if vertices is failover.vertices:
            for execution in old:
                self._plan.graph.reset(execution.vertex)
            for vertex in vertices:
                vertex.failover = None
        self._attempts.schedule_restarted(vertices)
        for vertex in failover.vertices:  # not before the new attempts are in their slots
            self._slots.stop_retaining_slot(vertex)
        if not self.pending:
            self._job.move(_J.RUNNING)

    def _vertices_of_next_plan(self, failover: Failover, now: float) -> dict[ExecutionVertex, None]:
        """The subtasks that start now: those of the plan that takes the present one's place, if one
        was decided and all of the job restarts."""
        restarts_all = len(failover.vertices) == self._plan.graph.size
        if restarts_all and self._plan.replace(now):
            return dict.fromkeys(self._plan.graph.vertices)
        return failover.vertices

    def __repr__(self) -> str:
        return f"<Failovers {list(self.pending.values())}, {self.restarts} restarts>"


def _record(execution: Execution, now: float, restarted: bool) -> FailureRecord:
    assert execution.error is not None
    at = execution.entered.get(execution.state, now)
    return FailureRecord(
        at,
        str(execution.vertex),
        execution.error,
        restarted,
        execution.attempt_id,
        execution.location,
    )


def vertices_to_restart(failed: Iterable[ExecutionVertex]) -> list[ExecutionVertex]:
    """All subtasks that must start anew because these failed."""
    queue = list(dict.fromkeys(vertex.region for vertex in failed))
    found = dict.fromkeys(queue)
    while queue:
        for region in _dragged_along(queue.pop()):
            if region not in found:
                found[region] = None
                queue.append(region)
    return [vertex for region in found for vertex in region.vertices]


def mark_lost_results(execution: Execution, error: BaseException) -> None:
    """A consumer could not find a partition: the blocking results it reads count as lost, so their
    producers run again."""
    if any(isinstance(each, PartitionNotFoundError) for each in _chain(error)):
        for group in execution.vertex.input_groups:
            if group.is_blocking:
                for producer in group.producer_vertices():
                    producer.execution.result_lost = True


def says_worker_lost(error: BaseException) -> bool:
    """Whether a worker was lost: it is said, or a task that talked to it says so first."""
    return isinstance(error, TaskExecutorLostError) or is_symptom(error)


def is_worth_a_restart(error: BaseException) -> bool:
    """A program that asks for what cannot be asks for it again, and one that exits means it."""
    return not (
        isinstance(error, ProgramError) or (isinstance(error, UserCodeError) and error.is_exit)
    )


def _dragged_along(region: PipelinedRegion) -> Iterator[PipelinedRegion]:
    for group in region.inputs:
        yield from regions_of(
            [vertex for vertex in group.producer_vertices() if vertex.execution.result_lost]
        )
    for group in region.outputs:
        yield from regions_of(group.consumer_vertices())


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
