"""Savepoints and checkpoints that somebody has asked for, as Flink's asynchronous operations."""

from __future__ import annotations

from typing import Any

from flinkpy.actors.gateways import SavepointStatus
from flinkpy.web.answers.java_exceptions import failure_cause


def trigger(trigger_id: str) -> dict[str, Any]:
    return {"request-id": trigger_id}


def status(found: SavepointStatus) -> dict[str, Any]:
    if not found.is_over:
        return {"status": {"id": "IN_PROGRESS"}}
    if found.error is not None:
        return {
            "status": {"id": "COMPLETED"},
            "operation": {"failure-cause": _failure(found.error)},
        }
    return {"status": {"id": "COMPLETED"}, "operation": {"location": found.location or ""}}


def checkpoint_status(found: SavepointStatus) -> dict[str, Any]:
    """As for a savepoint, but Flink tells the number of the checkpoint, and writes the failure's
    field another way."""
    if not found.is_over:
        return {"status": {"id": "IN_PROGRESS"}}
    if found.error is not None:
        return {
            "status": {"id": "COMPLETED"},
            "operation": {"checkpointId": None, "failureCause": _failure(found.error)},
        }
    return {
        "status": {"id": "COMPLETED"},
        "operation": {"checkpointId": found.checkpoint_id, "failureCause": None},
    }


def disposal_status(is_over: bool, error: BaseException | None) -> dict[str, Any]:
    """The answer about a savepoint that is being deleted."""
    if not is_over:
        return {"status": {"id": "IN_PROGRESS"}}
    return {
        "status": {"id": "COMPLETED"},
        "operation": {} if error is None else {"failure-cause": _failure(error)},
    }


def _failure(error: BaseException) -> dict[str, str]:
    return failure_cause(type(error).__name__, str(error))
