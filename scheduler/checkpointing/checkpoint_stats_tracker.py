"""Keeps what is told of a job's checkpoints: counts over all of them, and the latest few in
full."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import replace

from flinkpy.core.ids import ExecutionAttemptId, JobVertexId, OperatorId
from flinkpy.core.lifecycles import CheckpointState
from flinkpy.graph.checkpoint_messages import CheckpointMetrics
from flinkpy.graph.checkpoints import CompletedCheckpoint, StateHandle, SubtaskSnapshot
from flinkpy.graph.job_graph import JobGraph
from flinkpy.metrics.stats_summary import RunningStats
from flinkpy.scheduler.checkpointing.checkpoint_statistics import (
    CheckpointsReport,
    CheckpointStatistics,
    RestoredCheckpoint,
    SubtaskStatistics,
    VertexStatistics,
)
from flinkpy.scheduler.checkpointing.pending_checkpoint import PendingCheckpoint

SUMMARIZED = ("state_size", "written", "in_flight", "duration_ms")


class CheckpointStatsTracker:
    """Tracks the checkpoints of one job. ``now`` is the monotonic time in seconds, as in the
    scheduler; the statistics have the time of day. ``kept`` checkpoints are in the history, those
    under way among them."""

    def __init__(self, job_graph: JobGraph, kept: int) -> None:
        self._vertices, self._kept = [vertex.id for vertex in job_graph.vertices], kept
        self._zero_ms = 0.0  # the time of day when ``now`` was 0
        self._under_way: dict[int, _CheckpointUnderWay] = {}
        # that have ended, oldest first
        self._history: deque[CheckpointStatistics] = deque(maxlen=kept)
        self._ended: deque[CheckpointStatistics] = deque(maxlen=kept)  # that nobody has taken yet
        self._report = CheckpointsReport()
        self._spread = {name: RunningStats() for name in SUMMARIZED}

    def start(self, time_ms: int, now: float) -> None:
        """The job begins, at this time of day."""
        self._zero_ms = time_ms - now * 1000

    def time_ms(self, now: float) -> int:
        return round(self._zero_ms + now * 1000)

    # -- what happens to checkpoints ---------------------------------------------------------------

    def triggered(self, pending: PendingCheckpoint) -> None:
        self._under_way[pending.checkpoint_id] = _CheckpointUnderWay(pending, self._vertices)

    def acknowledged(
        self,
        checkpoint_id: int,
        attempt_id: ExecutionAttemptId,
        snapshot: SubtaskSnapshot,
        metrics: CheckpointMetrics,
        now: float,
    ) -> None:
        """By one subtask, whose acknowledgement was awaited. What comes late is not told."""
        known = self._under_way.get(checkpoint_id)
        if known is not None:
            known.acknowledge(attempt_id, snapshot, metrics, self.time_ms(now))

    def coordinators_saved(
        self, checkpoint_id: int, states: Mapping[OperatorId, StateHandle]
    ) -> None:
        known = self._under_way.get(checkpoint_id)
        if known is not None:
            known.coordinators_size = sum(handle.length for handle in states.values())

    def completed(self, checkpoint: CompletedCheckpoint, now: float) -> None:
        ended = self._end(
            checkpoint.checkpoint_id, CheckpointState.COMPLETED, now, location=checkpoint.location
        )
        report = replace(self._report, completed=self._report.completed + 1)
        self._report = (
            replace(report, latest_savepoint=ended)
            if ended.options.snapshot_type.is_savepoint
            else replace(report, latest_completed=ended)
        )
        for name, numbers in self._spread.items():
            numbers.add(getattr(ended, name))

    def failed(self, checkpoint_id: int, why: str, now: float) -> None:
        """It was aborted, for whatever reason."""
        ended = self._end(checkpoint_id, CheckpointState.ABORTED, now, failure=why)
        self._report = replace(self._report, failed=self._report.failed + 1, latest_failed=ended)

    def restored(self, checkpoint: CompletedCheckpoint, now: float) -> None:
        """Tasks start from it."""
        location = checkpoint.location
        is_savepoint = location is not None and not location.rstrip("/").rpartition("/")[
            2
        ].startswith("chk-")
        latest = RestoredCheckpoint(
            checkpoint.checkpoint_id, self.time_ms(now), is_savepoint, location
        )
        self._report = replace(
            self._report, restored=self._report.restored + 1, latest_restored=latest
        )

    def _end(
        self,
        checkpoint_id: int,
        state: CheckpointState,
        now: float,
        *,
        location: str | None = None,
        failure: str = "",
    ) -> CheckpointStatistics:
        ended = replace(
            self._under_way.pop(checkpoint_id).statistics(),
            state=state,
            ended_ms=self.time_ms(now),
            location=location,
            failure=failure,
        )
        self._history.append(ended)
        self._ended.append(ended)
        return ended

    def take_ended(self) -> list[CheckpointStatistics]:
        """Those that have ended since the last call; the latest few, if there were many."""
        ended = list(self._ended)
        self._ended.clear()
        return ended

    # -- what is told ------------------------------------------------------------------------------

    def report(self, kept: Collection[int]) -> CheckpointsReport:
        """``kept`` are the numbers of the job's own checkpoints whose files are there. Savepoints
        belong to others."""

        def as_now(checkpoint: CheckpointStatistics) -> CheckpointStatistics:
            was_its_own = (
                checkpoint.state is CheckpointState.COMPLETED
                and not checkpoint.options.snapshot_type.is_savepoint
            )
            return (
                replace(checkpoint, is_discarded=True)
                if was_its_own and checkpoint.checkpoint_id not in kept
                else checkpoint
            )

        known = [*self._history, *(each.statistics() for each in self._under_way.values())]
        newest = [
            as_now(each)
            for each in sorted(known, key=lambda each: each.checkpoint_id, reverse=True)[
                : self._kept
            ]
        ]
        latest = self._report.latest_completed
        return replace(
            self._report,
            in_progress=len(self._under_way),
            history=tuple(newest),
            latest_completed=None if latest is None else as_now(latest),
            summary={name: numbers.summary() for name, numbers in self._spread.items()},
        )

    def __repr__(self) -> str:
        return (
            f"<CheckpointStatsTracker: {self._report.completed} complete, "
            f"{self._report.failed} failed, under way {list(self._under_way)}>"
        )


class _CheckpointUnderWay:
    """What has been heard of it so far."""

    def __init__(self, pending: PendingCheckpoint, vertices: Collection[JobVertexId]) -> None:
        self._pending = pending
        self._subtasks: dict[JobVertexId, list[int]] = {vertex_id: [] for vertex_id in vertices}
        self._acknowledged: dict[JobVertexId, dict[int, SubtaskStatistics]] = {
            vertex_id: {} for vertex_id in vertices
        }
        self.coordinators_size = 0
        for attempt_id in pending.plan.acknowledge:
            self._subtasks[attempt_id.vertex_id].append(attempt_id.subtask_index)

    def acknowledge(
        self,
        attempt_id: ExecutionAttemptId,
        snapshot: SubtaskSnapshot,
        metrics: CheckpointMetrics,
        now_ms: int,
    ) -> None:
        size, written, own = 0, 0, f"{self._pending.checkpoint_id}-"
        for handle in snapshot.handles():
            size += handle.length
            shared = handle.shared_file
            written += handle.length if shared is None or shared.startswith(own) else 0
        index = attempt_id.subtask_index
        self._acknowledged[attempt_id.vertex_id][index] = SubtaskStatistics(
            index, now_ms, size, written, metrics
        )

    def statistics(self) -> CheckpointStatistics:
        pending = self._pending
        vertices = tuple(
            VertexStatistics(
                vertex_id,
                tuple(subtasks),
                tuple(known for _, known in sorted(self._acknowledged[vertex_id].items())),
            )
            for vertex_id, subtasks in self._subtasks.items()
        )
        return CheckpointStatistics(
            pending.checkpoint_id,
            pending.timestamp_ms,
            pending.state,
            pending.options,
            vertices,
            self.coordinators_size,
        )
