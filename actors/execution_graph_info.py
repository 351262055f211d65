"""What a job looks like at one moment, for those who watch it: its states and when it entered them,
its vertices and subtasks, its failures.

Frozen values that travel; times are milliseconds since 1970. As Flink's ExecutionGraphInfo, it is
what the REST endpoint answers from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.graph.deployment import TaskManagerLocation
from flinkpy.scheduler.checkpointing.checkpoint_statistics import (
    CheckpointsReport,
    CheckpointSummary,
)


class TimeShares(NamedTuple):
    """How a subtask spends a second, in milliseconds: Flink's busyTimeMsPerSecond,
    backPressuredTimeMsPerSecond and idleTimeMsPerSecond."""

    busy: int = 0
    back_pressured: int = 0
    idle: int = 0


@dataclass(frozen=True)
class SubtaskInfo:
    """One attempt of a subtask: the current one, with those that ended before it (``earlier``, the
    newest first), or one of these. The counters are those of its last report."""

    index: int
    attempt: int
    state: ExecutionState
    entered_ms: dict[ExecutionState, int]  # when the attempt entered each state that it has been in
    location: TaskManagerLocation | None = None
    records_in: int = 0
    records_out: int = 0
    bytes_in: int | None = None  # None before the first report
    bytes_out: int | None = None
    busy_ms: int = 0  # since the attempt began, and so the next two
    back_pressured_ms: int = 0
    idle_ms: int = 0
    shares: TimeShares = field(default_factory=TimeShares)  # of the last seconds
    failure: str = ""  # why the attempt has failed
    earlier: tuple[SubtaskInfo, ...] = ()


@dataclass(frozen=True)
class InputInfo:
    """One input of a vertex."""

    producer: str  # vertex id
    ship_strategy: str
    exchange: str


@dataclass(frozen=True)
class VertexInfo:
    """One vertex: a chain of operators, run as subtasks."""

    vertex_id: str
    name: str
    max_parallelism: int
    slot_sharing_group: str
    operators: tuple[tuple[str, str], ...]  # id and name
    inputs: tuple[InputInfo, ...]
    subtasks: tuple[SubtaskInfo, ...]


@dataclass(frozen=True)
class FailureInfo:
    """One failure. ``subtask`` is empty if it came from outside the tasks. ``concurrent`` are those
    of other subtasks in the same restart."""

    at_ms: int
    error_class: str
    message: str
    subtask: str
    restarted: bool  # whether the job survived it
    attempt: int | None = None
    location: TaskManagerLocation | None = None  # where it ran
    concurrent: tuple[FailureInfo, ...] = ()


LONGEST_SUMMARY = 200  # characters


def summary_of(error_class: str, message: str) -> str:
    """A failure in one line.

    >>> (
    ...     summary_of("UserCodeError", "ValueError: no\\n  in operator 'Map'"),
    ...     summary_of("SavepointError", "no room"),
    ... )
    ('ValueError: no', 'SavepointError: no room')
    """
    # of a function's failure it names what the function has raised
    first = message.partition("\n")[0]
    told = first if error_class == "UserCodeError" else f"{error_class}: {first}"
    return told if len(told) <= LONGEST_SUMMARY else told[:LONGEST_SUMMARY] + "…"


@dataclass(frozen=True)
class SchedulerEventInfo:
    """One event that the job's scheduler handled, and the kinds of the commands that it answered
    with."""

    at_ms: int
    kind: str
    details: str
    commands: tuple[str, ...]


@dataclass(frozen=True)
class ExecutionGraphInfo:
    """A whole job. ``failures`` and ``scheduler_events`` hold the latest, oldest first."""

    job_id: JobId
    name: str
    state: JobState
    start_ms: int
    end_ms: int | None
    at_ms: int  # when this was so
    entered_ms: dict[JobState, int]
    configuration: dict[str, Any]
    vertices: tuple[VertexInfo, ...]
    failures: tuple[FailureInfo, ...] = ()
    restarts: int = 0
    checkpoints: CheckpointSummary = field(default_factory=CheckpointSummary)
    checkpoint_history: CheckpointsReport = field(default_factory=CheckpointsReport)
    scheduler_events: tuple[SchedulerEventInfo, ...] = ()
