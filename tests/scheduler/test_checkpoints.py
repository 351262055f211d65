"""Event by event: what the checkpoint coordinator asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from flinkpy.core.errors import CheckpointError, ConfigurationError, SavepointRestoreError
from flinkpy.core.ids import JobVertexId, OperatorId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.core.options.checkpointing import (
    CheckpointMode,
    CheckpointRetention,
    CheckpointSettings,
)
from flinkpy.graph.checkpoints import (
    CompletedCheckpoint,
    DataSetState,
    OperatorCheckpoint,
    OperatorSubtaskState,
    SubtaskSnapshot,
)
from flinkpy.graph.job_graph import JobGraph, OperatorInfo
from flinkpy.scheduler.checkpointing.state_assignment import task_restore
from flinkpy.scheduler.protocol import (
    CancelJob,
    CheckpointDeclined,
    CheckpointStored,
    CheckpointStoreFailed,
    Command,
    CoordinatorSnapshot,
    DeployTasks,
    DiscardCheckpoint,
    FailJob,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    ResetCoordinators,
    RestoreFrom,
    SetTimer,
    StartScheduling,
    StoreCheckpoint,
    TimerFired,
    TriggerCheckpoint,
)
from flinkpy.scheduler.scheduler import SchedulerConfig
from tests.scheduler.checkpoint_ledger import CheckpointLedger, earlier_checkpoint, handle, saved
from tests.scheduler.environment import Boom, World, short
from tests.scheduler.jobs import PIPELINED, POINTWISE, batch, job, pipeline, strands

S, J = ExecutionState, JobState
DUE, PAUSE, TIMEOUT = "checkpoint-due", "checkpoint-pause", "checkpoint-timeout"


def told(commands: list[Command]) -> list[str]:
    """The commands about checkpoints in short: ``trigger 1: A0#0``, ``store 1``, ``complete 1: A0#0
    B0#0``."""
    lines = []
    for command in commands:
        if isinstance(
            command, (TriggerCheckpoint, NotifyCheckpointComplete, NotifyCheckpointAborted)
        ):
            verb = {
                TriggerCheckpoint: "trigger",
                NotifyCheckpointComplete: "complete",
                NotifyCheckpointAborted: "aborted",
            }[type(command)]
            lines.append(
                f"{verb} {command.checkpoint_id}: " + " ".join(map(short, command.attempts))
            )
        elif isinstance(command, (StoreCheckpoint, DiscardCheckpoint)):
            lines.append(
                f"{'store' if isinstance(command, StoreCheckpoint) else 'discard'} "
                f"{command.checkpoint.checkpoint_id}"
            )
        elif isinstance(command, SetTimer) and command.timer_id.startswith("checkpoint"):
            lines.append(f"{command.timer_id} {command.delay_s}")
    return lines


def settings(**values: Any) -> SchedulerConfig:
    return SchedulerConfig(
        restart="fixed-delay",
        attempts=5,
        delay_s=5.0,
        checkpoints=CheckpointSettings(**{"interval_s": 10.0, **values}),
    )


def running(
    job_graph: JobGraph,
    config: SchedulerConfig | None = None,
    *,
    restored: CompletedCheckpoint | None = None,
) -> World:
    """A job all of whose tasks run."""
    world = World.of(job_graph, config or settings())
    if restored is not None:
        world.restore(restored)
    world.send(StartScheduling(1_000_000))
    world.grant_all()
    world.run_to(S.RUNNING)
    return world


def acknowledge(world: World) -> list[Command]:
    """All that is on its way arrives; the last answer is the store's, if it comes so far."""
    commands: list[Command] = []
    while world.checkpoints.answers:
        commands = world.answer(world.checkpoints.answers[0])
    return commands


def restart(world: World) -> list[Command]:
    """A failover comes to its end: everything runs again."""
    while any(task.cancelled for task in world.tasks.values()):
        world.progress(next(each for each, task in world.tasks.items() if task.cancelled))
    commands = world.fire(next(timer for timer in world.timers if timer.startswith("restart")))
    world.grant_all()
    world.run_to(S.RUNNING)
    return commands


def restored(world: World) -> set[int | None]:
    """The checkpoints that the last deployments start from, one for each task."""
    return {
        None if descriptor.restore is None else descriptor.restore.checkpoint_id
        for command in world.commands
        if isinstance(command, DeployTasks)
        for descriptor in command.descriptors
        if descriptor.attempt_id in world.tasks
    }


# -- the way of a checkpoint -----------------------------------------------------------------------


def test_without_an_interval_there_are_no_checkpoints() -> None:
    assert not [
        line
        for line in told(running(pipeline(1), SchedulerConfig()).commands)
        if "checkpoint" in line
    ]


def test_a_checkpoint_is_triggered_at_the_sources_acknowledged_by_all_stored_and_then_complete() -> (
    None
):
    world = running(pipeline(2))
    world.now = 2.0
    commands = world.fire(DUE)
    assert told(commands) == [
        "checkpoint-timeout 600.0",
        "trigger 1: A0#0 A1#0",
        "checkpoint-due 10.0",
    ]
    trigger = next(command for command in commands if isinstance(command, TriggerCheckpoint))
    assert (trigger.timestamp_ms, trigger.coordinators) == (1_012_000, (OperatorId("a"),))
    enumerator, *acknowledgements = world.checkpoints.answers
    assert [told(world.answer(each)) for each in acknowledgements] == [[], [], [], []]
    assert told(world.answer(enumerator)) == ["store 1"]
    world.now += 0.5
    assert told(world.answer(CheckpointStored(1, "dir/chk-1"))) == [
        "complete 1: A0#0 A1#0 B0#0 B1#0"
    ]
    report = world.scheduler.report()
    latest = report.checkpoints.latest_complete
    assert latest is not None
    assert (report.details.checkpoints.latest_id, report.checkpoints.completed) == (1, 1)
    assert (latest.checkpoint_id, latest.state_size, latest.duration_ms) == (1, 35, 500)


def test_a_checkpoint_has_the_states_by_operator_and_subtask() -> None:
    world = running(strands(2))
    world.fire(DUE)
    acknowledge(world)
    operator = world.checkpoints.stores[1].operators[OperatorId("a")]
    assert operator == OperatorCheckpoint(
        "A",
        2,
        128,
        {
            index: saved(world.attempt("A", index), 1).snapshot.operators[OperatorId("a")]
            for index in range(2)
        },
        handle("chk-1/a"),
    )


def test_a_task_without_state_leaves_none_behind() -> None:
    world = running(pipeline(1))
    world.fire(DUE)
    first = replace(saved(world.attempt("A", 0), 1), snapshot=SubtaskSnapshot())
    world.send(CoordinatorSnapshot(1, {}))
    world.send(first)
    [store] = [
        each
        for each in world.scheduler.handle(replace(first, attempt_id=world.attempt("B", 0)), 0.0)
        if isinstance(each, StoreCheckpoint)
    ]
    assert store.checkpoint.operators == {}


def test_a_checkpoint_that_is_due_waits_until_the_last_task_runs() -> None:
    world = World.of(pipeline(1), settings())
    world.send(StartScheduling())
    world.grant_all()
    world.run_to(S.RUNNING, "A")
    assert told(world.fire(DUE)) == []
    assert told(world.progress(world.attempt("B", 0))) == []
    assert "trigger 1: A0#0" in told(world.progress(world.attempt("B", 0)))


def test_no_more_checkpoints_are_under_way_than_may_be() -> None:
    world = running(pipeline(1), settings(max_concurrent=2))
    assert [line for _ in range(3) for line in told(world.fire(DUE)) if "trigger" in line] == [
        "trigger 1: A0#0",
        "trigger 2: A0#0",
    ]
    assert "trigger 3: A0#0" in told(acknowledge_one(world, 1))


def acknowledge_one(world: World, number: int) -> list[Command]:
    """All answers for that checkpoint arrive."""
    commands: list[Command] = []
    while answers := [
        each for each in world.checkpoints.answers if getattr(each, "checkpoint_id", 0) == number
    ]:
        commands = world.answer(answers[0])
    return commands


def test_after_a_complete_checkpoint_the_pause_is_kept() -> None:
    world = running(pipeline(1), settings(min_pause_s=3.0))
    world.fire(DUE)
    assert told(acknowledge(world)) == ["complete 1: A0#0 B0#0", "checkpoint-pause 3.0"]
    assert told(world.fire(DUE)) == []
    assert "trigger 2: A0#0" in told(world.fire(PAUSE))


def test_a_later_checkpoint_that_is_complete_first_ends_the_earlier_one() -> None:
    world = running(pipeline(1), settings(max_concurrent=2, tolerable_failures=0))
    world.fire(DUE)
    world.answer(world.checkpoints.answers[0])
    world.fire(DUE)
    assert told(acknowledge_one(world, 2)) == [
        "aborted 1: A0#0 B0#0",
        "discard 1",
        "complete 2: A0#0 B0#0",
    ]
    assert world.scheduler.state is J.RUNNING


def test_the_newest_few_complete_checkpoints_are_kept() -> None:
    world = running(pipeline(1), settings(retained=2))
    last: list[Command] = []
    for _ in range(3):
        world.fire(DUE)
        last = acknowledge(world)
    assert told(last) == ["discard 1", "complete 3: A0#0 B0#0"]


def test_what_was_not_asked_of_the_store_is_not_complete() -> None:
    world = running(pipeline(1))
    world.fire(DUE)
    for event in (
        CheckpointStored(1),
        CheckpointStoreFailed(2, Boom("disk full")),
        CheckpointStored(2),
    ):
        assert told(world.scheduler.handle(event, world.now)) == []


@pytest.mark.parametrize("again", ["twice", "of another attempt", "of no checkpoint"])
def test_an_acknowledgement_that_nobody_waits_for_is_ignored(again: str) -> None:
    world = running(pipeline(1))
    world.fire(DUE)
    said = saved(world.attempt("A", 0), 1)
    world.answer(said)
    strange = {
        "twice": said,
        "of another attempt": replace(said, attempt_id=said.attempt_id._replace(attempt=3)),
        "of no checkpoint": replace(said, checkpoint_id=9),
    }[again]
    assert told(world.scheduler.handle(strange, world.now)) == []
    assert told(acknowledge(world)) == ["complete 1: A0#0 B0#0"]


def test_a_job_with_blocking_results_takes_none_and_neither_does_one_in_batch() -> None:
    assert told(running(batch(1)).commands) == []
    assert (
        CheckpointSettings.of(
            {"execution.checkpointing.interval": "1 s", "execution.runtime-mode": "BATCH"}
        ).interval_s
        is None
    )


# -- tasks that have finished ----------------------------------------------------------------------


def test_barriers_begin_where_all_producers_have_finished_and_what_finished_is_recorded() -> None:
    world = running(strands(2))
    world.progress(world.attempt("A", 0))
    assert "trigger 1: A1#0 B0#0" in told(world.fire(DUE))
    acknowledge(world)
    assert {
        name: operator.finished for name, operator in world.checkpoints.stores[1].operators.items()
    } == {"a": {0}, "b": set()}


def test_a_vertex_that_had_finished_altogether_ends_at_once_when_it_is_restored() -> None:
    world = running(pipeline(1))
    world.progress(world.attempt("A", 0))
    world.fire(DUE)
    acknowledge(world)
    world.fail(world.attempt("B", 0))
    restart(world)
    assert {
        name: world.tasks[world.attempt(name, 0)].descriptor.restore.finished  # type: ignore[union-attr]
        for name in "AB"
    } == {"A": True, "B": False}


def test_a_vertex_that_had_finished_and_runs_to_tell_its_consumers_has_finished_in_later_checkpoints() -> (
    None
):
    world = running(pipeline(1))
    world.fire(DUE)
    said = saved(world.attempt("A", 0), 1)
    world.send(CoordinatorSnapshot(1, {}))
    world.send(replace(said, snapshot=SubtaskSnapshot(had_finished=True)))
    [store] = [
        each
        for each in world.scheduler.handle(replace(said, attempt_id=world.attempt("B", 0)), 0.0)
        if isinstance(each, StoreCheckpoint)
    ]
    assert store.checkpoint.operators[OperatorId("a")].is_fully_finished


def test_a_vertex_that_had_finished_in_part_runs_again_as_a_whole() -> None:
    world = running(strands(2))
    world.progress(world.attempt("A", 0))
    world.fire(DUE)
    acknowledge(world)
    world.send(FailJob(Boom("everything")))
    restart(world)
    restores = [
        task.descriptor.restore
        for task in world.tasks.values()
        if task.descriptor.restore is not None
    ]
    assert [restore.finished for restore in restores] == [False] * 4


def test_a_task_ends_at_once_only_if_all_its_operators_had_finished() -> None:
    done, more = (
        OperatorCheckpoint(name, 1, 128, finished=finished)
        for name, finished in (("A", frozenset({0})), ("B", frozenset[int]()))
    )
    graph = pipeline(1)
    operators = (OperatorInfo(OperatorId("a"), "A"), OperatorInfo(OperatorId("b"), "B"))
    vertex = replace(graph.vertices[0], operators=operators)
    finished = [
        task_restore(
            CompletedCheckpoint(1, 0, dict(zip("ab", states, strict=False))),  # type: ignore[arg-type]
            vertex,
            graph,
        ).finished
        for states in ((done, done), (done, more), (done,), ())
    ]
    assert finished == [True, False, False, False]


def test_what_is_still_being_stored_when_the_job_ends_is_discarded() -> None:
    world = running(pipeline(1))
    world.fire(DUE)
    while not isinstance(world.checkpoints.answers[0], CheckpointStored):
        world.answer(world.checkpoints.answers[0])
    world.progress(world.attempt("A", 0))
    assert told(world.progress(world.attempt("B", 0))) == ["discard 1"]
    assert world.scheduler.state is J.FINISHED


def test_a_task_that_finishes_without_acknowledging_ends_the_checkpoint_and_the_next_one_follows_at_once() -> (
    None
):
    world = running(pipeline(2))
    world.fire(DUE)
    assert told(world.progress(world.attempt("A", 0))) == [
        "aborted 1: A1#0 B0#0 B1#0",
        "discard 1",
        "checkpoint-timeout 600.0",
        "trigger 2: A1#0",
        "checkpoint-due 10.0",
    ]
    assert world.scheduler.state is J.RUNNING


def test_nothing_is_triggered_when_everything_has_finished() -> None:
    world = running(pipeline(1))
    world.run_to(S.FINISHED)
    assert world.scheduler.state is J.FINISHED
    assert told(world.fire(DUE)) == []


# -- checkpoints that fail -------------------------------------------------------------------------


def decline(world: World) -> list[Command]:
    return world.answer(
        CheckpointDeclined(world.attempt("A", 0), max(world.checkpoints.participants), "not now")
    )


def fail_store(world: World) -> list[Command]:
    while not isinstance(world.checkpoints.answers[0], CheckpointStored):
        world.answer(world.checkpoints.answers[0])
    return world.answer(
        CheckpointStoreFailed(max(world.checkpoints.participants), Boom("disk full"))
    )


def expire(world: World) -> list[Command]:
    return world.fire(TIMEOUT)


@pytest.mark.parametrize(
    ("fails", "why"),
    [
        (decline, "checkpoint 4: A (1/1) declined it: not now"),
        (fail_store, "could not be stored: disk full"),
        (expire, "not complete within 600.0 s"),
    ],
)
def test_more_failures_in_a_row_than_are_tolerable_restart_the_job(fails: Any, why: str) -> None:
    world = running(pipeline(1), settings(tolerable_failures=1))
    for ends in (fails, acknowledge, fails):  # one that is complete makes the count begin anew
        world.fire(DUE)
        ends(world)
    assert not world.scheduler.details().failures
    world.fire(DUE)
    assert told(fails(world)) == ["aborted 4: A0#0 B0#0", "discard 4"]
    assert world.scheduler.state is J.RESTARTING
    error = world.scheduler.details().failures[-1].error
    assert isinstance(error, CheckpointError)
    assert why in str(error)


def test_checkpoints_that_a_failover_ends_do_not_count_as_failed_ones() -> None:
    world = running(pipeline(1), settings(tolerable_failures=0))
    world.fire(DUE)
    world.fail(world.attempt("A", 0))
    restart(world)
    assert world.scheduler.state is J.RUNNING
    assert len(world.scheduler.details().failures) == 1


def test_the_timer_of_an_earlier_checkpoint_does_not_end_a_later_one() -> None:
    world = running(pipeline(1), settings(max_concurrent=2, timeout_s=15.0))
    world.send(TimerFired(DUE))
    world.now = 10.0
    world.send(TimerFired(DUE))
    acknowledge_one(world, 1)
    world.now = 15.0
    assert told(world.send(TimerFired(TIMEOUT))) == ["checkpoint-timeout 10.0"]
    world.now = 25.0
    assert told(world.send(TimerFired(TIMEOUT))) == ["aborted 2: A0#0 B0#0", "discard 2"]


def test_what_is_acknowledged_after_the_end_of_a_checkpoint_is_discarded_once() -> None:
    world = running(pipeline(1), settings(tolerable_failures=5))
    world.fire(DUE)
    enumerator, first, second = world.checkpoints.answers
    world.answer(first)
    expire(world)
    late = [told(world.answer(each)) for each in (first, second, second, enumerator, enumerator)]
    assert late == [[], ["discard 1"], [], ["discard 1"], []]


# -- failover --------------------------------------------------------------------------------------


def test_a_restart_begins_with_the_newest_complete_checkpoint() -> None:
    world = running(pipeline(2), settings(retained=2))
    for _ in range(2):
        world.fire(DUE)
        acknowledge(world)
    world.fail(world.attempt("A", 0))
    [reset] = [command for command in restart(world) if isinstance(command, ResetCoordinators)]
    assert (reset.checkpoint_id, reset.states) == (2, {"a": handle("chk-2/a")})
    assert restored(world) == {2}
    task = world.tasks[world.attempt("B", 1)].descriptor
    assert task.restore is not None
    assert [state.keyed for state in task.restore.operators[OperatorId("b")].subtasks] == [
        None,
        handle("chk-2/B1#0"),
    ]


def test_the_next_restart_begins_with_the_next_checkpoint() -> None:
    world = running(pipeline(1))
    for number in (1, 2):
        world.fire(DUE)
        acknowledge(world)
        world.fail(world.attempt("A", 0))
        restart(world)
        assert restored(world) == {number}


def test_tasks_hear_where_their_checkpoint_is() -> None:
    world = running(pipeline(1))
    world.fire(DUE)
    while not isinstance(world.checkpoints.answers[0], CheckpointStored):
        world.answer(world.checkpoints.answers[0])
    world.checkpoints.answers.clear()
    world.answer(CheckpointStored(1, "dir/chk-1"))
    world.fail(world.attempt("A", 0))
    restart(world)
    assert {
        task.descriptor.restore.location
        for task in world.tasks.values()
        if task.descriptor.restore is not None
    } == {"dir/chk-1"}


def test_before_the_first_checkpoint_is_complete_a_job_restarts_from_its_beginning() -> None:
    world = running(pipeline(1))
    world.fire(DUE)
    world.fail(world.attempt("A", 0))
    restart(world)
    assert restored(world) == {None}


def test_a_checkpoint_that_is_stored_after_a_failover_began_does_not_count() -> None:
    world = running(pipeline(1))
    world.fire(DUE)
    while not isinstance(world.checkpoints.answers[0], CheckpointStored):
        world.answer(world.checkpoints.answers[0])
    assert told(world.fail(world.attempt("A", 0))) == ["discard 1"]
    assert told(acknowledge(world)) == []
    restart(world)
    assert restored(world) == {None}


def being_stored(world: World) -> None:
    """Checkpoint 1 is acknowledged by all, and its manifest is being written."""
    world.fire(DUE)
    while not isinstance(world.checkpoints.answers[0], CheckpointStored):
        world.answer(world.checkpoints.answers[0])


def is_cancelled(world: World) -> None:
    while any(task.cancelled for task in world.tasks.values()):
        world.progress(next(each for each, task in world.tasks.items() if task.cancelled))


def test_a_failover_waits_until_a_checkpoint_that_was_being_stored_is_gone() -> None:
    """Otherwise a JobManager that takes over starts from it, and tasks may have cleared away what
    their sinks had prepared for it."""
    world = running(pipeline(1))
    being_stored(world)
    world.fail(world.attempt("A", 0))
    is_cancelled(world)
    world.fire("restart-1")
    stored, discarded = world.checkpoints.answers
    world.answer(stored)
    assert (world.states[-1], world.requests) == (J.RESTARTING, {})
    world.answer(discarded)
    assert world.states[-1] is J.RUNNING


def test_a_failover_waits_for_a_checkpoint_that_was_given_up_long_before() -> None:
    world = running(pipeline(1), settings(tolerable_failures=5))
    being_stored(world)
    world.fire(TIMEOUT)
    world.fail(world.attempt("A", 0))
    is_cancelled(world)
    world.fire("restart-1")
    assert world.states[-2:] == [J.RUNNING, J.RESTARTING]
    acknowledge(world)
    assert world.states[-1] is J.RUNNING


def test_a_failover_does_not_wait_for_a_checkpoint_that_nobody_can_find() -> None:
    world = running(pipeline(1))
    world.fire(DUE)
    world.answer(world.checkpoints.answers[1])
    world.fail(world.attempt("A", 0))
    is_cancelled(world)
    world.fire("restart-1")
    assert world.scheduler.state is J.RUNNING


def test_a_job_is_cancelled_whatever_becomes_of_the_checkpoint_that_was_being_stored() -> None:
    world = running(pipeline(1))
    being_stored(world)
    world.send(CancelJob())
    is_cancelled(world)
    assert world.scheduler.state is J.CANCELED


def test_where_one_strand_restarts_its_readers_are_reset_and_the_enumerator_is_not() -> None:
    world = running(strands(2))
    world.fire(DUE)
    acknowledge(world)
    world.fail(world.attempt("B", 1))
    [reset] = [command for command in restart(world) if isinstance(command, ResetCoordinators)]
    assert ({short(each) for each in reset.attempts}, reset.checkpoint_id, reset.states) == (
        {"A1#0", "B1#0"},
        1,
        {},
    )
    assert world.running == {"A0#0", "B0#0", "A1#1", "B1#1"}


def test_a_failed_enumerator_goes_back_to_the_checkpoint() -> None:
    world = running(strands(2))
    world.fire(DUE)
    acknowledge(world)
    world.send(FailJob(Boom("enumerator")))
    [reset] = [command for command in restart(world) if isinstance(command, ResetCoordinators)]
    assert reset.states == {"a": handle("chk-1/a")}


# -- starting from a checkpoint --------------------------------------------------------------------


def test_a_job_starts_from_a_checkpoint_and_goes_on_counting_and_leaves_it_alone() -> None:
    graph = pipeline(1)
    world = running(graph, restored=earlier_checkpoint(graph, 7))
    [reset] = [command for command in world.commands if isinstance(command, ResetCoordinators)]
    assert (reset.attempts, reset.checkpoint_id, reset.states) == (
        (),
        7,
        {"a": handle("earlier/A-enumerator")},
    )
    assert restored(world) == {7}
    assert "trigger 8: A0#0" in told(world.fire(DUE))
    assert told(acknowledge(world)) == ["complete 8: A0#0 B0#0"]


def test_a_checkpoint_that_the_job_claims_is_released_like_its_own() -> None:
    graph = pipeline(1)
    world = World.of(graph, settings())
    world.restore(earlier_checkpoint(graph), claim=True)
    world.send(StartScheduling())
    world.grant_all()
    world.run_to(S.RUNNING)
    world.fire(DUE)
    assert told(acknowledge(world)) == ["discard 7", "complete 8: A0#0 B0#0"]


@pytest.mark.parametrize(
    ("generation", "restored_id", "first"),
    [(1, None, 2001), (3, None, 4001), (1, 7, 2001), (1, 2500, 4001), (2, 1004, 4001)],
)
def test_a_job_master_that_took_the_job_over_uses_no_number_again(
    generation: int, restored_id: int | None, first: int
) -> None:
    graph = pipeline(1)
    world = World.of(graph, replace(settings(), generation=generation))
    if restored_id is not None:
        world.restore(earlier_checkpoint(graph, restored_id), is_own=True)
    world.send(StartScheduling())
    world.grant_all()
    world.run_to(S.RUNNING)
    assert f"trigger {first}: A0#{generation}000000" in told(world.fire(DUE))


@pytest.mark.parametrize(("allowed", "state"), [(False, J.FAILED), (True, J.RUNNING)])
def test_state_of_operators_that_are_gone_is_refused_unless_that_is_allowed(
    allowed: bool, state: JobState
) -> None:
    checkpoint = earlier_checkpoint(job({"A": 1, "X": 1}, ("A", "X", POINTWISE, PIPELINED)))
    world = World.of(pipeline(1), settings())
    world.checkpoints = CheckpointLedger(world.checkpoints.settings, checkpoint)
    world.send(RestoreFrom(checkpoint, allow_non_restored=allowed))
    world.send(StartScheduling())
    assert world.scheduler.state is state
    if not allowed:
        assert isinstance(world.error, SavepointRestoreError)
        assert "operators that the job does not have: 'X'" in str(world.error)


@pytest.mark.parametrize(
    ("before", "now", "state"),
    [
        ("string", "number", J.FAILED),
        ("string", "string", J.RUNNING),
        (None, "number", J.RUNNING),
        ("string", None, J.RUNNING),
    ],
)
def test_state_by_key_is_refused_where_the_type_of_keys_has_changed(
    before: str | None, now: str | None, state: JobState
) -> None:
    graph = pipeline(1)
    checkpoint, b = earlier_checkpoint(graph), OperatorId("b")
    checkpoint = replace(
        checkpoint,
        operators={
            **checkpoint.operators,
            b: replace(checkpoint.operators[b], key_kind=before, uid="sums"),
        },
    )
    for vertex in graph.vertices:
        vertex.operators = tuple(replace(each, key_kind=now) for each in vertex.operators)
    world = World.of(graph, settings())
    world.restore(checkpoint)
    world.send(StartScheduling())
    assert world.scheduler.state is state
    if state is J.FAILED:
        assert "the type of keys has changed" in str(world.error)
        assert "'B' (uid 'sums') (from string to number)" in str(world.error)


def test_state_by_key_is_refused_where_the_max_parallelism_has_changed() -> None:
    checkpoint = earlier_checkpoint(pipeline(1))
    operators = {
        **checkpoint.operators,
        OperatorId("b"): replace(checkpoint.operators[OperatorId("b")], max_parallelism=64),
    }
    world = World.of(pipeline(1), settings())
    world.send(RestoreFrom(replace(checkpoint, operators=operators)))
    assert world.scheduler.state is J.FAILED
    assert "'B' (from 64 to 128)" in str(world.error)


@pytest.mark.finding("gaps G7")
@pytest.mark.parametrize(
    ("saved", "parallelism", "state"),
    [(64, 2, J.RUNNING), (512, 2, J.RUNNING), (2, 2, J.RUNNING), (1, 2, J.FAILED)],
)
def test_a_max_parallelism_that_the_program_leaves_open_is_that_of_the_checkpoint(
    saved: int, parallelism: int, state: JobState
) -> None:
    checkpoint = earlier_checkpoint(pipeline(parallelism))
    operators = {
        **checkpoint.operators,
        OperatorId("b"): replace(checkpoint.operators[OperatorId("b")], max_parallelism=saved),
    }
    graph = pipeline(parallelism)
    for vertex in graph.vertices:
        vertex.max_parallelism_is_set = False
    world = World.of(graph, settings())
    checkpoint = replace(checkpoint, operators=operators)
    world.checkpoints = CheckpointLedger(world.checkpoints.settings, checkpoint)
    world.send(RestoreFrom(checkpoint))
    world.send(StartScheduling())
    assert world.scheduler.state is state
    if state is J.FAILED:
        assert "more subtasks than the max parallelism" in str(world.error)
        assert "'B' (2 subtasks, max parallelism 1)" in str(world.error)
        return
    world.grant_all()
    world.run_to(S.RUNNING)
    (sender, *_), (receiver, *_) = (
        [task.descriptor for task in world.tasks.values() if task.descriptor.task_name == name]
        for name in ("A", "B")
    )
    # both must know where a key is
    assert (receiver.max_parallelism, sender.partitions[0].key_groups) == (saved, saved)


def test_state_that_has_no_keys_does_not_depend_on_the_max_parallelism() -> None:
    state = {0: OperatorSubtaskState(operator=handle("list"))}
    checkpoint = CompletedCheckpoint(3, 0, {OperatorId("b"): OperatorCheckpoint("B", 1, 64, state)})
    assert restored(running(pipeline(1), restored=checkpoint)) == {3}


@pytest.mark.finding("faults 9")
@pytest.mark.parametrize("parallelism", [2, 3])
def test_the_first_checkpoint_aligns_if_records_in_flight_go_another_way_than_they_were_on(
    parallelism: int,
) -> None:
    graph = pipeline(parallelism)
    [edge] = graph.vertex(JobVertexId("B")).inputs
    in_flight = DataSetState(2, 2, edge.consumer, edge.input_index, edge.ship_strategy, ())
    earlier = replace(earlier_checkpoint(graph), in_flight={edge.data_set.id: in_flight})
    world = running(graph, settings(alignment_timeout_ms=0), restored=earlier)

    def timeout_of_next() -> int | None:
        [trigger] = [
            command for command in world.fire(DUE) if isinstance(command, TriggerCheckpoint)
        ]
        acknowledge(world)
        return trigger.options.alignment_timeout_ms

    assert timeout_of_next() == (0 if parallelism == 2 else None)
    assert timeout_of_next() == 0


# -- the end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("retention", "end", "kept"),
    [
        (
            retention,
            end,
            (retention, end)
            in {
                ("RETAIN_ON_CANCELLATION", J.CANCELED),
                ("RETAIN_ON_CANCELLATION", J.FAILED),
                ("DELETE_ON_CANCELLATION", J.FAILED),
            },
        )
        for retention in CheckpointRetention.__members__
        for end in (J.FINISHED, J.CANCELED, J.FAILED)
    ],
)
def test_what_outlives_the_job_depends_on_how_it_ends(
    retention: str, end: JobState, kept: bool
) -> None:
    world = running(
        pipeline(1), replace(settings(retention=CheckpointRetention[retention]), attempts=0)
    )
    world.fire(DUE)
    acknowledge(world)
    if end is J.CANCELED:
        world.send(CancelJob())
    elif end is J.FAILED:
        world.fail(world.attempt("A", 0))
    world.run_fairly()
    assert world.scheduler.state is end
    assert told(world.commands)[-1].startswith("discard 1") is not kept
    assert (handle("chk-1/A0#0").path in world.checkpoints.discarded) is not kept


# -- settings --------------------------------------------------------------------------------------


def test_the_configuration_says_when_checkpoints_are_taken() -> None:
    read = CheckpointSettings.of(
        {
            "execution.checkpointing.interval": "5 s",
            "execution.checkpointing.timeout": "1 min",
            "execution.checkpointing.mode": "at-least-once",
            "execution.checkpointing.max-concurrent-checkpoints": "3",
            "execution.checkpointing.tolerable-failed-checkpoints": 2,
            "state.checkpoints.num-retained": 4,
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        }
    )
    assert read == CheckpointSettings(
        5.0,
        0.0,
        60.0,
        3,
        2,
        CheckpointMode.AT_LEAST_ONCE,
        CheckpointRetention.RETAIN_ON_CANCELLATION,
        4,
    )
    assert CheckpointSettings.of({}) == CheckpointSettings()


def test_with_a_pause_between_them_checkpoints_come_one_at_a_time() -> None:
    both = {
        "execution.checkpointing.min-pause": "1 s",
        "execution.checkpointing.max-concurrent-checkpoints": 3,
    }
    assert CheckpointSettings.of(both).max_concurrent == 1


@pytest.mark.parametrize("key", ["num-retained", "max-concurrent-checkpoints"])
def test_at_least_one_is_kept_and_may_be_under_way(key: str) -> None:
    with pytest.raises(ConfigurationError, match="at least 1"):
        CheckpointSettings.of({f"execution.checkpointing.{key}": 0})


@pytest.mark.finding("gaps G10")
@pytest.mark.parametrize("mode", list(CheckpointMode))
def test_barriers_of_a_job_that_wants_each_record_at_least_once_make_no_channel_wait(
    mode: CheckpointMode,
) -> None:
    config = settings()
    world = running(
        pipeline(1), replace(config, checkpoints=replace(config.checkpoints, mode=mode))
    )
    (trigger,) = [command for command in world.fire(DUE) if isinstance(command, TriggerCheckpoint)]
    assert trigger.options.is_tracked == (mode is CheckpointMode.AT_LEAST_ONCE)
