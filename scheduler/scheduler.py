"""The scheduler of one job: events in, commands out.

``handle`` lets the event change the graph, then *settles*: deploys the bulks whose slots are all there, restarts what waited for its end,
gives idle slots back, and ends the job when nothing is left to do. Settling last makes the order of the changes within an
event immaterial: a slot freed by a cancelled attempt and taken by another one never leaves the job.

Only current attempts are heard; whatever an older one reports is ignored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from flinkpy.core.errors import EngineError, RpcError, TaskExecutorLostError
from flinkpy.core.ids import ExecutionAttemptId, IdFactory, ResourceId
from flinkpy.core.lifecycles import JOB, ExecutionState, JobState, StateMachine
from flinkpy.core.options.engine import RUNTIME_MODE, RuntimeMode, SchedulingStrategyKind
from flinkpy.core.options.schema import read
from flinkpy.graph.deployment import TaskManagerLocation
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.deploying import deploy_commands
from flinkpy.scheduler.details import ExecutionSummary, FailureRecord, SchedulerDetails, execution_summary, vertex_summaries
from flinkpy.scheduler.execution_graph import ExecutionGraph
from flinkpy.scheduler.execution_model import TERMINAL, Execution, ExecutionVertex, Failover
from flinkpy.scheduler.execution_slots import SlotTable
from flinkpy.scheduler.failover import RootCause, is_worth_a_restart, mark_lost_results, vertices_to_restart
from flinkpy.scheduler.invariants import check
from flinkpy.scheduler.protocol import (
    CancelJob,
    CancelTask,
    Command,
    DeploymentRejected,
    Event,
    FailJob,
    JobStateChanged,
    ReleaseResults,
    ResetCoordinators,
    ResultsLost,
    SetTimer,
    SlotAssigned,
    SlotLost,
    SlotRequestFailed,
    StartScheduling,
    TaskStateChanged,
    TimerFired,
)
from flinkpy.scheduler.regions import compute_regions
from flinkpy.scheduler.restart import SchedulerConfig
from flinkpy.scheduler.strategies import scheduling_strategy

__all__ = ["Scheduler", "SchedulerConfig"]

_S, _J = ExecutionState, JobState
_FAILURES_KEPT = 16


class Scheduler:
    """Decides for one job. Not thread-safe; deterministic: equal events at equal times give equal commands (with equally seeded ids)."""

    def __init__(self, job_graph: JobGraph, config: SchedulerConfig | None = None, ids: IdFactory | None = None) -> None:
        config = config or SchedulerConfig()
        self._commands: list[Command] = []
        self.job_graph = job_graph
        self.graph = ExecutionGraph(job_graph)
        self.regions = compute_regions(self.graph, bind_all=config.strategy is SchedulingStrategyKind.EAGER)
        self.slots = SlotTable(ids or IdFactory(), self._commands)
        self.failovers: dict[str, Failover] = {}
        self.cause = RootCause()
        self._job = StateMachine(JOB, f"job {job_graph.name!r}")
        self._runs_in_parts = (config.strategy is not SchedulingStrategyKind.EAGER and _may_run_in_parts(self.graph)
                               and all(len(region.vertices) == 1 for region in self.regions))
        self._strategy = scheduling_strategy(config.strategy, self.graph, self.regions)
        self._restart = config.restart_strategy()
        self._failures: deque[FailureRecord] = deque(maxlen=_FAILURES_KEPT)
        self._restarts = 0
        self._now = 0.0
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            StartScheduling: self._start, SlotAssigned: self._slot_assigned, SlotRequestFailed: self._slot_request_failed, SlotLost: self._slot_lost,
            ResultsLost: self._results_lost,
            TaskStateChanged: self._task_state_changed, DeploymentRejected: self._deployment_rejected, CancelJob: self._cancel_job,
            FailJob: self._fail_job, TimerFired: self._timer_fired,
        }

    # -- for the JobMaster --------------------------------------------------------------------------------------------------

    @property
    def state(self) -> JobState:
        return self._job.state

    @property
    def is_terminal(self) -> bool:
        return self._job.is_terminal

    @property
    def runs_in_parts(self) -> bool:
        """Whether any slot gets the job on: no bulk needs more than one at a time, and all results between the bulks are blocking."""
        return self._runs_in_parts

    def handle(self, event: Event, now: float) -> list[Command]:
        """What follows from the event, in the order in which it must be carried out. ``now`` is the monotonic time in seconds."""
        self._now = now
        self.graph.touched.clear()
        self.slots.changed.clear()
        self._handlers[type(event)](event)
        self._settle()
        commands = self._commands[:]
        self._commands.clear()
        return commands

    def check_invariants(self, everything: bool = True) -> None:
        """Raises EngineError when the job's parts contradict each other. ``everything=False`` looks only at what the last event changed."""
        check(self, everything)

    def details(self) -> SchedulerDetails:
        return SchedulerDetails(self.state, self.cause.error, vertex_summaries(self.graph), self._restarts,
                                len(self.slots.by_allocation), len(self.slots.by_request), tuple(self._failures))

    def executions(self) -> tuple[ExecutionSummary, ...]:
        """Every current attempt, by vertex in topological order."""
        return tuple(execution_summary(vertex.execution) for vertex in self.graph.vertices)

    def location_of(self, attempt_id: ExecutionAttemptId) -> TaskManagerLocation | None:
        """Where the attempt runs; None when it is not current, or not deployed, or ended."""
        execution = self.graph.current(attempt_id)
        return execution.location if execution is not None and not execution.is_terminal else None

    def needs_results(self, attempt_id: ExecutionAttemptId) -> bool:
        """Whether the blocking results of the attempt have to be kept."""
        execution = self.graph.current(attempt_id)
        return execution is not None and (execution.keeps_results or not execution.is_terminal)

    def attempts_on(self, resource_id: ResourceId) -> frozenset[ExecutionAttemptId]:
        """The attempts that must be running on that TaskExecutor (deployed and not ended), to compare with what it reports."""
        slots = self.slots.by_resource.get(resource_id, {})
        return frozenset(user.attempt_id for slot in slots.values() for user in slot.users if user.location is not None)

    def __repr__(self) -> str:
        return f"<Scheduler of {self.job_graph.name!r}: {self.state.name}, {self.graph.size} subtasks, {len(self.slots.by_key)} slots>"

    # -- events ----------------------------------------------------------------------------------------------------------------

    def _start(self, event: StartScheduling) -> None:
        if self.state is not _J.INITIALIZING:
            return
        self._move_job(_J.CREATED)
        self._move_job(_J.RUNNING)
        self._schedule(self._strategy.on_start())

    def _slot_assigned(self, event: SlotAssigned) -> None:
        self.slots.assigned(event.request_id, event.allocation_id, event.location)

    def _slot_request_failed(self, event: SlotRequestFailed) -> None:
        slot = self.slots.drop_request(event.request_id)
        if slot is not None:
            self._fail(list(slot.users), event.error)

    def _slot_lost(self, event: SlotLost) -> None:
        slot = self.slots.drop_allocation(event.allocation_id)
        if slot is None:
            return
        if isinstance(event.error, TaskExecutorLostError) and slot.location is not None:
            self._lose_results_on(slot.location.resource_id)
        self._fail(list(slot.users), event.error)

    def _results_lost(self, event: ResultsLost) -> None:
        self._lose_results_on(event.resource_id)

    def _task_state_changed(self, event: TaskStateChanged) -> None:
        execution = self.graph.current(event.attempt_id)
        if execution is None or execution.is_terminal or execution.location is None:
            return
        if event.state is _S.FINISHED:
            self._task_finished(execution)
        elif event.state is _S.CANCELED and execution.state is _S.CANCELING:
            self._end(execution, _S.CANCELED)
        elif event.state is _S.CANCELED:
            self._fail([execution], event.error or EngineError(f"{execution} was cancelled by its TaskExecutor, which nobody had asked for"))
        elif event.state is _S.FAILED:
            self._task_failed(execution, event.error or EngineError(f"{execution} failed without saying why"))
        elif event.state in (_S.INITIALIZING, _S.RUNNING) and execution.machine.lifecycle.allows(execution.state, event.state):
            self._progress(execution, event.state)

    def _deployment_rejected(self, event: DeploymentRejected) -> None:
        execution = self.graph.current(event.attempt_id)
        if execution is not None and not execution.is_terminal and execution.location is not None:
            if isinstance(event.error, RpcError):  # perhaps only the answer was lost, and the task runs
                self._commands.append(CancelTask(execution.location, execution.attempt_id))
            self._fail([execution], event.error)

    def _cancel_job(self, event: CancelJob) -> None:
        if self._job.lifecycle.allows(self.state, _J.CANCELLING):
            self._move_job(_J.CANCELLING)
            self._wind_up()

    def _fail_job(self, event: FailJob) -> None:
        if self.state in (_J.CANCELLING, _J.FAILING) or self.is_terminal:
            self._blame(event.error)
            return
        delay_s = self._restart.on_failure(self._now) if is_worth_a_restart(event.error) else None
        self._record_failure("", event.error, delay_s is not None)
        if self.state is _J.INITIALIZING:
            self._move_job(_J.CREATED)
        if delay_s is None:
            self._give_up(event.error)
            return
        if self.state is _J.CREATED:
            self._move_job(_J.RUNNING)
        self._begin_failover(list(self.graph.vertices), event.error, delay_s)

    def _timer_fired(self, event: TimerFired) -> None:
        failover = self.failovers.get(event.timer_id)
        if failover is not None:
            failover.pause_is_over = True

    # -- attempts ----------------------------------------------------------------------------------------------------------------

    def _schedule(self, bulks: Iterable[list[ExecutionVertex]]) -> None:
        for vertices in bulks:
            for vertex in vertices:
                self.graph.move(vertex.execution, _S.SCHEDULED)
            self.slots.join(vertices)

    def _task_finished(self, execution: Execution) -> None:
        if execution.state is _S.INITIALIZING:  # its RUNNING report came late or never
            self._progress(execution, _S.RUNNING)
        self._progress(execution, _S.FINISHED)
        self._ended(execution)
        self._release_results(producer.execution for group in execution.vertex.input_groups if group.is_blocking and not group.unconsumed
                              for producer in group.producer_vertices() if not any(group.unconsumed for group in producer.output_groups))

    def _progress(self, execution: Execution, state: ExecutionState) -> None:
        consumable = self.graph.move(execution, state)
        if consumable and execution.vertex.failover is None and self.state in (_J.RUNNING, _J.RESTARTING):
            self._schedule(self._strategy.on_consumable(consumable))

    def _task_failed(self, execution: Execution, error: BaseException) -> None:
        if execution.state is _S.CANCELING:  # dragged along by an earlier failure, or that failure's very cause
            execution.error = error
            self._blame(error)
            self._end(execution, _S.FAILED)
        else:
            mark_lost_results(execution, error)
            self._fail([execution], error)

    def _fail(self, executions: list[Execution], error: BaseException) -> None:
        """These ended for one and the same reason. Those already being cancelled are cancelled now, which is no new failure."""
        failed = []
        for execution in executions:
            if execution.state is _S.CANCELING:
                self._end(execution, _S.CANCELED)
            else:
                execution.error = error
                self._end(execution, _S.FAILED)
                failed.append(execution)
        if failed:
            self._on_failure(failed, error)
        elif executions:
            self._blame(error)

    def _cancel(self, execution: Execution) -> None:
        if execution.is_terminal or execution.state is _S.CANCELING:
            return
        if execution.location is None:  # no task to cancel yet
            self._end(execution, _S.CANCELED)
        else:
            self.graph.move(execution, _S.CANCELING)
            self._commands.append(CancelTask(execution.location, execution.attempt_id))

    def _end(self, execution: Execution, state: ExecutionState) -> None:
        self.graph.move(execution, state)
        self._ended(execution)

    def _ended(self, execution: Execution) -> None:
        self.slots.leave(execution)
        failover = execution.vertex.failover
        if failover is not None:
            failover.running -= 1

    def _lose_results_on(self, resource_id: ResourceId) -> None:
        """With a TaskExecutor go the blocking results of what has finished there."""
        for result in self.graph.results:
            if result.is_blocking:
                for vertex in result.producer.vertices:
                    location = vertex.execution.location
                    if location is not None and location.resource_id == resource_id and vertex.execution.state is _S.FINISHED:
                        vertex.execution.result_lost = True

    def _release_results(self, executions: Iterable[Execution]) -> None:
        """Everybody has read them, or they are made anew. Whoever should need them again makes their producers run again."""
        released: dict[TaskManagerLocation, list[ExecutionAttemptId]] = {}
        for execution in executions:
            if execution.keeps_results and execution.location is not None:
                execution.result_lost = True
                released.setdefault(execution.location, []).append(execution.attempt_id)
        self._commands += [ReleaseResults(location, tuple(attempts)) for location, attempts in released.items()]

    # -- failures ----------------------------------------------------------------------------------------------------------------

    def _on_failure(self, failed: list[Execution], error: BaseException) -> None:
        if self.state not in (_J.RUNNING, _J.RESTARTING):
            self._blame(error)
            return
        vertices = vertices_to_restart(execution.vertex for execution in failed)
        known = next((each for each in self.failovers.values() if each.error is error), None)
        if known is not None:  # one cause, heard in parts (a TaskExecutor with many slots died): one failure, one restart
            self._extend_failover(known, vertices)
            return
        delay_s = self._restart.on_failure(self._now) if is_worth_a_restart(error) else None
        self._record_failure(str(failed[0].vertex), error, delay_s is not None)
        if delay_s is None:
            self._give_up(error)
        else:
            self._begin_failover(vertices, error, delay_s)

    def _begin_failover(self, vertices: list[ExecutionVertex], error: BaseException, delay_s: float) -> None:
        self._restarts += 1
        failover = Failover(f"restart-{self._restarts}", error)
        self.failovers[failover.timer_id] = failover
        self._extend_failover(failover, vertices)
        self._commands.append(SetTimer(failover.timer_id, delay_s))
        if self.state is _J.RUNNING:
            self._move_job(_J.RESTARTING)

    def _extend_failover(self, failover: Failover, vertices: list[ExecutionVertex]) -> None:
        for vertex in vertices:
            if vertex.failover is not None:  # an earlier one still waits: this one takes all of it over
                self._absorb(failover, vertex.failover)
        for vertex in vertices:
            if vertex.failover is None:
                self._enlist(vertex, failover)

    def _absorb(self, failover: Failover, earlier: Failover) -> None:
        if earlier is failover:
            return
        del self.failovers[earlier.timer_id]
        failover.running += earlier.running
        failover.vertices.update(earlier.vertices)
        for vertex in earlier.vertices:
            vertex.failover = failover

    def _enlist(self, vertex: ExecutionVertex, failover: Failover) -> None:
        """One more subtask to restart: from here on its slot is kept and its attempt on the way to its end."""
        vertex.failover = failover
        failover.vertices[vertex] = None
        self.slots.retain(vertex)
        execution = vertex.execution
        if execution.state is not _S.CREATED and not execution.is_terminal:
            failover.running += 1
            self._cancel(execution)

    def _restart_vertices(self, failover: Failover) -> None:
        del self.failovers[failover.timer_id]
        old = [vertex.execution for vertex in failover.vertices if vertex.execution.state is not _S.CREATED]
        self._commands.append(ResetCoordinators(tuple(execution.attempt_id for execution in old)))
        self._release_results(old)
        for execution in old:
            self.graph.reset(execution.vertex)
        for vertex in failover.vertices:
            vertex.failover = None
        self._schedule(self._strategy.on_restart(failover.vertices))
        for vertex in failover.vertices:  # only now: whoever was scheduled again sits in its slot
            self.slots.stop_retaining(vertex)
        if not self.failovers:
            self._move_job(_J.RUNNING)

    def _blame(self, error: BaseException) -> None:
        """A failing job heard of one more failure: perhaps of the one that caused the others."""
        if self.state is _J.FAILING:
            self.cause.offer(error)

    def _give_up(self, error: BaseException) -> None:
        self.cause.offer(error)
        self._move_job(_J.FAILING)
        self._wind_up()

    def _wind_up(self) -> None:
        """The job is to end: nothing restarts any more, and whatever runs is cancelled."""
        for failover in self.failovers.values():
            for vertex in failover.vertices:
                vertex.failover = None
                self.slots.stop_retaining(vertex)
        self.failovers.clear()
        for vertex in self.graph.vertices:
            self._cancel(vertex.execution)

    def _record_failure(self, subtask: str, error: BaseException, restarted: bool) -> None:
        self._failures.append(FailureRecord(self._now, subtask, error, restarted))

    # -- what every event ends with ----------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        for failover in [each for each in self.failovers.values() if each.is_ready]:
            self._restart_vertices(failover)
        self.slots.collect_idle()
        self._deploy()
        self._end_job()

    def _deploy(self) -> None:
        ready = [execution for execution in self.slots.take_complete() if execution.state is _S.SCHEDULED]
        for execution in ready:
            if execution.slot is None:
                raise EngineError(f"{execution} is scheduled and has no slot")
            execution.location = execution.slot.location
            self.graph.move(execution, _S.DEPLOYING)
        self._commands += deploy_commands(ready, self.job_graph)

    def _end_job(self) -> None:
        if self.is_terminal or self.state is _J.INITIALIZING or self.graph.count(*TERMINAL) < self.graph.size:
            return
        if self.state is _J.CANCELLING:
            self._move_job(_J.CANCELED)
        elif self.state is _J.FAILING:
            self._move_job(_J.FAILED)
        elif self.state is _J.RUNNING and self.graph.count(_S.FINISHED) == self.graph.size:
            self._move_job(_J.FINISHED)

    def _move_job(self, state: JobState) -> None:
        self._job.move(state)
        is_failure = state in (_J.FAILING, _J.FAILED)
        self._commands.append(JobStateChanged(state, self.cause.error if is_failure else None))


def _may_run_in_parts(graph: ExecutionGraph) -> bool:
    """A batch job; a single vertex alone does not show it."""
    return any(True for _ in graph.results) or read(graph.job_graph.configuration, RUNTIME_MODE) is RuntimeMode.BATCH
