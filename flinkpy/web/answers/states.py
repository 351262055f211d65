"""Numbers that several answers have: subtasks by state, times, counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from flinkpy.actors.execution_graph_info import SubtaskInfo
from flinkpy.core.lifecycles import EXECUTION, ExecutionState
from flinkpy.graph.deployment import TaskManagerLocation

UNKNOWN = -1  # as Flink writes a time or a number that is not there (yet)

# The state of a vertex is the first of these that one of its subtasks is in; Flink aggregates in
# this order, too
_BY_WEIGHT = (
    ExecutionState.FAILED,
    ExecutionState.CANCELING,
    ExecutionState.CANCELED,
    ExecutionState.RUNNING,
    ExecutionState.INITIALIZING,
    ExecutionState.DEPLOYING,
    ExecutionState.SCHEDULED,
    ExecutionState.CREATED,
    ExecutionState.FINISHED,
)


def counts_by_state(
    states: Mapping[ExecutionState, int] | Iterable[ExecutionState], *, with_total: bool = False
) -> dict[str, int]:
    """How many are in each state, with all states, in lower case if there is a ``total``, as Flink
    writes them in its overview."""
    counts = Counter(states)
    if not with_total:
        return {state.name: counts[state] for state in ExecutionState}
    return {
        "total": counts.total(),
        **{state.name.lower(): counts[state] for state in ExecutionState},
    }


def state_of(subtasks: Iterable[SubtaskInfo]) -> ExecutionState:
    """The state that stands for all of them."""
    states = {subtask.state for subtask in subtasks}
    if states == {ExecutionState.FINISHED} or not states:
        return next(iter(states), ExecutionState.CREATED)
    return next(state for state in _BY_WEIGHT if state in states)


def times(states: type[Enum], entered_ms: Mapping[Any, int]) -> dict[str, int]:
    """When each state was entered; 0 for those it has not been in."""
    return {state.name: entered_ms.get(state, 0) for state in states}


def span(subtasks: Iterable[SubtaskInfo], at_ms: int) -> dict[str, int]:
    """When the first of them was deployed, when the last one ended, and the time between, or until
    now."""
    subtasks = list(subtasks)
    starts = [
        subtask.entered_ms[ExecutionState.DEPLOYING]
        for subtask in subtasks
        if ExecutionState.DEPLOYING in subtask.entered_ms
    ]
    have_ended = bool(subtasks) and all(
        EXECUTION.is_terminal(subtask.state) for subtask in subtasks
    )
    start = min(starts, default=UNKNOWN)
    end = (
        max((subtask.entered_ms[subtask.state] for subtask in subtasks), default=UNKNOWN)
        if have_ended
        else UNKNOWN
    )
    if start == UNKNOWN:
        return {"start-time": UNKNOWN, "end-time": end, "duration": UNKNOWN}
    return {
        "start-time": start,
        "end-time": end,
        "duration": (at_ms if end == UNKNOWN else end) - start,
    }


def statistics_of(values: Sequence[float]) -> dict[str, int]:
    """Minimum, maximum, average and quantiles of numbers, in whole numbers; all 0 without any.

    >>> statistics_of([1, 2, 3, 10])["median"]
    2
    """
    ordered = sorted(values) or [0]

    def quantile(share: float) -> int:
        place = share * (len(ordered) + 1) - 1
        low = min(max(int(place), 0), len(ordered) - 1)
        high = min(low + 1, len(ordered) - 1)
        return int(ordered[low] + min(max(place - low, 0.0), 1.0) * (ordered[high] - ordered[low]))

    return {
        "min": int(ordered[0]),
        "max": int(ordered[-1]),
        "avg": int(sum(ordered) / len(ordered)),
        "sum": int(sum(ordered)),
        "median": quantile(0.5),
        "p25": quantile(0.25),
        "p75": quantile(0.75),
        "p95": quantile(0.95),
    }


def counters(subtasks: Iterable[SubtaskInfo]) -> dict[str, Any]:
    """What they have read, written and done since they began."""
    subtasks = list(subtasks)
    came, written = [each.bytes_in for each in subtasks], [each.bytes_out for each in subtasks]
    return {
        "read-bytes": sum(number or 0 for number in came),
        "read-bytes-complete": None not in came,
        "write-bytes": sum(number or 0 for number in written),
        "write-bytes-complete": None not in written,
        "read-records": sum(each.records_in for each in subtasks),
        "read-records-complete": True,
        "write-records": sum(each.records_out for each in subtasks),
        "write-records-complete": True,
        "accumulated-backpressured-time": sum(each.back_pressured_ms for each in subtasks),
        "accumulated-idle-time": sum(each.idle_ms for each in subtasks),
        "accumulated-busy-time": float(sum(each.busy_ms for each in subtasks)),
    }


def endpoint_of(where: TaskManagerLocation | None) -> str:
    """Host and port of a TaskExecutor."""
    return "(unassigned)" if where is None else f"{where.host or 'localhost'}:{where.data_port}"


def task_manager_of(where: TaskManagerLocation | None) -> str:
    return "(unassigned)" if where is None else where.resource_id
