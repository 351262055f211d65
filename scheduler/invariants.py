"""What must hold of a scheduler after every event. A violation is a bug of the engine, told with the parts that contradict each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn

from flinkpy.core.errors import EngineError
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.scheduler.execution_model import TERMINAL, Execution, ExecutionVertex, SharedSlot

if TYPE_CHECKING:
    from flinkpy.scheduler.scheduler import Scheduler

_S, _J = ExecutionState, JobState
_DEPLOYED = (_S.DEPLOYING, _S.INITIALIZING, _S.RUNNING, _S.CANCELING)
_BEFORE_THE_END = (_S.CREATED, _S.SCHEDULED, _S.DEPLOYING, _S.INITIALIZING, _S.RUNNING)


def check(scheduler: Scheduler, everything: bool) -> None:
    """Raises EngineError at the first contradiction; looks at all, or only at what the last event changed."""
    vertices: Iterable[ExecutionVertex] = scheduler.graph.vertices if everything else scheduler.graph.touched
    for vertex in vertices:
        _check_execution(scheduler, vertex.execution)
    table = scheduler.slots
    for slot in list(table.by_key.values()) if everything else [table.by_key[key] for key in table.changed if key in table.by_key]:
        _check_slot(scheduler, slot)
    _check_job(scheduler)
    if everything:
        _check_counts(scheduler)
        _check_failovers(scheduler)


def _check_execution(scheduler: Scheduler, execution: Execution) -> None:
    slot = execution.slot
    if execution.state is _S.SCHEDULED or execution.state in _DEPLOYED:
        if slot is None or execution not in slot.users or scheduler.slots.by_key.get(slot.key) is not slot:
            _broken(scheduler, f"{execution} is not in a slot of the job")
        if (execution.location is not None) != (execution.state in _DEPLOYED):
            _broken(scheduler, f"{execution} has the location {execution.location}")
        if execution.state in _DEPLOYED and execution.location != slot.location:
            _broken(scheduler, f"{execution} was deployed to {execution.location}, its slot is {slot}")
        if execution.state is not _S.CANCELING and execution.vertex.failover is not None:
            _broken(scheduler, f"{execution} is alive in the middle of {execution.vertex.failover}")
    elif slot is not None:
        _broken(scheduler, f"{execution} holds {slot}")


def _check_slot(scheduler: Scheduler, slot: SharedSlot) -> None:
    table = scheduler.slots
    users = list(slot.users)
    if len({user.vertex.job_vertex.vertex.id for user in users}) != len(users):
        _broken(scheduler, f"{slot} is used by two subtasks of one vertex: {users}")
    if not users and not table.retained[slot.key]:
        _broken(scheduler, f"{slot} is of no use and was not given back")
    if slot.allocation_id is None:
        if table.by_request.get(slot.request_id) is not slot:
            _broken(scheduler, f"{slot} waits for no answer")
        if any(user.state is not _S.SCHEDULED for user in users):
            _broken(scheduler, f"{slot} is not there and used by {users}")
    elif table.by_allocation.get(slot.allocation_id) is not slot or slot.request_id in table.by_request or slot.waiting:
        _broken(scheduler, f"{slot} is there, and still asked or waited for")


def _check_job(scheduler: Scheduler) -> None:
    graph, state = scheduler.graph, scheduler.state
    if scheduler.is_terminal and (scheduler.slots.by_key or scheduler.slots.retained or graph.count(*TERMINAL) < graph.size):
        _broken(scheduler, "the job has ended and still holds something")
    if state is _J.FINISHED and graph.count(_S.FINISHED) < graph.size:
        _broken(scheduler, "the job is finished, not all of its subtasks are")
    if state in (_J.CANCELLING, _J.FAILING) and graph.count(*_BEFORE_THE_END):
        _broken(scheduler, "the job is ending, some of its subtasks do not know")
    if state is _J.RUNNING and not graph.count(_S.SCHEDULED, *_DEPLOYED):
        _broken(scheduler, "the job is running, and nothing in it")
    if (state is _J.RESTARTING) != bool(scheduler.failovers):
        _broken(scheduler, f"with these restarts under way: {list(scheduler.failovers.values())}")
    if state in (_J.FAILING, _J.FAILED) and scheduler.cause.error is None:
        _broken(scheduler, "nobody knows why it failed")


def _check_counts(scheduler: Scheduler) -> None:
    for job_vertex in scheduler.graph.job_vertices.values():
        counted = dict.fromkeys(ExecutionState, 0)
        for vertex in job_vertex.vertices:
            counted[vertex.execution.state] += 1
        if counted != job_vertex.counts:
            _broken(scheduler, f"the counts of {job_vertex.vertex.name} are {job_vertex.counts}, there are {counted}")
    for state, count in scheduler.graph.counts.items():
        if count != sum(job_vertex.counts[state] for job_vertex in scheduler.graph.job_vertices.values()):
            _broken(scheduler, f"the graph counts {count} attempts {state.name}, its vertices do not")
    for result in scheduler.graph.results:
        for group in result.groups:
            executions = [vertex.execution for vertex in group.producer_vertices()]
            unfinished = sum(execution.state is not _S.FINISHED for execution in executions)
            if (group.unfinished, group.unstarted) != (unfinished, sum(not execution.started for execution in executions)):
                _broken(scheduler, f"{group.unfinished} producers count as unfinished, {group.unstarted} as not started, of {executions}")
            if group.unconsumed != sum(vertex.execution.state is not _S.FINISHED for vertex in group.consumer_vertices()):
                _broken(scheduler, f"{group.unconsumed} consumers of {result.producer.vertex.name} count as not finished")


def _check_failovers(scheduler: Scheduler) -> None:
    for failover in scheduler.failovers.values():
        live = [vertex.execution for vertex in failover.vertices if vertex.execution.state not in (_S.CREATED, *TERMINAL)]
        if failover.running != len(live) or any(execution.state is not _S.CANCELING for execution in live):
            _broken(scheduler, f"{failover} waits for {live}")
        if any(vertex.failover is not failover for vertex in failover.vertices):
            _broken(scheduler, f"a subtask of {failover} does not know of it")


def _broken(scheduler: Scheduler, what: str) -> NoReturn:
    raise EngineError(f"{what} ({scheduler!r})")
