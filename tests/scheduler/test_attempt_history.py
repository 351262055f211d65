"""Of each subtask the latest attempts that have ended are remembered."""

from __future__ import annotations

from flinkpy.core.errors import TaskExecutorLostError
from flinkpy.core.lifecycles import ExecutionState as S
from flinkpy.core.lifecycles import JobState
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.protocol import StartScheduling
from flinkpy.scheduler.scheduler import SchedulerConfig
from flinkpy.scheduler.scheduler_report import FailureRecord
from tests.scheduler.environment import Boom, World
from tests.scheduler.jobs import pipeline, strands
from tests.scheduler.test_checkpoints import restart


def running(attempts_kept: int = 16, graph: JobGraph | None = None, attempts: int = 9) -> World:
    config = SchedulerConfig(restart="fixed-delay", attempts=attempts, attempts_kept=attempts_kept)
    world = World.of(graph or pipeline(1), config)
    world.send(StartScheduling())
    world.grant_all()
    world.run_to(S.RUNNING)
    return world


def test_attempts_that_have_ended_are_told_the_newest_first_behind_the_current_one() -> None:
    world = running(attempts_kept=16)
    for _ in range(2):
        world.fail(world.attempt("A", 0))
        restart(world)
    source, sink = world.scheduler.report().attempts
    assert [
        (each.attempt_id.attempt, each.state, each.failure.rpartition(" ")[2]) for each in source
    ] == [(2, S.RUNNING, ""), (1, S.FAILED, "failed"), (0, S.FAILED, "failed")]
    assert [(each.attempt_id.attempt, each.state, each.failure) for each in sink] == [
        (2, S.RUNNING, ""),
        (1, S.CANCELED, ""),
        (0, S.CANCELED, ""),
    ]
    assert all(each.entered[each.state] >= each.entered[S.DEPLOYING] for each in source)


def test_only_so_many_are_remembered_and_without_the_errors_themselves() -> None:
    world = running(attempts_kept=2)
    for _ in range(4):
        world.fail(world.attempt("A", 0))
        restart(world)
    [vertex] = world.scheduler.graph.job_vertices[world.attempt("A", 0).vertex_id].vertices
    assert [each.attempt_id.attempt for each in vertex.earlier] == [3, 2]
    assert all(each.error is None and each.failure for each in vertex.earlier)


def test_a_failure_tells_which_attempt_failed_and_where() -> None:
    world = running(attempts_kept=16)
    failed = world.attempt("A", 0)
    world.fail(failed)
    [failure] = world.scheduler.details().failures
    assert failure.attempt_id == failed
    assert failure.location is not None


def told(world: World) -> list[tuple[str, list[str]]]:
    """Of each failure the subtask, and those that failed in the same restart."""
    return [
        (each.subtask, [other.subtask for other in each.concurrent])
        for each in world.scheduler.details().failures
    ]


def test_a_task_that_fails_while_it_is_cancelled_has_failed_in_the_same_restart() -> None:
    world = running(graph=pipeline(2))
    world.fail(world.attempt("A", 0))
    other, cause = world.attempt("B", 1), Boom("of its own")
    world.fail(other, cause)
    restart(world)
    assert told(world) == [("A (1/2)", ["B (2/2)"])]
    [concurrent] = world.scheduler.details().failures[0].concurrent
    assert (concurrent.attempt_id, concurrent.error, concurrent.restarted) == (other, cause, True)
    assert concurrent.location is not None
    world.fail(world.attempt("A", 1))
    assert told(world)[1] == ("A (2/2)", [])


def test_tasks_that_are_lost_with_one_worker_fail_in_one_restart() -> None:
    world = running(graph=strands(2))
    error = TaskExecutorLostError("the TaskExecutor died")
    for allocation_id in list(world.slots):
        world.lose(allocation_id, error)
    assert told(world) == [("A (1/2)", ["B (1/2)", "A (2/2)", "B (2/2)"])]


def test_a_failure_that_takes_over_a_restart_tells_what_failed_in_that_before() -> None:
    world = running(graph=pipeline(2))
    first = world.attempt("A", 0)
    world.fail(first)
    while any(task.cancelled for task in world.tasks.values()):
        world.progress(next(each for each, task in world.tasks.items() if task.cancelled))
    world.scheduler.failovers.fail_job(Boom("from outside"), world.now)
    failures = world.scheduler.details().failures
    assert [each.subtask for each in failures] == ["A (1/2)", ""]
    assert [each.attempt_id for each in failures[1].concurrent] == [first]


def test_what_fails_while_a_job_ends_belongs_to_the_failure_it_ends_with() -> None:
    world = running(graph=pipeline(2), attempts=0)
    world.fail(world.attempt("A", 0))
    world.fail(world.attempt("B", 0), Boom("of its own"))
    while world.tasks:
        world.progress(next(iter(world.tasks)))
    assert world.states[-1] is JobState.FAILED
    assert told(world) == [("A (1/2)", ["B (1/2)"])]


def test_only_so_many_concurrent_failures_are_kept() -> None:
    world = running(graph=pipeline(20))
    for name in "AB":
        for subtask in range(20):
            world.fail(world.attempt(name, subtask))
    [failure] = world.scheduler.details().failures
    assert len(failure.concurrent) == 16
    assert all(
        isinstance(each, FailureRecord) and not each.concurrent for each in failure.concurrent
    )
