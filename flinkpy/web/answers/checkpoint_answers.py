"""Checkpoints of a job: how many, and the latest."""

from __future__ import annotations

from typing import Any

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo
from flinkpy.core.options.checkpointing import CheckpointSettings


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


def config(settings: CheckpointSettings) -> dict[str, Any]:
    return {
        "mode": settings.mode.value.lower(), "interval": -1 if settings.interval_s is None else round(settings.interval_s * 1000),
        "timeout": round(settings.timeout_s * 1000), "min_pause": round(settings.min_pause_s * 1000), "max_concurrent": settings.max_concurrent,
        "tolerable_failed_checkpoints": settings.tolerable_failures, "unaligned_checkpoints": settings.alignment_timeout_ms is not None,
        "aligned_checkpoint_timeout": settings.alignment_timeout_ms or 0,
    }
