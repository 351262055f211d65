"""What must hold of a scheduler after every event. A violation is a bug of the engine; the error
names the parts that contradict each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, NoReturn

from flinkpy.core.errors import EngineError
from flinkpy.core.lifecycles import CheckpointState, ExecutionState, JobState
from flinkpy.scheduler.checkpointing.checkpoint_coordinator import CheckpointCoordinator
from flinkpy.scheduler.execution_graph import ExecutionGraph
from flinkpy.scheduler.execution_model import (
    TERMINAL,
    Execution,
    ExecutionVertex,
    Failover,
    SharedSlot,
)
from flinkpy.scheduler.execution_slots import SlotTable
from flinkpy.scheduler.job_lifecycle import JobLifecycle

_S, _J = ExecutionState, JobState
_DEPLOYED = (_S.DEPLOYING, _S.INITIALIZING, _S.RUNNING, _S.CANCELING)
_BEFORE_THE_END = (_S.CREATED, _S.SCHEDULED, _S.DEPLOYING, _S.INITIALIZING, _S.RUNNING)


class SchedulerParts(NamedTuple):
    """What is looked at."""

    graph: ExecutionGraph
    slots: SlotTable
    job: JobLifecycle
    failovers: dict[str, Failover]
    checkpoints: CheckpointCoordinator


def check(parts: SchedulerParts, everything: bool) -> None:
    """Raises EngineError at the first contradiction; looks at all, or only at what the last event
    changed."""
    vertices: Iterable[ExecutionVertex] = (
        parts.graph.vertices if everything else parts.graph.touched
    )
    for vertex in vertices:
        _check_execution(parts, vertex.execution)
    table = parts.slots
    for slot in (
        list(table.by_key.values())
        if everything
        else [table.by_key[key] for key in table.changed if key in table.by_key]
    ):
        _check_slot(parts, slot)
    _check_job(parts)
    _check_checkpoints(parts)
    if everything:
        _check_awaited(parts)
        _check_counts(parts)
        _check_failovers(parts)


def _check_execution(parts: SchedulerParts, execution: Execution) -> None:
    slot = execution.slot
    if execution.state is _S.SCHEDULED or execution.state in _DEPLOYED:
        if (
            slot is None
            or execution not in slot.users
            or parts.slots.by_key.get(slot.key) is not slot
        ):
            _broken(parts, f"{execution} is not in a slot of the job")
        if (execution.location is not None) != (execution.state in _DEPLOYED):
            _broken(parts, f"{execution} has the location {execution.location}")
        if execution.state in _DEPLOYED and execution.location != slot.location:
            _broken(parts, f"{execution} was deployed to {execution.location}, its slot is {slot}")
        if execution.state is not _S.CANCELING and execution.vertex.failover is not None:
            _broken(parts, f"{execution} is alive in the middle of {execution.vertex.failover}")
    elif slot is not None:
        _broken(parts, f"{execution} holds {slot}")


def _check_slot(parts: SchedulerParts, slot: SharedSlot) -> None:
    table = parts.slots
    users = list(slot.users)
    if len({user.vertex.job_vertex.vertex.id for user in users}) != len(users):
        _broken(parts, f"{slot} is used by two subtasks of one vertex: {users}")
    if any(parts.graph.current(user.attempt_id) is not user for user in users):
        _broken(parts, f"{slot} is used by attempts of the past: {users}")
    if not users and not table.retained[slot.key]:
        _broken(parts, f"{slot} is of no use and was not given back")
    if slot.allocation_id is None:
        if table.by_request.get(slot.request_id) is not slot:
            _broken(parts, f"{slot} waits for no answer")
        if any(user.state is not _S.SCHEDULED for user in users):
            _broken(parts, f"{slot} is not there and used by {users}")
    elif (
        table.by_allocation.get(slot.allocation_id) is not slot
        or slot.request_id in table.by_request
        or slot.waiting
    ):
        _broken(parts, f"{slot} is there, and still asked or waited for")


def _check_job(parts: SchedulerParts) -> None:
    graph, state = parts.graph, parts.job.state
    if parts.job.is_terminal and (
        parts.slots.by_key or parts.slots.retained or graph.count(*TERMINAL) < graph.size
    ):
        _broken(parts, "the job has ended and still holds something")
    if state is _J.FINISHED and graph.count(_S.FINISHED) < graph.size:
        _broken(parts, "the job is finished, not all of its subtasks are")
    if state in (_J.CANCELLING, _J.FAILING) and graph.count(*_BEFORE_THE_END):
        _broken(parts, "the job is ending, some of its subtasks do not know")
    if state is _J.RUNNING and not graph.count(_S.SCHEDULED, *_DEPLOYED):
        _broken(parts, "the job is running, and nothing in it")
    if (state is _J.RESTARTING) != bool(parts.failovers):
        _broken(parts, f"with these restarts under way: {list(parts.failovers.values())}")
    if state in (_J.FAILING, _J.FAILED) and parts.job.cause.error is None:
        _broken(parts, "nobody knows why it failed")


def _check_counts(parts: SchedulerParts) -> None:
    for job_vertex in parts.graph.job_vertices.values():
        counted = dict.fromkeys(ExecutionState, 0)
        for vertex in job_vertex.vertices:
            counted[vertex.execution.state] += 1
        if counted != job_vertex.counts:
            _broken(
                parts,
                (
                    f"the counts of {job_vertex.vertex.name} are {job_vertex.counts}, there are "
                    f"{counted}"
                ),
            )
    for state, count in parts.graph.counts.items():
        if count != sum(
            job_vertex.counts[state] for job_vertex in parts.graph.job_vertices.values()
        ):
            _broken(parts, f"the graph counts {count} attempts {state.name}, its vertices do not")
    for result in parts.graph.results:
        for group in result.groups:
            executions = [vertex.execution for vertex in group.producer_vertices()]
            unfinished = sum(execution.state is not _S.FINISHED for execution in executions)
            if (group.unfinished, group.unstarted) != (
                unfinished,
                sum(not execution.started for execution in executions),
            ):
                _broken(
                    parts,
                    (
                        f"{group.unfinished} producers count as unfinished, {group.unstarted} as "
                        f"not started, of {executions}"
                    ),
                )
            if group.unconsumed != sum(
                vertex.execution.state is not _S.FINISHED for vertex in group.consumer_vertices()
            ):
                _broken(
                    parts,
                    (
                        f"{group.unconsumed} consumers of {result.producer.vertex.name} count as "
                        "not finished"
                    ),
                )


def _check_failovers(parts: SchedulerParts) -> None:
    for failover in parts.failovers.values():
        live = [
            vertex.execution
            for vertex in failover.vertices
            if vertex.execution.state not in (_S.CREATED, *TERMINAL)
        ]
        if failover.running != len(live) or any(
            execution.state is not _S.CANCELING for execution in live
        ):
            _broken(parts, f"{failover} waits for {live}")
        if any(vertex.failover is not failover for vertex in failover.vertices):
            _broken(parts, f"a subtask of {failover} does not know of it")


def _check_checkpoints(parts: SchedulerParts) -> None:
    coordinator = parts.checkpoints
    own = [checkpoint.checkpoint_id for checkpoint in coordinator.completed.own]
    ids = [*own, *coordinator.pending]
    if ids != sorted(set(ids)):
        _broken(parts, f"the checkpoints {own} and {list(coordinator.pending)} are not in order")
    for pending in coordinator.pending.values():
        if parts.job.state is not _J.RUNNING:
            _broken(parts, f"{pending} goes on")
        if (pending.state is CheckpointState.STORING) != pending.is_fully_acknowledged:
            _broken(parts, f"{pending}, which awaits {sorted(pending.awaited)}")


def _check_awaited(parts: SchedulerParts) -> None:
    for pending in parts.checkpoints.pending.values():
        executions = {attempt_id: parts.graph.current(attempt_id) for attempt_id in pending.awaited}
        if any(
            execution is None or execution.state is not _S.RUNNING
            for execution in executions.values()
        ):
            _broken(parts, f"{pending} awaits {executions}")


def _broken(parts: SchedulerParts, what: str) -> NoReturn:
    name, state = parts.graph.job_graph.name, parts.job.state.name
    raise EngineError(
        f"{what} (job {name!r}: {state}, {parts.graph.size} subtasks, "
        f"{len(parts.slots.by_key)} slots)"
    )
