"""A job's plan is replaced by one of another parallelism: before the job starts, and when all of it
restarts. Invariants are checked after every event, and what becomes of state by a ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flinkpy.core.errors import EngineError
from flinkpy.core.ids import JobVertexId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.core.options.checkpointing import CheckpointSettings
from flinkpy.graph.checkpoints import DataSetState
from flinkpy.graph.job_graph import JobGraph, ResultPartitionType
from flinkpy.scheduler.planning.execution_plan import at_parallelism
from flinkpy.scheduler.protocol import (
    Command,
    FailJob,
    ParallelismDecided,
    ResetCoordinators,
    StartScheduling,
    TriggerCheckpoint,
)
from flinkpy.scheduler.scheduler import SchedulerConfig
from tests.scheduler.checkpoint_ledger import earlier_checkpoint
from tests.scheduler.environment import Boom, World
from tests.scheduler.jobs import batch, pipeline, strands
from tests.scheduler.test_any_environment import configs, happen, happen_to_checkpoints, jobs

S, J = ExecutionState, JobState
A, B = JobVertexId("A"), JobVertexId("B")
RESTARTING = SchedulerConfig(
    restart="fixed-delay",
    attempts=5,
    checkpoints=CheckpointSettings(interval_s=10.0, alignment_timeout_ms=0),
)


def decided(a: int, b: int) -> ParallelismDecided:
    return ParallelismDecided({A: a, B: b})


def running(job_graph: JobGraph) -> World:
    world = World.of(job_graph, RESTARTING)
    world.send(StartScheduling())
    world.grant_all()
    world.run_to(S.RUNNING)
    return world


def cancel(world: World) -> None:
    """Those that are being cancelled end."""
    for attempt_id in [each for each, task in world.tasks.items() if task.cancelled]:
        world.progress(attempt_id)


def restart(world: World) -> list[Command]:
    """The restart comes to its end."""
    cancel(world)
    [timer_id] = [each for each in world.timers if each.startswith("restart-")]
    commands = world.fire(timer_id)
    world.grant_all()
    return commands


def checkpoint(world: World) -> TriggerCheckpoint:
    """Takes one; answers with how it was triggered."""
    commands = world.fire("checkpoint-due")
    while world.checkpoints.answers:
        world.answer(world.checkpoints.answers[0])
    [trigger] = [command for command in commands if isinstance(command, TriggerCheckpoint)]
    return trigger


def test_a_job_that_has_not_started_starts_at_the_parallelism_that_was_decided_last() -> None:
    world = World.of(pipeline(2))
    world.send(decided(5, 5))
    world.send(decided(1, 3))
    world.send(StartScheduling())
    world.grant_all()

    assert world.running == {"A0#0", "B0#0", "B1#0", "B2#0"}
    assert world.run_fairly() is J.FINISHED


@pytest.mark.parametrize("make", [pipeline, strands, batch])
@pytest.mark.parametrize(("a", "b"), [(1, 1), (3, 3), (1, 3), (3, 1)])
def test_a_job_that_runs_takes_the_new_plan_when_a_failure_restarts_it(
    make: Callable[[int], JobGraph], a: int, b: int
) -> None:
    world = running(make(2))
    world.send(decided(a, b))
    assert world.scheduler.graph.size == 4, "it runs on as it is"
    world.fail(next(iter(world.tasks)))
    restart(world)

    assert world.scheduler.graph.size == a + b
    assert {each.attempt for each in world.tasks} == {1}
    assert world.run_fairly() is J.FINISHED
    assert (world.slots, world.requests) == ({}, {})


def test_a_plan_that_is_decided_while_all_of_the_job_restarts_is_taken_by_this_restart() -> None:
    world = running(pipeline(2))
    world.send(FailJob(Boom("an enumerator failed")))
    cancel(world)
    world.send(decided(1, 2))
    restart(world)

    assert world.running == {"A0#1", "B0#1", "B1#1"}


def test_without_a_decision_a_failure_restarts_only_its_region() -> None:
    world = running(strands(2))
    world.fail(world.attempt("A", 0))
    restart(world)

    assert world.running == {"A0#1", "B0#1", "A1#0", "B1#0"}


def test_state_goes_to_the_subtasks_of_the_new_plan_by_its_key_groups() -> None:
    world = running(pipeline(2))
    checkpoint(world)
    world.send(decided(3, 1))
    world.fail(world.attempt("A", 0))
    [reset] = [command for command in restart(world) if isinstance(command, ResetCoordinators)]

    assert (len(reset.attempts), reset.checkpoint_id) == (4, 1)
    assert {str(operator_id) for operator_id in reset.states} == {"a"}, "its readers start anew"
    world.run_to(S.RUNNING)  # the ledger has looked at what each was deployed with
    assert set(checkpoint(world).attempts) == {world.attempt("A", index) for index in range(3)}


def with_records_in_flight(ship_strategy: str) -> World:
    """The job runs from a checkpoint with records on their way from A to B."""
    graph = pipeline(2)
    [edge] = graph.vertex(B).inputs
    graph.vertex(B).inputs = [replace(edge, ship_strategy=ship_strategy)]
    state = DataSetState(2, 2, edge.consumer, edge.input_index, ship_strategy, ())
    world = World.of(graph, RESTARTING)
    world.restore(replace(earlier_checkpoint(graph), in_flight={edge.data_set.id: state}))
    world.send(StartScheduling())
    world.grant_all()
    world.run_to(S.RUNNING)
    return world


def test_the_first_checkpoint_of_the_new_plan_aligns_what_was_in_flight_in_the_old_one() -> None:
    world = with_records_in_flight("HASH")
    world.send(decided(2, 3))
    world.fail(world.attempt("A", 0))
    restart(world)
    world.run_to(S.RUNNING)

    assert checkpoint(world).options.alignment_timeout_ms is None
    assert checkpoint(world).options.alignment_timeout_ms == 0


def test_a_plan_that_the_latest_checkpoint_does_not_fit_waits_for_another_one() -> None:
    world = with_records_in_flight("BROADCAST")
    world.send(decided(1, 3))
    world.fail(world.attempt("A", 0))
    restart(world)
    assert world.running == {"A0#1", "A1#1", "B0#1", "B1#1"}
    world.run_to(S.RUNNING)
    checkpoint(world)
    world.fail(world.attempt("A", 0))
    restart(world)

    assert world.running == {"A0#2", "B0#2", "B1#2", "B2#2"}


def test_a_subtask_of_both_plans_keeps_its_history() -> None:
    world = running(pipeline(2))
    world.send(decided(1, 3))
    world.fail(world.attempt("B", 1))
    restart(world)

    attempts = {
        f"{each[0].attempt_id.vertex_id}{each[0].attempt_id.subtask_index}": [
            one.attempt_id.attempt for one in each
        ]
        for each in world.scheduler.report().attempts
    }
    assert attempts == {"A0": [1, 0], "B0": [1, 0], "B1": [1, 0], "B2": [1]}


@pytest.mark.parametrize(
    ("parallelism", "reason"),
    [({A: 0}, "0 subtasks"), ({B: 129}, "max parallelism is 128"), ({JobVertexId("C"): 2}, "C")],
)
def test_numbers_that_cannot_be_are_refused_with_the_reason(
    parallelism: dict[JobVertexId, int], reason: str
) -> None:
    with pytest.raises(EngineError, match=reason):
        at_parallelism(pipeline(2), parallelism)


def test_the_ends_of_a_forward_edge_and_co_located_vertices_stay_of_one_parallelism() -> None:
    graph = pipeline(2)
    source, consumer = graph.vertices
    consumer.inputs = [replace(edge, ship_strategy="FORWARD") for edge in consumer.inputs]
    assert at_parallelism(graph, {A: 3, B: 3}).slots_needed == 3
    with pytest.raises(EngineError, match="FORWARD"):
        at_parallelism(graph, {A: 3})

    looped = pipeline(2)
    for vertex in looped.vertices:
        vertex.co_location_group = "loop"
    with pytest.raises(EngineError, match="co-located"):
        at_parallelism(looped, {A: 3})
    assert source.parallelism == 2, "the graph that was asked is as it was"


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
@given(jobs([ResultPartitionType.PIPELINED]), configs, st.booleans(), st.integers(0, 40), st.data())
def test_plans_are_replaced_whatever_happens_meanwhile(
    job_graph: JobGraph, config: SchedulerConfig, restored: bool, steps: int, data: st.DataObject
) -> None:
    world = World.of(job_graph, replace(config, attempts=3, exp_attempts=3))
    if restored:
        world.restore(earlier_checkpoint(job_graph))

    def decide() -> None:
        widths = {vertex.id: data.draw(st.integers(1, 4)) for vertex in job_graph.vertices}
        world.send(ParallelismDecided(widths))

    if data.draw(st.booleans()):
        decide()
    world.send(StartScheduling())
    for _ in range(steps):
        what = data.draw(st.integers(0, 9))
        if what == 0:
            decide()
        elif what == 1:
            world.send(FailJob(Boom("from outside")))
        elif what < 6:
            happen(world, data)
        else:
            happen_to_checkpoints(world, data)
    world.run_fairly()

    assert (world.slots, world.requests, world.tasks) == ({}, {}, {})
    assert world.scheduler.checkpoints.pending == {}
    if world.states[-1] is J.FINISHED:
        attempts = {vertex.execution.attempt_id for vertex in world.scheduler.graph.vertices}
        assert {world.ended[each] for each in attempts} == {S.FINISHED}
