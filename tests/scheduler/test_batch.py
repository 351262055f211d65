from __future__ import annotations

from flinkpy.core.ids import ExecutionAttemptId, ResourceId
from flinkpy.core.lifecycles import ExecutionState as S
from flinkpy.core.lifecycles import JobState as J
from flinkpy.core.options.engine import SchedulingStrategyKind
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.protocol import Command, ReleaseResults, ResultsLost
from flinkpy.scheduler.scheduler import Scheduler, SchedulerConfig
from tests.scheduler.environment import World
from tests.scheduler.jobs import ALL_TO_ALL, BLOCKING, POINTWISE, batch, job, pipeline
from tests.scheduler.test_scheduler import RESTARTS, started


def released(commands: list[Command]) -> list[str]:
    """The attempts whose results go, as ``A0#0``."""
    return sorted(
        f"{attempt.vertex_id}{attempt.subtask_index}#{attempt.attempt}"
        for command in commands
        if isinstance(command, ReleaseResults)
        for attempt in command.attempt_ids
    )


def current(world: World, name: str, subtask: int = 0) -> ExecutionAttemptId:
    """The current attempt of that subtask, ended or not."""
    return next(
        vertex.execution.attempt_id
        for vertex in world.scheduler.graph.vertices
        if (vertex.job_vertex.vertex.id, vertex.index) == (name, subtask)
    )


def stages() -> JobGraph:
    """A to B to C, blocking, one subtask each."""
    return job(
        {"A": 1, "B": 1, "C": 1}, ("A", "B", ALL_TO_ALL, BLOCKING), ("B", "C", ALL_TO_ALL, BLOCKING)
    )


def test_results_are_released_when_their_last_consumer_has_finished() -> None:
    world = started(batch(2))
    world.run_to(S.FINISHED, "A")
    world.grant_all()
    before = len(world.commands)
    while current(world, "B", 0) in world.tasks:
        world.progress(current(world, "B", 0))
    assert released(world.commands[before:]) == []
    while current(world, "B", 1) in world.tasks:
        world.progress(current(world, "B", 1))
    assert released(world.commands[before:]) == ["A0#0", "A1#0"]
    assert world.scheduler.state is J.FINISHED


def test_a_producer_read_by_two_keeps_its_results_for_the_second() -> None:
    world = started(
        job(
            {"A": 1, "B": 1, "C": 1},
            ("A", "B", ALL_TO_ALL, BLOCKING),
            ("A", "C", POINTWISE, BLOCKING),
        )
    )
    world.run_to(S.FINISHED, "A")
    world.grant_all()
    world.run_to(S.FINISHED, "B")
    assert released(world.commands) == []
    assert world.scheduler.needs_results(current(world, "A"))
    world.run_to(S.FINISHED, "C")
    assert released(world.commands) == ["A0#0"]
    assert not world.scheduler.needs_results(current(world, "A"))


def test_who_needs_released_results_again_makes_their_producer_run_again() -> None:
    world = started(stages(), RESTARTS)
    world.run_to(S.FINISHED, "A")
    world.grant_all()
    world.run_to(S.FINISHED, "B")
    assert released(world.commands) == ["A0#0"]
    world.grant_all()
    place = next(iter(world.slots.values())).resource_id
    world.send(ResultsLost(ResourceId(place)))
    world.fail(world.attempt("C", 0))
    world.fire("restart-1")
    assert [current(world, name).attempt for name in "ABC"] == [1, 1, 1]
    assert world.run_fairly() is J.FINISHED


def test_a_consumer_that_fails_alone_finds_the_results_still_there() -> None:
    world = started(stages(), RESTARTS)
    world.run_to(S.FINISHED, "A")
    world.grant_all()
    world.fail(world.attempt("B", 0))
    assert released(world.fire("restart-1")) == []
    assert [current(world, name).attempt for name in "AB"] == [0, 1]


def test_a_job_whose_exchanges_all_block_runs_in_parts_and_others_do_not() -> None:
    assert Scheduler(batch(2)).runs_in_parts
    assert not Scheduler(pipeline(2)).runs_in_parts
    assert not Scheduler(
        batch(2), SchedulerConfig(strategy=SchedulingStrategyKind.EAGER)
    ).runs_in_parts


def test_vertices_of_one_place_joined_by_a_blocking_exchange_start_together() -> None:
    graph = batch(1)
    for vertex in graph.vertices:
        vertex.co_location_group = "loop"
    world = started(graph)
    assert world.run_fairly() is J.FINISHED
