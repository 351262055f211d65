"""Events: what changes in the jobs of a cluster, as one stream of frozen values."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.core.secrets.engine_logs import engine_logger

LOG = engine_logger("flinkpy.events")


class EventKind(Enum):
    """What has a new state."""

    JOB = "job"
    TASK = "task"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class JobEvent:
    """Something of a job is in a new state. ``subject`` names the subtask with its attempt, or the
    checkpoint; ``reason`` is why, where there is one.

    >>> JobEvent(0, EventKind.JOB, JobId("4f"), "words", "RUNNING").text
    "job 'words' is RUNNING"
    """

    at_ms: int
    kind: EventKind
    job_id: JobId
    job_name: str
    state: str
    subject: str = ""
    reason: str = ""

    @property
    def text(self) -> str:
        """For people."""
        what = (
            f"job {self.job_name!r}"
            if self.kind is EventKind.JOB
            else f"{self.subject} of job {self.job_name!r}"
        )
        return f"{what} is {self.state}{f': {self.reason}' if self.reason else ''}"

    def as_json(self) -> dict[str, Any]:
        """For programs. Times are milliseconds since 1970."""
        return {
            "timestamp": self.at_ms,
            "kind": self.kind.value,
            "jobId": self.job_id,
            "jobName": self.job_name,
            "state": self.state,
            "subject": self.subject,
            "reason": self.reason,
            "text": self.text,
        }


Publish: TypeAlias = Callable[[JobEvent], None]


class EventStream:
    """Hands each event to all ``listeners``, in the thread in which it happens: they return at
    once. It is logged, too, with the event as attribute ``event`` of the log record: those of tasks
    at level DEBUG, unless they failed, the others at INFO."""

    def __init__(self, listeners: Sequence[Publish] = ()) -> None:
        self._listeners = tuple(listeners)

    def publish(self, event: JobEvent) -> None:
        is_detail = event.kind is EventKind.TASK and event.state != ExecutionState.FAILED.name
        level = logging.DEBUG if is_detail else logging.INFO
        if LOG.isEnabledFor(level):
            LOG.log(level, "%s (%s)", event.text, event.job_id, extra={"event": event.as_json()})
        for listener in self._listeners:
            listener(event)
