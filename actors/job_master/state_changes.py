"""Tells the cluster's event stream what changes in one job."""

from __future__ import annotations

from flinkpy.actors.job_events import EventKind, JobEvent, Publish
from flinkpy.core.clock import Clock
from flinkpy.core.lifecycles import CheckpointState, JobState
from flinkpy.core.secrets.hidden_secrets import without_secrets
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.scheduler import Scheduler


class StateChanges:
    """All calls come from the JobMaster's main thread."""

    def __init__(
        self, job_graph: JobGraph, scheduler: Scheduler, clock: Clock, publish: Publish
    ) -> None:
        self._job_graph = job_graph
        self._scheduler = scheduler
        self._clock = clock
        self._publish = publish

    def job_changed(self, state: JobState, error: BaseException | None) -> None:
        """The job is in a new state."""
        self._tell(
            EventKind.JOB,
            state.name,
            "",
            "" if error is None else f"{type(error).__name__}: {error}",
        )

    def event_handled(self) -> None:
        """The scheduler has handled an event: tells of the attempts that it moved, and of
        checkpoints that have ended."""
        for vertex in sorted(
            self._scheduler.graph.touched, key=lambda each: each.execution.attempt_id
        ):
            execution = vertex.execution
            reason = (
                ""
                if execution.error is None
                else f"{type(execution.error).__name__}: {execution.error}"
            )
            self._tell(
                EventKind.TASK,
                execution.state.name,
                f"{vertex}#{execution.attempt_id.attempt}",
                reason,
            )
        for checkpoint in self._scheduler.statistics.take_ended():
            what = "savepoint" if checkpoint.options.snapshot_type.is_savepoint else "checkpoint"
            state = "COMPLETED" if checkpoint.state is CheckpointState.COMPLETED else "FAILED"
            self._tell(
                EventKind.CHECKPOINT,
                state,
                f"{what} {checkpoint.checkpoint_id}",
                checkpoint.failure,
            )

    def _tell(self, kind: EventKind, state: str, subject: str, reason: str) -> None:
        self._publish(
            JobEvent(
                self._clock.time_ms(),
                kind,
                self._job_graph.job_id,
                self._job_graph.name,
                state,
                subject,
                without_secrets(reason),
            )
        )
