"""The last events that the scheduler was given, and what it decided on each: what one reads when a
job did something that nobody expects, and what a test can feed to a scheduler once more.

State is not in the log, only where it is: what a task has sent of it in the message itself is
dropped. Errors may hold much of the program's data, so only the latest few are kept whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from itertools import chain
from typing import Any

from flinkpy.core.ids import ExecutionAttemptId
from flinkpy.graph.checkpoints import StateHandle
from flinkpy.graph.deployment import TaskManagerLocation
from flinkpy.scheduler.protocol import (
    CheckpointAcknowledged,
    CheckpointStoreFailed,
    CoordinatorSnapshot,
    DeploymentRejected,
    Event,
    FailJob,
    RestoreFrom,
    SlotLost,
    SlotRequestFailed,
    TaskStateChanged,
)
from flinkpy.scheduler.scheduler_report import EventSummary

_WITH_ERROR = (
    SlotRequestFailed,
    SlotLost,
    TaskStateChanged,
    DeploymentRejected,
    FailJob,
    CheckpointStoreFailed,
)


@dataclass
class LoggedEvent:
    """One event. ``at`` is the monotonic time in seconds; ``commands`` are the kinds of what the
    scheduler wanted done, in order. An event that it raised an error for has none."""

    at: float
    event: Event
    commands: tuple[str, ...] = ()


class EventLog:
    """The latest ``KEPT`` events of one job, oldest first."""

    KEPT = 200
    ERRORS_KEPT = 16

    def __init__(self, kept: int = KEPT) -> None:
        self._entries: deque[LoggedEvent] = deque(maxlen=kept)
        self._with_error: deque[LoggedEvent] = deque()

    def record(self, event: Event, now: float) -> LoggedEvent:
        """The event is about to be handled. The caller adds to the entry what was decided."""
        entry = LoggedEvent(now, _loggable(event))
        self._entries.append(entry)
        if isinstance(event, _WITH_ERROR) and event.error is not None:
            self._with_error.append(entry)
            if len(self._with_error) > self.ERRORS_KEPT:
                _keep_error_in_words(self._with_error.popleft())
        return entry

    def entries(self) -> Sequence[LoggedEvent]:
        return tuple(self._entries)

    def summaries(self) -> tuple[EventSummary, ...]:
        return tuple(
            EventSummary(
                entry.at, type(entry.event).__name__, details_of(entry.event), entry.commands
            )
            for entry in self._entries
        )

    def __repr__(self) -> str:
        return f"<EventLog of {len(self._entries)} events>"


LONGEST_DETAILS = 300  # characters


def details_of(event: Event) -> str:
    """What the event says, in a line: what is short of its fields.

    >>> from flinkpy.scheduler.protocol import TimerFired
    >>> details_of(TimerFired("restart-1"))
    'restart-1'
    """
    told = (_in_words(getattr(event, field.name)) for field in fields(event))
    line = ", ".join(each for each in told if each)
    return line if len(line) <= LONGEST_DETAILS else line[:LONGEST_DETAILS] + "…"


def _in_words(value: object) -> str:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, EarlierError):
        return str(value)
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}".partition("\n")[0]
    if isinstance(value, TaskManagerLocation):
        return str(value.resource_id)
    if isinstance(value, ExecutionAttemptId):
        return f"{value.vertex_id} ({value.subtask_index + 1})#{value.attempt}"
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    return ""


def _loggable(event: Event) -> Event:
    has_data = any(handle.data is not None for handle in _handles(event))
    return _without_data(event) if has_data else event


def _handles(event: Event) -> Iterable[StateHandle]:
    if isinstance(event, CheckpointAcknowledged):
        return event.snapshot.handles()
    if isinstance(event, CoordinatorSnapshot):
        return event.states.values()
    if isinstance(event, RestoreFrom):
        return chain.from_iterable(each.handles() for each in (event.checkpoint, *event.older))
    return ()


def _without_data(value: Any) -> Any:
    """The same, with handles that do not contain the state they stand for."""
    if isinstance(value, StateHandle):
        return value if value.data is None else replace(value, data=b"")
    if isinstance(value, Mapping):
        return {key: _without_data(each) for key, each in value.items()}
    if type(value) is tuple:
        return tuple(map(_without_data, value))
    if is_dataclass(value) and not isinstance(value, type):
        own = {field.name: _without_data(getattr(value, field.name)) for field in fields(value)}
        return replace(value, **own)
    return value


def _keep_error_in_words(entry: LoggedEvent) -> None:
    event = entry.event
    if isinstance(event, _WITH_ERROR) and event.error is not None:
        entry.event = replace(event, error=EarlierError(_in_words(event.error)))


class EarlierError(Exception):
    """Stands for an error of which only the words are kept."""
