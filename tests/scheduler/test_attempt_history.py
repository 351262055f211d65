"""Of each subtask the latest attempts that have ended are remembered."""

from __future__ import annotations

from flinkpy.core.lifecycles import ExecutionState as S
from flinkpy.scheduler.protocol import StartScheduling
from flinkpy.scheduler.scheduler import SchedulerConfig
from tests.scheduler.environment import World
from tests.scheduler.jobs import pipeline
from tests.scheduler.test_checkpoints import restart


def running(attempts_kept: int) -> World:
    world = World.of(pipeline(1), SchedulerConfig(restart="fixed-delay", attempts=9, attempts_kept=attempts_kept))
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
    assert [(each.attempt_id.attempt, each.state, each.failure.rpartition(" ")[2]) for each in source] == [
        (2, S.RUNNING, ""), (1, S.FAILED, "failed"), (0, S.FAILED, "failed")]
    assert [(each.attempt_id.attempt, each.state, each.failure) for each in sink] == [(2, S.RUNNING, ""), (1, S.CANCELED, ""), (0, S.CANCELED, "")]
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
