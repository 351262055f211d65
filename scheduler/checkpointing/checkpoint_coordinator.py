"""The checkpoint coordinator of one job: events in, commands out, like the scheduler that it is a part of.

A checkpoint is triggered, acknowledged by all that run, stored, and complete then. Only a checkpoint that is complete is restored from, and only for
such a one sinks commit. So a checkpoint is aborted, wherever it stands, when a failover begins, and what the store says of it later is not
heard: otherwise the job might go back to an older checkpoint after sinks have committed for this one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flinkpy.core.errors import CheckpointError, SavepointRestoreError
from flinkpy.core.ids import ExecutionAttemptId
from flinkpy.core.lifecycles import CheckpointState, ExecutionState, JobState
from flinkpy.core.options.checkpointing import CheckpointSettings
from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.scheduler.checkpointing.checkpoint_plan import checkpoint_plan, may_checkpoint
from flinkpy.scheduler.checkpointing.checkpoint_schedule import CheckpointSchedule
from flinkpy.scheduler.checkpointing.completed_checkpoint_store import CompletedCheckpointStore
from flinkpy.scheduler.checkpointing.pending_checkpoint import PendingCheckpoint
from flinkpy.scheduler.checkpointing.state_assignment import check_restorable
from flinkpy.scheduler.details import CheckpointSummary
from flinkpy.scheduler.execution_graph import ExecutionGraph
from flinkpy.scheduler.job_lifecycle import JobLifecycle
from flinkpy.scheduler.protocol import (
    CheckpointAcknowledged,
    CheckpointAwaited,
    CheckpointDeclined,
    CheckpointStored,
    CheckpointStoreFailed,
    Command,
    CoordinatorSnapshot,
    DiscardCheckpoint,
    DiscardOtherCheckpoints,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    RestoreFrom,
    SetTimer,
    StoreCheckpoint,
    TriggerCheckpoint,
)

_C = CheckpointState


class CheckpointCoordinator:
    """Owns the checkpoints under way (``pending``, by id). ``fail_job(error)`` is told when too many have failed."""

    TIMEOUT = "checkpoint-timeout"  # a timer
    EARLY_S = 0.001  # that a timer may fire before its time
    ABORTED_KEPT = 16  # of which acknowledgements are still expected, late
    EVENTS = (RestoreFrom, CoordinatorSnapshot, CheckpointAcknowledged, CheckpointDeclined, CheckpointAwaited, CheckpointStored,
              CheckpointStoreFailed)

    def __init__(
        self, settings: CheckpointSettings, graph: ExecutionGraph, job: JobLifecycle, completed: CompletedCheckpointStore,
        fail_job: Callable[[BaseException], None], commands: list[Command],
    ) -> None:
        self._settings, self._graph, self._job, self.completed = settings, graph, job, completed
        self._fail_job, self._commands = fail_job, commands
        self._sources = tuple(operator_id for vertex in graph.job_graph.vertices for operator_id, _ in vertex.sources)
        self.pending: dict[int, PendingCheckpoint] = {}
        self._aborted: dict[int, PendingCheckpoint] = {}
        self._next_id, self._failures_in_a_row = 1, 0
        self._has_triggered = False
        self._schedule = CheckpointSchedule(settings, commands)
        self._zero_ms = 0.0  # the time of day when ``now`` was 0
        self._now = 0.0
        self._summary = CheckpointSummary()
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            RestoreFrom: self._restore_from, CoordinatorSnapshot: self._coordinators_saved, CheckpointAcknowledged: self._acknowledged,
            CheckpointDeclined: self._declined, CheckpointAwaited: lambda event: self._schedule.fall_due(),
            CheckpointStored: self._stored, CheckpointStoreFailed: self._store_failed,
        }

    # -- for the scheduler -------------------------------------------------------------------------------------------------

    def start(self, time_ms: int, now: float) -> None:
        """The job begins, at this time of day. A job with blocking results takes no checkpoints: what was finished is not lost with a failure."""
        self._zero_ms = time_ms - now * 1000
        if not any(result.is_blocking for result in self._graph.results):
            self._schedule.wait_interval()

    def handle(self, event: Any, now: float) -> None:
        """One of ``EVENTS``."""
        self._now = now
        self._handlers[type(event)](event)

    def timer_fired(self, timer_id: str, now: float) -> None:
        """Timers of others are not heard."""
        self._now = now
        self._schedule.timer_fired(timer_id)
        if timer_id == self.TIMEOUT:
            self._expire()

    def attempt_finished(self, attempt_id: ExecutionAttemptId) -> None:
        """It will not acknowledge what it has not acknowledged. The next checkpoint, without it, is due at once."""
        for pending in [each for each in self.pending.values() if attempt_id in each.awaited]:
            self._abort(pending, f"{attempt_id} has finished")
            self._schedule.fall_due()

    def settle(self, now: float) -> None:
        """After every event: aborts all when the job does not run as a whole any more, and triggers what is due as soon as it can be."""
        self._now = now
        if self._job.state is not JobState.RUNNING:
            self._abort_all(f"the job is {self._job.state.name}")
        elif self._schedule.is_due and len(self.pending) < self._settings.max_concurrent and may_checkpoint(self._graph):
            self._trigger()

    def job_ends(self, state: JobState) -> None:
        """In this state, which is terminal: nothing stays behind but what is to be retained."""
        self._abort_all(f"the job is {state.name}")
        self.completed.job_ends(state)
        if self._has_triggered:
            kept = tuple(checkpoint.checkpoint_id for checkpoint in self.completed.own)
            self._commands.append(DiscardOtherCheckpoints(kept))

    def summary(self) -> CheckpointSummary:
        return replace(self._summary, in_progress=len(self.pending))

    # -- the way of a checkpoint ---------------------------------------------------------------------------------------------

    def _trigger(self) -> None:
        plan, checkpoint_id, timestamp_ms = checkpoint_plan(self._graph), self._next_id, round(self._zero_ms + self._now * 1000)
        self._next_id += 1
        self._has_triggered = True
        if not self.pending:
            self._commands.append(SetTimer(self.TIMEOUT, self._settings.timeout_s))
        self.pending[checkpoint_id] = PendingCheckpoint(checkpoint_id, timestamp_ms, self._now, plan, self._graph.job_graph)
        self._commands.append(TriggerCheckpoint(checkpoint_id, timestamp_ms, plan.trigger, self._sources))
        self._schedule.wait_interval()

    def _acknowledged(self, event: CheckpointAcknowledged) -> None:
        pending = self.pending.get(event.checkpoint_id) or self._aborted.get(event.checkpoint_id)
        if pending is not None and pending.acknowledge(event.attempt_id, event.snapshot):
            self._go_on(pending)

    def _coordinators_saved(self, event: CoordinatorSnapshot) -> None:
        pending = self.pending.get(event.checkpoint_id) or self._aborted.get(event.checkpoint_id)
        if pending is not None and pending.acknowledge_coordinators(event.states):
            self._go_on(pending)

    def _go_on(self, pending: PendingCheckpoint) -> None:
        """It has got something that it awaited."""
        if pending.state is _C.ABORTED:
            late = pending.take_contents()
            if any(late.handles()):
                self._commands.append(DiscardCheckpoint(late))
        elif pending.is_fully_acknowledged:
            pending.move(_C.STORING)
            self._commands.append(StoreCheckpoint(pending.contents()))

    def _stored(self, event: CheckpointStored) -> None:
        pending = self._storing(event.checkpoint_id)
        if pending is not None:
            self._complete(pending, replace(pending.contents(), location=event.location))

    def _complete(self, pending: PendingCheckpoint, checkpoint: CompletedCheckpoint) -> None:
        pending.move(_C.COMPLETED)
        del self.pending[pending.checkpoint_id]
        for earlier in [each for each in self.pending.values() if each.checkpoint_id < pending.checkpoint_id]:
            self._abort(earlier, f"checkpoint {pending.checkpoint_id} was complete before")
        self._failures_in_a_row = 0
        self._summary = replace(
            self._summary, completed=self._summary.completed + 1, latest_id=checkpoint.checkpoint_id, latest_size=checkpoint.size,
            latest_duration_s=self._now - pending.started)
        self.completed.add(checkpoint)
        self._commands.append(NotifyCheckpointComplete(checkpoint.checkpoint_id, self._running(pending)))
        self._schedule.wait_pause()

    # -- the ways it can end -------------------------------------------------------------------------------------------------

    def _declined(self, event: CheckpointDeclined) -> None:
        pending = self.pending.get(event.checkpoint_id)
        if pending is not None and event.attempt_id in pending.awaited:
            execution = self._graph.current(event.attempt_id)
            who = event.attempt_id if execution is None else execution.vertex
            self._fail(pending, f"{who} declined it: {event.reason}")

    def _store_failed(self, event: CheckpointStoreFailed) -> None:
        pending = self.pending.get(event.checkpoint_id)
        if pending is not None:
            self._fail(pending, f"it could not be stored: {event.error}", event.error)

    def _expire(self) -> None:
        for pending in list(self.pending.values()):
            if self._rest_s(pending) <= self.EARLY_S:
                self._fail(pending, f"it was not complete within {self._settings.timeout_s} s")
        if self.pending:
            self._commands.append(SetTimer(self.TIMEOUT, min(map(self._rest_s, self.pending.values()))))

    def _rest_s(self, pending: PendingCheckpoint) -> float:
        return pending.started + self._settings.timeout_s - self._now

    def _fail(self, pending: PendingCheckpoint, why: str, cause: BaseException | None = None) -> None:
        """It ends for a reason of its own. That counts."""
        self._abort(pending, why)
        self._failures_in_a_row += 1
        if self._failures_in_a_row > self._settings.tolerable_failures:
            count, tolerated = self._failures_in_a_row, self._settings.tolerable_failures
            failed = "a checkpoint has" if count == 1 else f"{count} checkpoints in a row have"
            error = CheckpointError(
                f"{failed} failed, and the job tolerates {tolerated}; checkpoint {pending.checkpoint_id}: {why}")
            error.__cause__ = cause
            self._failures_in_a_row = 0
            self._fail_job(error)

    def _abort_all(self, why: str) -> None:
        for pending in list(self.pending.values()):
            self._abort(pending, why)

    def _abort(self, pending: PendingCheckpoint, why: str) -> None:
        pending.move(_C.ABORTED, why)
        del self.pending[pending.checkpoint_id]
        self._aborted[pending.checkpoint_id] = pending
        if len(self._aborted) > self.ABORTED_KEPT:
            del self._aborted[next(iter(self._aborted))]
        self._summary = replace(self._summary, failed=self._summary.failed + 1)
        running = self._running(pending)
        if running:
            self._commands.append(NotifyCheckpointAborted(pending.checkpoint_id, running))
        self._commands.append(DiscardCheckpoint(pending.take_contents()))

    # -- the rest --------------------------------------------------------------------------------------------------------------

    def _restore_from(self, event: RestoreFrom) -> None:
        try:
            check_restorable(event.checkpoint, self._graph.job_graph, event.allow_non_restored)
        except SavepointRestoreError as error:
            self._fail_job(error)
            return
        self.completed.restore(event.checkpoint, event.claim)
        self._next_id = event.checkpoint.checkpoint_id + 1

    def _storing(self, checkpoint_id: int) -> PendingCheckpoint | None:
        pending = self.pending.get(checkpoint_id)
        return pending if pending is not None and pending.state is _C.STORING else None

    def _running(self, pending: PendingCheckpoint) -> tuple[ExecutionAttemptId, ...]:
        """Those of its attempts that still run."""
        executions = map(self._graph.current, pending.plan.acknowledge)
        return tuple(execution.attempt_id for execution in executions if execution is not None and execution.state is ExecutionState.RUNNING)

    def __repr__(self) -> str:
        return f"<CheckpointCoordinator {list(self.pending.values())}>"
