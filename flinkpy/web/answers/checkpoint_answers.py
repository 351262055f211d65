"""The checkpoints and savepoints of a job: how many, the latest, and each with its vertices and
subtasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flinkpy.core.elements import SnapshotType
from flinkpy.core.lifecycles import CheckpointState
from flinkpy.core.options.checkpointing import (
    CHECKPOINT_DIRECTORY,
    CHECKPOINT_STORAGE,
    CheckpointRetention,
    CheckpointSettings,
)
from flinkpy.core.options.schema import read
from flinkpy.core.options.state import STATE_BACKEND, StateBackendKind
from flinkpy.graph.checkpoint_messages import CheckpointMetrics
from flinkpy.metrics.stats_summary import StatsSummary
from flinkpy.scheduler.checkpointing.checkpoint_statistics import (
    CheckpointsReport,
    CheckpointStatistics,
    RestoredCheckpoint,
    SubtaskStatistics,
    VertexStatistics,
)
from flinkpy.web.answers.states import UNKNOWN

STATUSES = {
    CheckpointState.PENDING: "IN_PROGRESS",
    CheckpointState.STORING: "IN_PROGRESS",
    CheckpointState.COMPLETED: "COMPLETED",
    CheckpointState.ABORTED: "FAILED",
}
MOST_MISSING = 1000
QUANTILES = ("p50", "p90", "p95", "p99", "p999")
# Flink's names
_BACKENDS = {
    StateBackendKind.HASHMAP: "HashMapStateBackend",
    StateBackendKind.ROCKSDB: "EmbeddedRocksDBStateBackend",
}


def statistics(known: CheckpointsReport) -> dict[str, Any]:
    latest = {
        "completed": known.latest_completed,
        "savepoint": known.latest_savepoint,
        "failed": known.latest_failed,
    }
    return {
        "counts": {
            "restored": known.restored,
            "total": known.completed + known.failed + known.in_progress,
            "in_progress": known.in_progress,
            "completed": known.completed,
            "failed": known.failed,
        },
        "summary": {
            "checkpointed_size": _summary(known.summary.get("written")),
            "state_size": _summary(known.summary.get("state_size")),
            "end_to_end_duration": _summary(known.summary.get("duration_ms")),
            "alignment_buffered": _summary(None),
            "processed_data": _summary(None),
            "persisted_data": _summary(known.summary.get("in_flight")),
        },
        "latest": {
            **{name: None if each is None else _checkpoint(each) for name, each in latest.items()},
            "restored": None if known.latest_restored is None else _restored(known.latest_restored),
        },
        "history": [_checkpoint(each) for each in known.history],
    }


def _restored(restored: RestoredCheckpoint) -> dict[str, Any]:
    return {
        "id": restored.checkpoint_id,
        "restore_timestamp": restored.restored_ms,
        "is_savepoint": restored.is_savepoint,
        "external_path": restored.location,
    }


def details(checkpoint: CheckpointStatistics) -> dict[str, Any]:
    """With its vertices."""
    tasks = {
        vertex.vertex_id: {
            # Flink tells them subtask by subtask
            **_vertex(checkpoint, vertex),
            "missing": list(vertex.missing[:MOST_MISSING]),
        }
        for vertex in checkpoint.vertices
    }
    return {**_checkpoint(checkpoint), "tasks": tasks}


def _checkpoint(checkpoint: CheckpointStatistics) -> dict[str, Any]:
    status = STATUSES[checkpoint.state]
    return {
        "className": status.lower(),
        "id": checkpoint.checkpoint_id,
        "status": status,
        "is_savepoint": checkpoint.options.snapshot_type.is_savepoint,
        "savepointFormat": _format(checkpoint),
        "checkpoint_type": _type(checkpoint),
        "trigger_timestamp": checkpoint.triggered_ms,
        "latest_ack_timestamp": _or_unknown(checkpoint.latest_ms),
        "checkpointed_size": checkpoint.written,
        "state_size": checkpoint.state_size,
        "end_to_end_duration": checkpoint.duration_ms,
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": checkpoint.in_flight,
        "num_subtasks": checkpoint.subtasks,
        "num_acknowledged_subtasks": len(checkpoint.acknowledged),
        "tasks": {},
        **_end(checkpoint),
    }


def _end(checkpoint: CheckpointStatistics) -> dict[str, Any]:
    if checkpoint.state is CheckpointState.COMPLETED:
        return {
            "external_path": checkpoint.location or "<checkpoint-not-externally-addressable>",
            "discarded": checkpoint.is_discarded,
        }
    if checkpoint.state is CheckpointState.ABORTED:
        return {"failure_timestamp": checkpoint.ended_ms, "failure_message": checkpoint.failure}
    return {}


def _format(checkpoint: CheckpointStatistics) -> str | None:
    return (
        checkpoint.options.format_type.name
        if checkpoint.options.snapshot_type.is_savepoint
        else None
    )


def _type(checkpoint: CheckpointStatistics) -> str:
    kind = checkpoint.options.snapshot_type
    if kind is SnapshotType.CHECKPOINT:
        return (
            "UNALIGNED_CHECKPOINT"
            if checkpoint.options.alignment_timeout_ms is not None
            else "CHECKPOINT"
        )
    return "SYNC_SAVEPOINT" if kind.stops_job else "SAVEPOINT"


def _vertex(checkpoint: CheckpointStatistics, vertex: VertexStatistics) -> dict[str, Any]:
    known, latest_ms = vertex.acknowledged, vertex.latest_ms
    is_over = len(known) == len(vertex.subtasks)
    return {
        "id": checkpoint.checkpoint_id,
        "status": "COMPLETED" if is_over else STATUSES[checkpoint.state],
        "latest_ack_timestamp": _or_unknown(latest_ms),
        "checkpointed_size": sum(each.written for each in known),
        "state_size": sum(each.state_size for each in known),
        "end_to_end_duration": 0 if latest_ms is None else _since(checkpoint, latest_ms),
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": sum(each.metrics.in_flight for each in known),
        "num_subtasks": len(vertex.subtasks),
        "num_acknowledged_subtasks": len(known),
    }


def vertex_details(checkpoint: CheckpointStatistics, vertex: VertexStatistics) -> dict[str, Any]:
    """One vertex with its subtasks."""
    known = {each.index: each for each in vertex.acknowledged}

    def spread(number: Callable[[SubtaskStatistics], int]) -> dict[str, Any]:
        return _summary(StatsSummary.of(map(number, vertex.acknowledged)))

    return {
        **_vertex(checkpoint, vertex),
        "summary": {
            "checkpointed_size": spread(lambda each: each.written),
            "state_size": spread(lambda each: each.state_size),
            "end_to_end_duration": spread(lambda each: _since(checkpoint, each.acknowledged_ms)),
            "checkpoint_duration": {
                "sync": spread(lambda each: each.metrics.sync_ms),
                "async": spread(lambda each: each.metrics.async_ms),
            },
            "alignment": {
                "buffered": _summary(None),
                "processed": _summary(None),
                "persisted": spread(lambda each: each.metrics.in_flight),
                "duration": spread(lambda each: each.metrics.alignment_ms),
            },
            "start_delay": spread(lambda each: each.metrics.start_delay_ms),
        },
        "subtasks": [
            _subtask(checkpoint, known[index])
            if index in known
            else {"className": "pending", "index": index, "status": "pending_or_failed"}
            for index in vertex.subtasks
        ],
    }


def _subtask(checkpoint: CheckpointStatistics, subtask: SubtaskStatistics) -> dict[str, Any]:
    metrics: CheckpointMetrics = subtask.metrics
    return {
        "className": "completed",
        "index": subtask.index,
        "status": "completed",
        "ack_timestamp": subtask.acknowledged_ms,
        "end_to_end_duration": _since(checkpoint, subtask.acknowledged_ms),
        "checkpointed_size": subtask.written,
        "state_size": subtask.state_size,
        "checkpoint": {"sync": metrics.sync_ms, "async": metrics.async_ms},
        "alignment": {
            "buffered": 0,
            "processed": 0,
            "persisted": metrics.in_flight,
            "duration": metrics.alignment_ms,
        },
        "start_delay": metrics.start_delay_ms,
        "unaligned_checkpoint": metrics.is_unaligned,
        "aborted": False,
    }


def _since(checkpoint: CheckpointStatistics, at_ms: int) -> int:
    return max(0, at_ms - checkpoint.triggered_ms)


def _or_unknown(at_ms: int | None) -> int:
    return UNKNOWN if at_ms is None else at_ms


def _summary(summary: StatsSummary | None) -> dict[str, Any]:
    """None: it is not measured, and Flink's number for that is 0."""
    summary = summary or StatsSummary()
    return {
        "min": summary.least,
        "max": summary.greatest,
        "avg": summary.mean,
        **dict(zip(QUANTILES, summary.quantiles)),
    }


def config(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """How a job with this configuration takes checkpoints. There is no changelog here."""
    settings = CheckpointSettings.of(configuration)
    in_files = (read(configuration, CHECKPOINT_STORAGE) or "").lower() == "filesystem" or read(
        configuration, CHECKPOINT_DIRECTORY
    ) is not None
    return {
        "mode": settings.mode.value.lower(),
        "interval": -1 if settings.interval_s is None else round(settings.interval_s * 1000),
        "timeout": round(settings.timeout_s * 1000),
        "min_pause": round(settings.min_pause_s * 1000),
        "max_concurrent": settings.max_concurrent,
        "tolerable_failed_checkpoints": settings.tolerable_failures,
        "unaligned_checkpoints": settings.alignment_timeout_ms is not None,
        "aligned_checkpoint_timeout": settings.alignment_timeout_ms or 0,
        "externalization": {
            "enabled": settings.retention is not CheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS,
            "delete_on_cancellation": settings.retention
            is not CheckpointRetention.RETAIN_ON_CANCELLATION,
        },
        "state_backend": _BACKENDS[read(configuration, STATE_BACKEND)],
        "checkpoint_storage": "FileSystemCheckpointStorage"
        if in_files
        else "JobManagerCheckpointStorage",
        "checkpoints_after_tasks_finish": True,
        "state_changelog_enabled": False,
        "changelog_periodic_materialization_interval": UNKNOWN,
    }
