"""What the JobMaster and a task tell each other about checkpoints. How it travels:
``flinkpy.runtime.task_messages``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from flinkpy.core.elements import ALIGNED_CHECKPOINT, CheckpointOptions
from flinkpy.graph.checkpoints import SubtaskSnapshot


@dataclass(frozen=True)
class BeginCheckpoint:
    """To a task that gets no barrier from a producer: it begins with the barrier."""

    checkpoint_id: int
    timestamp_ms: int
    options: CheckpointOptions = ALIGNED_CHECKPOINT


@dataclass(frozen=True)
class CheckpointCompleted:
    """The checkpoint is durable: sinks may commit."""

    checkpoint_id: int


@dataclass(frozen=True)
class CheckpointAborted:
    """The checkpoint will never be complete."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class CheckpointMetrics:
    """How long a task's part in a checkpoint took, in milliseconds: from the checkpoint's trigger
    until the first barrier came; from there until the barrier went on; to freeze the state, while
    the task does nothing else; and to write it. ``in_flight`` are bytes of records that the barrier
    has overtaken."""

    start_delay_ms: int = 0
    alignment_ms: int = 0
    sync_ms: int = 0
    async_ms: int = 0
    in_flight: int = 0
    is_unaligned: bool = False


UNMEASURED = CheckpointMetrics()


@dataclass(frozen=True)
class SnapshotTaken:
    """From a task: its state is written."""

    checkpoint_id: int
    snapshot: SubtaskSnapshot
    metrics: CheckpointMetrics = UNMEASURED


@dataclass(frozen=True)
class SnapshotFailed:
    """From a task: its state could not be saved."""

    checkpoint_id: int
    reason: str


@dataclass(frozen=True)
class FinalCheckpointAwaited:
    """From a task: its input has ended, and it waits for a checkpoint to commit its last
    results."""


CheckpointToTask: TypeAlias = BeginCheckpoint | CheckpointCompleted | CheckpointAborted
CheckpointFromTask: TypeAlias = SnapshotTaken | SnapshotFailed | FinalCheckpointAwaited
