"""Savepoints and checkpoints that somebody has asked for, as Flink's asynchronous operations."""

from __future__ import annotations

from typing import Any

from flinkpy.actors.gateways import SavepointStatus


def trigger(trigger_id: str) -> dict[str, Any]:
    return {"request-id": trigger_id}


def status(found: SavepointStatus) -> dict[str, Any]:
    if not found.is_over:
        return {"status": {"id": "IN_PROGRESS"}}
    if found.error is not None:
        text = f"{type(found.error).__name__}: {found.error}"
        cause = {"class": type(found.error).__name__, "stack-trace": text, "serialized-throwable": ""}
        return {"status": {"id": "COMPLETED"}, "operation": {"failure-cause": cause}}
    return {"status": {"id": "COMPLETED"}, "operation": {"location": found.location or ""}}
