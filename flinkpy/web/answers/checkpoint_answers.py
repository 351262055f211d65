"""Checkpoints of a job: how many, and the latest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo
from flinkpy.core.options.checkpointing import CHECKPOINT_DIRECTORY, CHECKPOINT_STORAGE, CheckpointRetention, CheckpointSettings
from flinkpy.core.options.schema import read
from flinkpy.core.options.state import STATE_BACKEND, StateBackendKind
from flinkpy.web.answers.states import UNKNOWN

_BACKENDS = {StateBackendKind.HASHMAP: "HashMapStateBackend", StateBackendKind.ROCKSDB: "EmbeddedRocksDBStateBackend"}  # Flink's names


def statistics(job: ExecutionGraphInfo) -> dict[str, Any]:
    known = job.checkpoints
    latest = None if known.latest_id is None else {
        "id": known.latest_id, "status": "COMPLETED", "state_size": known.latest_size, "end_to_end_duration": round(known.latest_duration_s * 1000),
    }
    return {
        "counts": {
            "restored": 0, "total": known.completed + known.failed + known.in_progress, "in_progress": known.in_progress,
            "completed": known.completed, "failed": known.failed,
        },
        "latest": {"completed": latest, "savepoint": None, "failed": None, "restored": None}, "history": [], "summary": {},
    }


def config(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """How a job with this configuration takes checkpoints. There is no changelog here."""
    settings = CheckpointSettings.of(configuration)
    in_files = (read(configuration, CHECKPOINT_STORAGE) or "").lower() == "filesystem" or read(configuration, CHECKPOINT_DIRECTORY) is not None
    return {
        "mode": settings.mode.value.lower(), "interval": -1 if settings.interval_s is None else round(settings.interval_s * 1000),
        "timeout": round(settings.timeout_s * 1000), "min_pause": round(settings.min_pause_s * 1000), "max_concurrent": settings.max_concurrent,
        "tolerable_failed_checkpoints": settings.tolerable_failures, "unaligned_checkpoints": settings.alignment_timeout_ms is not None,
        "aligned_checkpoint_timeout": settings.alignment_timeout_ms or 0,
        "externalization": {
            "enabled": settings.retention is not CheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS,
            "delete_on_cancellation": settings.retention is not CheckpointRetention.RETAIN_ON_CANCELLATION,
        },
        "state_backend": _BACKENDS[read(configuration, STATE_BACKEND)],
        "checkpoint_storage": "FileSystemCheckpointStorage" if in_files else "JobManagerCheckpointStorage",
        "checkpoints_after_tasks_finish": True, "state_changelog_enabled": False,
        "changelog_periodic_materialization_interval": UNKNOWN,
    }
