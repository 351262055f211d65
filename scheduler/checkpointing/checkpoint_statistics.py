"""The statistics of a job's checkpoints: frozen values that travel. Times are milliseconds since
1970, sizes are bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flinkpy.core.elements import ALIGNED_CHECKPOINT, CheckpointOptions
from flinkpy.core.ids import JobVertexId
from flinkpy.core.lifecycles import CheckpointState
from flinkpy.graph.checkpoint_messages import CheckpointMetrics
from flinkpy.metrics.stats_summary import StatsSummary


@dataclass(frozen=True, slots=True)
class SubtaskStatistics:
    """How one subtask took part. Of its ``state_size``, ``written`` is what no earlier checkpoint
    has."""

    index: int
    acknowledged_ms: int
    state_size: int
    written: int
    metrics: CheckpointMetrics


@dataclass(frozen=True)
class VertexStatistics:
    """How one vertex takes part: with these subtasks, by index, of which some have acknowledged."""

    vertex_id: JobVertexId
    subtasks: tuple[int, ...]
    acknowledged: tuple[SubtaskStatistics, ...] = ()

    @property
    def missing(self) -> tuple[int, ...]:
        """The subtasks that have not acknowledged."""
        known = {each.index for each in self.acknowledged}
        return tuple(index for index in self.subtasks if index not in known)

    @property
    def latest_ms(self) -> int | None:
        """When the last one so far has acknowledged."""
        return max((each.acknowledged_ms for each in self.acknowledged), default=None)


@dataclass(frozen=True)
class CheckpointStatistics:
    """One checkpoint or savepoint. ``ended_ms`` is when it was complete or aborted, ``failure``
    why; ``coordinators_size`` is the state of the sources' enumerators; ``is_discarded``: its files
    are gone, or go."""

    checkpoint_id: int
    triggered_ms: int
    state: CheckpointState = CheckpointState.PENDING
    options: CheckpointOptions = ALIGNED_CHECKPOINT
    vertices: tuple[VertexStatistics, ...] = ()
    coordinators_size: int = 0
    ended_ms: int | None = None
    location: str | None = None
    failure: str = ""
    is_discarded: bool = False

    @property
    def subtasks(self) -> int:
        """How many take part."""
        return sum(len(vertex.subtasks) for vertex in self.vertices)

    @property
    def acknowledged(self) -> tuple[SubtaskStatistics, ...]:
        return tuple(subtask for vertex in self.vertices for subtask in vertex.acknowledged)

    @property
    def state_size(self) -> int:
        return self.coordinators_size + sum(each.state_size for each in self.acknowledged)

    @property
    def written(self) -> int:
        """The part of the size that no earlier checkpoint has."""
        return self.coordinators_size + sum(each.written for each in self.acknowledged)

    @property
    def in_flight(self) -> int:
        """Bytes of records that barriers have overtaken."""
        return sum(each.metrics.in_flight for each in self.acknowledged)

    @property
    def latest_ms(self) -> int | None:
        """When the last subtask so far has acknowledged."""
        return max((each.acknowledged_ms for each in self.acknowledged), default=None)

    @property
    def duration_ms(self) -> int:
        """Until it ended, or so far until the last acknowledgement."""
        until = self.latest_ms if self.ended_ms is None else self.ended_ms
        return 0 if until is None else max(0, until - self.triggered_ms)


@dataclass(frozen=True)
class RestoredCheckpoint:
    """The checkpoint that tasks last went back to, or started from."""

    checkpoint_id: int
    restored_ms: int
    is_savepoint: bool
    location: str | None


@dataclass(frozen=True)
class CheckpointsReport:
    """A job's checkpoints and savepoints: how many there were, the latest ``history``, newest
    first, and of those that are complete how sizes and durations are spread (``summary``, by the
    name of a property of CheckpointStatistics)."""

    completed: int = 0
    failed: int = 0
    in_progress: int = 0
    restored: int = 0
    history: tuple[CheckpointStatistics, ...] = ()
    latest_completed: CheckpointStatistics | None = None
    latest_savepoint: CheckpointStatistics | None = None
    latest_failed: CheckpointStatistics | None = None
    latest_restored: RestoredCheckpoint | None = None
    summary: Mapping[str, StatsSummary] = field(default_factory=dict)

    @property
    def latest_complete(self) -> CheckpointStatistics | None:
        """The checkpoint or savepoint that was completed last."""
        known = [
            each for each in (self.latest_completed, self.latest_savepoint) if each is not None
        ]
        return max(known, key=lambda each: each.checkpoint_id, default=None)

    def find(self, checkpoint_id: int) -> CheckpointStatistics | None:
        """The checkpoint with that number, if it is still known."""
        return next((each for each in self.known() if each.checkpoint_id == checkpoint_id), None)

    def known(self) -> list[CheckpointStatistics]:
        """Each of which there are details."""
        known = (*self.history, self.latest_completed, self.latest_savepoint, self.latest_failed)
        return list(
            {each.checkpoint_id: each for each in reversed(known) if each is not None}.values()
        )


@dataclass(frozen=True)
class CheckpointSummary:
    """How the job's checkpoints stand. How many there were is in the CheckpointsReport."""

    latest_id: int | None = None  # of the newest that the job could go back to
    requested_id: str | None = None  # of the request whose snapshot is under way
    requested_subtasks: int = 0  # that take part in it
    requested_acknowledged: int = 0  # of these
