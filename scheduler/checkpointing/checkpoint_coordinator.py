"""The checkpoint coordinator of one job: events in, commands out, like the scheduler that it is a
part of.

A checkpoint is triggered, acknowledged by all that run, stored, and complete then. Only a
checkpoint that is complete is restored from, and only for such a one sinks commit. So a checkpoint
is aborted, wherever it stands, when a failover begins, and what the store says of it later is not
heard: otherwise the job might go back to an older checkpoint after sinks have committed for this
one.

A checkpoint that is aborted while it is stored may be found all the same, by a JobManager that
takes the job over. That does no harm as long as no task has gone back behind it: one that has may
have cleared away what its sink had prepared for it. So a failover goes on only when it is gone.

A savepoint goes the same way, with these differences. It begins when nothing else is under way, and
nothing else begins beside it. It belongs to whoever asked for it: the job does not go back to it,
sinks do not commit for it, and its failure is told to who asked and counts as no failure of a
checkpoint. But with the savepoint that stops the job, sinks commit; so from then on the job ends,
whatever fails: all tasks start from the savepoint, have their sinks commit, and end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flinkpy.core.elements import ALIGNED_CHECKPOINT, CheckpointOptions, SnapshotType
from flinkpy.core.errors import CheckpointError, SavepointRestoreError
from flinkpy.core.ids import ExecutionAttemptId
from flinkpy.core.lifecycles import CheckpointState, ExecutionState, JobState
from flinkpy.core.options.checkpointing import CheckpointMode
from flinkpy.graph.checkpoints import CompletedCheckpoint, shared_files
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.checkpointing.aborted_checkpoints import AbortedCheckpoints
from flinkpy.scheduler.checkpointing.checkpoint_failure_manager import CheckpointFailureManager
from flinkpy.scheduler.checkpointing.checkpoint_numbers import CheckpointNumbers
from flinkpy.scheduler.checkpointing.checkpoint_plan import checkpoint_plan, may_checkpoint
from flinkpy.scheduler.checkpointing.checkpoint_schedule import CheckpointSchedule
from flinkpy.scheduler.checkpointing.checkpoint_statistics import CheckpointSummary
from flinkpy.scheduler.checkpointing.checkpoint_stats_tracker import CheckpointStatsTracker
from flinkpy.scheduler.checkpointing.completed_checkpoint_store import CompletedCheckpointStore
from flinkpy.scheduler.checkpointing.pending_checkpoint import PendingCheckpoint
from flinkpy.scheduler.checkpointing.requested_snapshots import RequestedSnapshots
from flinkpy.scheduler.checkpointing.state_assignment import (
    check_restorable,
    has_rescaled_in_flight,
    take_over_max_parallelism,
)
from flinkpy.scheduler.execution_graph import GraphInUse
from flinkpy.scheduler.job_lifecycle import JobLifecycle
from flinkpy.scheduler.protocol import (
    CheckpointAcknowledged,
    CheckpointAwaited,
    CheckpointDeclined,
    CheckpointDiscarded,
    CheckpointEvent,
    CheckpointStored,
    CheckpointStoreFailed,
    Command,
    CoordinatorSnapshot,
    DiscardCheckpoint,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    RestoreFrom,
    SetTimer,
    SnapshotRequested,
    StoreCheckpoint,
    TriggerCheckpoint,
)
from flinkpy.scheduler.restart import SchedulerConfig

_C = CheckpointState


class CheckpointCoordinator:
    """Owns the checkpoints under way (``pending``, by id), and those that were ``requested``. A
    failover waits for those in ``lingering``, which were aborted while they were stored, and whose
    files may still exist. ``fail_job(error)`` is called when too many have failed; ``statistics``
    records all that happens."""

    TIMEOUT = "checkpoint-timeout"  # a timer
    EARLY_S = 0.001  # that a timer may fire before its time

    def __init__(
        self,
        config: SchedulerConfig,
        plan: GraphInUse,
        job: JobLifecycle,
        completed: CompletedCheckpointStore,
        fail_job: Callable[[BaseException], None],
        commands: list[Command],
        statistics: CheckpointStatsTracker,
    ) -> None:
        self._settings = settings = config.checkpoints
        self._plan = plan
        self._job = job
        self.completed = completed
        self._failures = CheckpointFailureManager(settings.tolerable_failures, fail_job)
        self._commands = commands
        self._statistics = statistics
        self.pending: dict[int, PendingCheckpoint] = {}
        self._aborted = AbortedCheckpoints()
        self._numbers = CheckpointNumbers(config.generation)
        # an earlier JobMaster, or the test write when the job started, may have left files
        completed.leaves_files = config.generation > 0 or settings.interval_s is not None
        self._schedule = CheckpointSchedule(settings, commands)
        self.requested = RequestedSnapshots(
            plan.graph.job_graph, settings.interval_s is not None, settings.timeout_s, commands
        )
        self._now = 0.0
        self._summary = CheckpointSummary()
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            RestoreFrom: self._restore_from,
            CoordinatorSnapshot: self._coordinators_saved,
            CheckpointAcknowledged: self._acknowledged,
            CheckpointDeclined: self._declined,
            CheckpointAwaited: lambda event: self._schedule.fall_due(),
            CheckpointStored: self._stored,
            CheckpointStoreFailed: self._store_failed,
            CheckpointDiscarded: lambda event: self._aborted.is_gone(event.checkpoint_id),
            SnapshotRequested: lambda event: self.requested.add(event, self._job.state, self._now),
        }

    # -- for the scheduler -------------------------------------------------------------------------

    @property
    def lingering(self) -> set[int]:
        return self._aborted.lingering

    def start(self, time_ms: int, now: float) -> None:
        """The job begins, at this time of day. A job with blocking results takes no checkpoints:
        what was finished is not lost with a failure."""
        self._statistics.start(time_ms, now)
        if not any(result.is_blocking for result in self._plan.graph.results):
            self._schedule.wait_interval()

    def handle(self, event: CheckpointEvent, now: float) -> None:
        self._now = now
        self._handlers[type(event)](event)

    def timer_fired(self, timer_id: str, now: float) -> None:
        """Ignores timers that belong to other parts of the scheduler."""
        self._now = now
        self._schedule.timer_fired(timer_id)
        self.requested.timer_fired(timer_id, now)
        if timer_id == self.TIMEOUT:
            self._expire()

    def attempt_finished(self, attempt_id: ExecutionAttemptId) -> None:
        """Aborts the checkpoints that this attempt has not acknowledged, as it never will now. The
        next checkpoint, without this attempt, is due at once."""
        for pending in [each for each in self.pending.values() if attempt_id in each.awaited]:
            self._abort(pending, f"{attempt_id} has finished")
            if pending.is_requested:
                self.requested.try_again()
            else:
                self._schedule.fall_due()

    def settle(self, now: float, failure: BaseException | None = None) -> None:
        """After every event: aborts all when the job does not run as a whole any more, after this
        failure, and triggers what is due as soon as it can be."""
        self._now = now
        if self._job.state is not JobState.RUNNING:
            self._abort_all(f"the job is {self._job.state.name}", failure)
            self.completed.job_goes_on()
        elif self.requested.waiting and not self.pending and may_checkpoint(self._plan.graph):
            request = self.requested.begin()
            self._trigger(request.options, is_requested=True)
        elif (
            self._schedule.is_due
            and not self.requested.blocks_checkpoints
            and len(self.pending) < self._settings.max_concurrent
            and may_checkpoint(self._plan.graph)
        ):
            self._trigger()

    def job_ends(self, state: JobState) -> None:
        """In this state, which is terminal: nothing stays behind but what is to be retained."""
        self._abort_all(f"the job is {state.name}", self._job.cause.error, state)
        self.completed.job_ends(state)

    def summary(self) -> CheckpointSummary:
        summary, request = self._summary, self.requested.under_way
        for pending in self.pending.values():
            if pending.is_requested and request is not None:
                subtasks = len(pending.plan.acknowledge)
                return replace(
                    summary,
                    requested_id=request.request_id,
                    requested_subtasks=subtasks,
                    requested_acknowledged=subtasks - len(pending.awaited),
                )
        return summary

    # -- the way of a checkpoint -------------------------------------------------------------------

    def _trigger(
        self, options: CheckpointOptions = ALIGNED_CHECKPOINT, *, is_requested: bool = False
    ) -> None:
        plan = checkpoint_plan(self._plan.graph)
        checkpoint_id = self._numbers.take()
        timestamp_ms = self._statistics.time_ms(self._now)
        job_graph = self._plan.graph.job_graph
        sources = tuple(
            operator_id for vertex in job_graph.vertices for operator_id, _ in vertex.sources
        )
        if not self.pending:
            self._commands.append(SetTimer(self.TIMEOUT, self._settings.timeout_s))
        if not options.snapshot_type.is_savepoint:
            self.completed.leaves_files = True
            timeout_ms = (
                None if self._must_align(job_graph) else self._settings.alignment_timeout_ms
            )
            is_tracked = self._settings.mode is CheckpointMode.AT_LEAST_ONCE
            options = replace(
                options,
                builds_on=self.completed.base_id,
                alignment_timeout_ms=timeout_ms,
                is_tracked=is_tracked,
            )
        self.pending[checkpoint_id] = pending = PendingCheckpoint(
            checkpoint_id,
            timestamp_ms,
            self._now,
            plan,
            job_graph,
            options,
            is_requested=is_requested,
        )
        self._statistics.triggered(pending)
        if options.builds_on is not None:
            self.completed.shared.build_on(checkpoint_id, options.builds_on)
        self._commands.append(
            TriggerCheckpoint(checkpoint_id, timestamp_ms, plan.trigger, sources, options)
        )
        if options.snapshot_type is SnapshotType.TERMINATE:
            self.completed.job_drains()
        elif not options.snapshot_type.is_savepoint:
            self._schedule.wait_interval()

    def _acknowledged(self, event: CheckpointAcknowledged) -> None:
        pending = self.pending.get(event.checkpoint_id) or self._aborted.get(event.checkpoint_id)
        if pending is not None and pending.acknowledge(event.attempt_id, event.snapshot):
            self.completed.shared.use(event.checkpoint_id, shared_files(event.snapshot.handles()))
            self._statistics.acknowledged(
                event.checkpoint_id, event.attempt_id, event.snapshot, event.metrics, self._now
            )
            self._go_on(pending)

    def _coordinators_saved(self, event: CoordinatorSnapshot) -> None:
        pending = self.pending.get(event.checkpoint_id) or self._aborted.get(event.checkpoint_id)
        if pending is not None and pending.acknowledge_coordinators(event.states):
            self._statistics.coordinators_saved(event.checkpoint_id, event.states)
            self._go_on(pending)

    def _go_on(self, pending: PendingCheckpoint) -> None:
        """It has got something that it awaited."""
        if pending.state is _C.ABORTED:
            late = pending.take_contents()
            if any(late.handles()):
                self._discard(late, pending.options.target)
        elif pending.is_fully_acknowledged:
            pending.move(_C.STORING)
            request = self.requested.under_way if pending.options.snapshot_type.stops_job else None
            stops = None if request is None else replace(request, options=pending.options)
            self._commands.append(
                StoreCheckpoint(pending.contents(), pending.options.target, stops)
            )

    def _stored(self, event: CheckpointStored) -> None:
        pending = self.pending.get(event.checkpoint_id)
        if pending is not None and pending.state is _C.STORING:
            self._complete(pending, replace(pending.contents(), location=event.location))

    def _complete(self, pending: PendingCheckpoint, checkpoint: CompletedCheckpoint) -> None:
        pending.move(_C.COMPLETED)
        del self.pending[pending.checkpoint_id]
        self._statistics.completed(checkpoint, self._now)
        if pending.is_requested:
            self.requested.succeed(checkpoint)
        if pending.options.snapshot_type.stops_job:
            self.completed.add_savepoint(checkpoint)
            self._commands.append(
                NotifyCheckpointComplete(checkpoint.checkpoint_id, self._running(pending))
            )
        elif not pending.options.snapshot_type.is_savepoint:
            self._complete_checkpoint(pending, checkpoint)

    def _complete_checkpoint(
        self, pending: PendingCheckpoint, checkpoint: CompletedCheckpoint
    ) -> None:
        for earlier in [
            each for each in self.pending.values() if each.checkpoint_id < pending.checkpoint_id
        ]:
            self._abort(earlier, f"checkpoint {pending.checkpoint_id} was complete before")
        self._failures.checkpoint_succeeded()
        self._summary = replace(self._summary, latest_id=checkpoint.checkpoint_id)
        self.completed.add(checkpoint)
        self._commands.append(
            NotifyCheckpointComplete(checkpoint.checkpoint_id, self._running(pending))
        )
        self._schedule.wait_pause()

    # -- the ways it can end -----------------------------------------------------------------------

    def _declined(self, event: CheckpointDeclined) -> None:
        pending = self.pending.get(event.checkpoint_id)
        if pending is not None and event.attempt_id in pending.awaited:
            execution = self._plan.graph.current(event.attempt_id)
            who = event.attempt_id if execution is None else execution.vertex
            self._fail(pending, f"{who} declined it: {event.reason}")

    def _store_failed(self, event: CheckpointStoreFailed) -> None:
        pending = self.pending.get(event.checkpoint_id)
        if pending is not None:
            self._fail(pending, f"it could not be stored: {event.error}", event.error)

    def _expire(self) -> None:
        for pending in list(self.pending.values()):
            if pending.rest_s(self._now, self._settings.timeout_s) <= self.EARLY_S:
                self._fail(pending, f"it was not complete within {self._settings.timeout_s} s")
        if self.pending:
            rests = [
                pending.rest_s(self._now, self._settings.timeout_s)
                for pending in self.pending.values()
            ]
            self._commands.append(SetTimer(self.TIMEOUT, min(rests)))

    def _fail(
        self, pending: PendingCheckpoint, why: str, cause: BaseException | None = None
    ) -> None:
        """It ends for a reason of its own. That counts for a checkpoint. A job whose sources were
        told to end their input cannot go on as it was."""
        self._abort(pending, why)
        if pending.is_requested:
            self.requested.fail(why)
        if pending.options.snapshot_type is SnapshotType.TERMINATE:
            self._failures.fail_job(
                CheckpointError(
                    f"the job was being drained to stop with a savepoint, which failed: {why}"
                )
            )
        if pending.options.snapshot_type.is_savepoint:
            return
        self._failures.checkpoint_failed(pending.checkpoint_id, why, cause)

    def _abort_all(
        self, why: str, cause: BaseException | None, state: JobState | None = None
    ) -> None:
        for pending in list(self.pending.values()):
            self._abort(pending, why)
            if pending.is_requested:
                self.requested.fail(why if cause is None else f"{why}: {cause}")
        self.requested.job_left(state or self._job.state, cause)

    def _abort(self, pending: PendingCheckpoint, why: str) -> None:
        kind, was_storing = pending.options.snapshot_type, pending.state is _C.STORING
        lingers = was_storing and (kind.stops_job or not kind.is_savepoint)
        pending.move(_C.ABORTED, why)
        del self.pending[pending.checkpoint_id]
        self._statistics.failed(pending.checkpoint_id, why, self._now)
        self._aborted.add(pending, lingers=lingers)
        running = self._running(pending)
        if running:
            self._commands.append(NotifyCheckpointAborted(pending.checkpoint_id, running))
        self._discard(pending.take_contents(), pending.options.target, is_awaited=lingers)

    def _discard(
        self, checkpoint: CompletedCheckpoint, target: str | None, *, is_awaited: bool = False
    ) -> None:
        """What was acknowledged of it. Files that it has in common with others stay."""
        self._commands += [
            DiscardCheckpoint(checkpoint, target, is_awaited),
            *self.completed.shared.release(checkpoint.checkpoint_id),
        ]

    # -- the rest ----------------------------------------------------------------------------------

    def _restore_from(self, event: RestoreFrom) -> None:
        try:
            check_restorable(event.checkpoint, self._plan.graph.job_graph, event.allow_non_restored)
        except SavepointRestoreError as error:
            self._failures.fail_job(error)
            return
        take_over_max_parallelism(event.checkpoint, self._plan.graph.job_graph)
        self.completed.restore(event)
        if event.stops is not None:
            self.completed.add_savepoint(event.checkpoint)
            self.requested.go_on_stopping(event.stops, event.checkpoint)
        self._numbers.go_on_after(event.checkpoint.checkpoint_id)
        if self._numbers.generation:
            self._summary = replace(self._summary, latest_id=event.checkpoint.checkpoint_id)

    def _must_align(self, job_graph: JobGraph) -> bool:
        """Whether tasks have started from records in flight that go another way now. Their
        consumers align these; a barrier that overtakes would end that early."""
        latest = self.completed.latest
        return latest is not None and has_rescaled_in_flight(latest, job_graph)

    def _running(self, pending: PendingCheckpoint) -> tuple[ExecutionAttemptId, ...]:
        """Those of its attempts that still run."""
        executions = map(self._plan.graph.current, pending.plan.acknowledge)
        return tuple(
            execution.attempt_id
            for execution in executions
            if execution is not None and execution.state is ExecutionState.RUNNING
        )

    def __repr__(self) -> str:
        return f"<CheckpointCoordinator {list(self.pending.values())}>"
