"""The scheduler of one job: events in, commands out.

``handle`` lets the event change the graph, then *settles*: deploys the bulks whose slots are all
there, restarts what waited for its end, gives idle slots back, and ends the job when nothing is
left to do. Settling last makes the order of the changes within an event immaterial: a slot freed by
a cancelled attempt and taken by another one never leaves the job.

The parts own their state: the plan (its graph has states and counts), the slot table, the job's
lifecycle, the failovers and the checkpoints; ``Attempts`` moves graph and slots together. What they
want done goes to one list of commands, which ``handle`` gives out.

Only current attempts count; whatever an older one reports is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from flinkpy.core.errors import EngineError, RpcError, TaskExecutorLostError
from flinkpy.core.ids import ExecutionAttemptId, IdFactory
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.graph.deployment import TaskManagerLocation
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.attempts import Attempts
from flinkpy.scheduler.checkpointing.checkpoint_coordinator import CheckpointCoordinator
from flinkpy.scheduler.checkpointing.checkpoint_stats_tracker import CheckpointStatsTracker
from flinkpy.scheduler.checkpointing.completed_checkpoint_store import CompletedCheckpointStore
from flinkpy.scheduler.event_log import EventLog
from flinkpy.scheduler.execution_graph import ExecutionGraph
from flinkpy.scheduler.execution_model import TERMINAL, Execution
from flinkpy.scheduler.execution_slots import SlotTable
from flinkpy.scheduler.failover import Failovers, mark_lost_results
from flinkpy.scheduler.invariants import SchedulerParts, check
from flinkpy.scheduler.job_lifecycle import JobLifecycle
from flinkpy.scheduler.planning.execution_plan import CurrentPlan
from flinkpy.scheduler.protocol import (
    CancelJob,
    CancelTask,
    CheckpointEvent,
    Command,
    DeploymentRejected,
    Event,
    FailJob,
    ParallelismDecided,
    ResultsLost,
    SlotAssigned,
    SlotLost,
    SlotRequestFailed,
    StartScheduling,
    TaskStateChanged,
    TimerFired,
)
from flinkpy.scheduler.restart import SchedulerConfig
from flinkpy.scheduler.scheduler_report import (
    SchedulerDetails,
    SchedulerReport,
    execution_summary,
    vertex_summaries,
)

__all__ = ["Scheduler", "SchedulerConfig"]

_S, _J = ExecutionState, JobState


class Scheduler:
    """Decides for one job. Not thread-safe; deterministic: equal events at equal times give equal
    commands (with equally seeded ids)."""

    def __init__(
        self,
        job_graph: JobGraph,
        config: SchedulerConfig | None = None,
        ids: IdFactory | None = None,
    ) -> None:
        config = config or SchedulerConfig()
        self._commands: list[Command] = []
        completed = CompletedCheckpointStore(config.checkpoints, self._commands)
        self.statistics = CheckpointStatsTracker(job_graph, config.checkpoints.history)
        self._plan = CurrentPlan(job_graph, config, completed, self.statistics)
        self.slots = SlotTable(ids or IdFactory(), self._commands)
        self.job = JobLifecycle(job_graph.name, self._commands)
        self._attempts = Attempts(self._plan, self.slots, self.job, self._commands)
        self.failovers = Failovers(
            self._plan,
            self.slots,
            self.job,
            self._attempts,
            config.restart_strategy(),
            self._commands,
        )
        self.checkpoints = CheckpointCoordinator(
            config,
            self._plan,
            self.job,
            completed,
            lambda error: self.failovers.fail_job(error, self._now),
            self._commands,
            self.statistics,
        )
        self._now = 0.0
        self.events = EventLog()
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            StartScheduling: self._start,
            ParallelismDecided: self._parallelism_decided,
            SlotAssigned: self.slots.slot_assigned,
            SlotRequestFailed: self._slot_request_failed,
            SlotLost: self._slot_lost,
            ResultsLost: self._attempts.results_lost,
            TaskStateChanged: self._task_state_changed,
            DeploymentRejected: self._deployment_rejected,
            CancelJob: self._cancel_job,
            FailJob: self._fail_job,
            TimerFired: self._timer_fired,
            **dict.fromkeys(get_args(CheckpointEvent), self._checkpoint_event),
        }

    # -- for the JobMaster -------------------------------------------------------------------------

    @property
    def state(self) -> JobState:
        return self.job.state

    @property
    def job_graph(self) -> JobGraph:
        """The job at its present parallelism."""
        return self._plan.job_graph

    @property
    def graph(self) -> ExecutionGraph:
        """The subtasks and their attempts, as the present plan has them."""
        return self._plan.graph

    @property
    def runs_in_parts(self) -> bool:
        """Whether the job makes progress with any number of slots."""
        return self._plan.plan.runs_in_parts

    def handle(self, event: Event, now: float) -> list[Command]:
        """What follows from the event, in the order in which it must be carried out. ``now`` is the
        monotonic time in seconds."""
        logged = self.events.record(event, now)
        self._now = self.graph.now = now
        self.graph.touched.clear()
        self.slots.changed.clear()
        self._handlers[type(event)](event)
        self._settle()
        commands = self._commands[:]
        self._commands.clear()
        logged.commands = tuple(type(command).__name__ for command in commands)
        return commands

    def check_invariants(self, everything: bool = True) -> None:
        """Raises EngineError when the job's parts contradict each other. ``everything=False`` looks
        only at what the last event changed."""
        check(
            SchedulerParts(
                self.graph, self.slots, self.job, self.failovers.pending, self.checkpoints
            ),
            everything,
        )

    def details(self) -> SchedulerDetails:
        return SchedulerDetails(
            self.state,
            self.job.cause.error,
            vertex_summaries(self.graph),
            self.failovers.restarts,
            len(self.slots.by_allocation),
            len(self.slots.by_request),
            tuple(self.failovers.failures),
            self.checkpoints.summary(),
        )

    def report(self) -> SchedulerReport:
        """All there is to tell of the job."""
        kept = [checkpoint.checkpoint_id for checkpoint in self.checkpoints.completed.own]
        attempts = tuple(
            tuple(map(execution_summary, (vertex.execution, *vertex.earlier)))
            for vertex in self.graph.vertices
        )
        return SchedulerReport(
            self.details(), attempts, self.statistics.report(kept), self.events.summaries()
        )

    def location_of(self, attempt_id: ExecutionAttemptId) -> TaskManagerLocation | None:
        """Where the attempt runs; None when it is not current, or not deployed, or ended."""
        execution = self.graph.current(attempt_id)
        return execution.location if execution is not None and not execution.is_terminal else None

    def needs_results(self, attempt_id: ExecutionAttemptId) -> bool:
        """Whether the blocking results of the attempt have to be kept."""
        execution = self.graph.current(attempt_id)
        return execution is not None and (execution.keeps_results or not execution.is_terminal)

    def __repr__(self) -> str:
        return (
            f"<Scheduler of {self.job_graph.name!r}: {self.state.name}, {self.graph.size} "
            f"subtasks, {len(self.slots.by_key)} slots>"
        )

    # -- events ------------------------------------------------------------------------------------

    def _start(self, event: StartScheduling) -> None:
        if self.state is _J.INITIALIZING:
            self.graph.begin(self._now)
            self.job.move(_J.CREATED)
            self.job.move(_J.RUNNING)
            self.checkpoints.start(event.time_ms, self._now)
            self._commands += self._plan.states.start()
            self._attempts.schedule_first()

    def _parallelism_decided(self, event: ParallelismDecided) -> None:
        self._plan.decide(event.parallelism)
        if self.state is _J.INITIALIZING:
            self._plan.replace(self._now)

    def _slot_request_failed(self, event: SlotRequestFailed) -> None:
        slot = self.slots.drop_request(event.request_id)
        if slot is not None:
            self.failovers.fail_attempts(list(slot.users), event.error, self._now)

    def _slot_lost(self, event: SlotLost) -> None:
        slot = self.slots.drop_allocation(event.allocation_id)
        if slot is None:
            return
        if isinstance(event.error, TaskExecutorLostError) and slot.location is not None:
            self._attempts.lose_results_on(slot.location.resource_id)
        self.failovers.fail_attempts(list(slot.users), event.error, self._now)
        self.slots.replace_slot(slot)

    def _task_state_changed(self, event: TaskStateChanged) -> None:
        execution = self.graph.current(event.attempt_id)
        if execution is None or execution.is_terminal or execution.location is None:
            return
        if event.state is _S.FINISHED:
            self._attempts.finish(execution)
            self.checkpoints.attempt_finished(execution.attempt_id)
        elif event.state is _S.CANCELED and execution.state is _S.CANCELING:
            self._attempts.end(execution, _S.CANCELED)
        elif event.state is _S.CANCELED:
            error = event.error or EngineError(
                f"{execution} was cancelled by its TaskExecutor, which the scheduler had not "
                "asked for"
            )
            self.failovers.fail_attempts([execution], error, self._now)
        elif event.state is _S.FAILED:
            self._task_failed(
                execution, event.error or EngineError(f"{execution} failed without saying why")
            )
        elif event.state in (_S.INITIALIZING, _S.RUNNING) and execution.machine.lifecycle.allows(
            execution.state, event.state
        ):
            self._attempts.advance(execution, event.state)

    def _task_failed(self, execution: Execution, error: BaseException) -> None:
        if execution.state is _S.CANCELING:
            self.failovers.failed_while_cancelled(execution, error, self._now)
        else:
            mark_lost_results(execution, error)
            self.failovers.fail_attempts([execution], error, self._now)

    def _deployment_rejected(self, event: DeploymentRejected) -> None:
        execution = self.graph.current(event.attempt_id)
        if execution is not None and not execution.is_terminal and execution.location is not None:
            # perhaps only the answer was lost, and the task runs
            if isinstance(event.error, RpcError):
                self._commands.append(CancelTask(execution.location, execution.attempt_id))
            self.failovers.fail_attempts([execution], event.error, self._now)

    def _cancel_job(self, event: CancelJob) -> None:
        if self.job.allows(_J.CANCELLING):
            self.job.move(_J.CANCELLING)
            self.failovers.cancel_everything()

    def _fail_job(self, event: FailJob) -> None:
        self.failovers.fail_job(event.error, self._now)

    def _timer_fired(self, event: TimerFired) -> None:
        self.failovers.timer_fired(event)
        self.checkpoints.timer_fired(event.timer_id, self._now)

    def _checkpoint_event(self, event: CheckpointEvent) -> None:
        self.checkpoints.handle(event, self._now)

    # -- what every event ends with ----------------------------------------------------------------

    def _settle(self) -> None:
        self.checkpoints.settle(
            self._now,
            self.failovers.last_failure if self.state in (_J.RESTARTING, _J.FAILING) else None,
        )
        # else there may be a newer checkpoint than the one that tasks would go back to
        if not self.checkpoints.lingering:
            self.failovers.restart_ready(self._now)
        self.slots.release_idle_slots()
        self._attempts.deploy_complete()
        self._end_job()

    def _end_job(self) -> None:
        if (
            self.job.is_terminal
            or self.state is _J.INITIALIZING
            or self.graph.count(*TERMINAL) < self.graph.size
        ):
            return
        if self.state is _J.CANCELLING:
            self._end_in(_J.CANCELED)
        elif self.state is _J.FAILING:
            self._end_in(_J.FAILED)
        elif self.state is _J.RUNNING and self.graph.count(_S.FINISHED) == self.graph.size:
            self._end_in(_J.FINISHED)

    def _end_in(self, state: JobState) -> None:
        self.checkpoints.job_ends(state)
        self.job.move(state)
