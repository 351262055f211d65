"""Event by event: savepoints, and what a job does that stops with one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from flinkpy.core.elements import ALIGNED_CHECKPOINT, CheckpointOptions, SnapshotType
from flinkpy.core.errors import SavepointError
from flinkpy.core.ids import IdFactory
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.core.options.checkpointing import CheckpointSettings
from flinkpy.scheduler.protocol import (
    CancelJob,
    CheckpointDeclined,
    CheckpointStoreFailed,
    Command,
    DiscardCheckpoint,
    NotifyCheckpointComplete,
    ResetCoordinators,
    RestoreFrom,
    SnapshotEnded,
    SnapshotRequested,
    StartScheduling,
    StoreCheckpoint,
    TriggerCheckpoint,
)
from flinkpy.scheduler.scheduler import Scheduler, SchedulerConfig
from tests.scheduler.checkpoint_ledger import earlier_checkpoint
from tests.scheduler.environment import Boom, World
from tests.scheduler.jobs import pipeline, strands
from tests.scheduler.test_checkpoints import (
    DUE,
    TIMEOUT,
    acknowledge,
    restart,
    restored,
    running,
    settings,
    told,
)

S, J = ExecutionState, JobState
NO_INTERVAL = SchedulerConfig(
    restart="fixed-delay", attempts=5, delay_s=5.0, checkpoints=CheckpointSettings()
)


def ask(
    world: World, kind: SnapshotType = SnapshotType.SAVEPOINT, name: str = "mine"
) -> list[Command]:
    target = f"savepoints/{name}" if kind.is_savepoint else None
    return world.answer(SnapshotRequested(name, CheckpointOptions(kind, target)))


def answer_to(world: World, name: str = "mine") -> str | None:
    """The folder; an error is raised."""
    answer = world.checkpoints.answered[name]
    if answer.error is not None:
        raise answer.error
    return answer.location


def of_kind(commands: list[Command], kind: type[Any]) -> list[Any]:
    return [command for command in commands if isinstance(command, kind)]


@pytest.mark.parametrize("config", [settings(), NO_INTERVAL])
def test_a_savepoint_goes_to_its_own_folder_and_sinks_do_not_commit_for_it(
    config: SchedulerConfig,
) -> None:
    world = running(pipeline(2), config)
    [trigger] = of_kind(ask(world), TriggerCheckpoint)
    assert trigger.options == CheckpointOptions(SnapshotType.SAVEPOINT, "savepoints/mine")
    commands = acknowledge(world)
    assert answer_to(world) == "savepoints/mine"
    assert [command.target for command in of_kind(world.commands, StoreCheckpoint)] == [
        "savepoints/mine"
    ]
    assert not of_kind(commands, NotifyCheckpointComplete)
    report = world.scheduler.report()
    assert report.details.checkpoints.latest_id is None  # the job does not go back to it
    # but it counts, as in Flink
    assert (report.checkpoints.completed, report.checkpoints.failed) == (1, 0)


def test_the_job_does_not_go_back_to_a_savepoint() -> None:
    world = running(pipeline(1))
    world.fire(DUE)
    acknowledge(world)
    ask(world)
    acknowledge(world)
    world.fail(world.attempt("A", 0))
    restart(world)
    assert restored(world) == {1}


def test_a_savepoint_neither_replaces_a_checkpoint_nor_counts_among_those_that_are_kept() -> None:
    world = running(pipeline(1), settings(retained=1))
    world.fire(DUE)
    acknowledge(world)
    ask(world)
    acknowledge(world)
    assert not of_kind(world.commands, DiscardCheckpoint)
    world.fire(DUE)
    acknowledge(world)
    assert [
        command.checkpoint.checkpoint_id for command in of_kind(world.commands, DiscardCheckpoint)
    ] == [1]


def test_savepoints_and_checkpoints_wait_for_each_other() -> None:
    world = running(pipeline(1), settings(max_concurrent=3))
    world.fire(DUE)
    assert not told(ask(world, name="first"))
    assert not [line for line in told(ask(world, name="second")) if line.startswith("trigger")]
    acknowledge(world)
    assert (answer_to(world, "first"), answer_to(world, "second")) == (
        "savepoints/first",
        "savepoints/second",
    )
    ask(world, name="third")
    assert not [line for line in told(world.fire(DUE)) if line.startswith("trigger")]
    acknowledge(world)
    assert [command.checkpoint_id for command in of_kind(world.commands, TriggerCheckpoint)] == [
        1,
        2,
        3,
        4,
        5,
    ]


def test_a_savepoint_waits_until_all_tasks_run() -> None:
    world = World.of(pipeline(2), NO_INTERVAL)
    world.send(StartScheduling())
    ask(world)
    assert not of_kind(world.commands, TriggerCheckpoint)
    world.grant_all()
    world.run_to(S.RUNNING)
    assert of_kind(world.commands, TriggerCheckpoint)


def test_a_savepoint_that_cannot_begin_in_time_is_given_up() -> None:
    world = World.of(pipeline(2), NO_INTERVAL)
    world.send(StartScheduling())
    ask(world)
    world.fire("snapshot-request-timeout")
    with pytest.raises(
        SavepointError, match="could not begin within 600 s: not all of its tasks run"
    ):
        answer_to(world)


def failing(world: World, how: str) -> list[Command]:
    if how == "declined":
        attempt_id = world.attempt("B", 0)
        world.checkpoints.answers.clear()
        return world.answer(CheckpointDeclined(attempt_id, 1, "no disk"))
    if how == "not stored":
        return world.answer(CheckpointStoreFailed(1, Boom("no disk")))
    return world.fire(TIMEOUT)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("declined", "declined it: no disk"),
        ("not stored", "could not be stored: no disk"),
        ("timeout", "not complete within 600.0 s"),
    ],
)
def test_a_savepoint_that_fails_says_why_and_the_job_tolerates_it(how: str, reason: str) -> None:
    world = running(pipeline(1), settings(tolerable_failures=0))
    ask(world)
    commands = failing(world, how)
    with pytest.raises(SavepointError, match=f"a savepoint of job '.*' failed: .*{reason}"):
        answer_to(world)
    assert [command.target for command in of_kind(commands, DiscardCheckpoint)] == [
        "savepoints/mine"
    ]
    assert world.scheduler.state is J.RUNNING


def test_a_job_that_cannot_take_savepoints_says_why() -> None:
    job_graph = pipeline(1)
    job_graph.no_savepoints = "it runs in BATCH"
    world = running(job_graph)
    ask(world)
    with pytest.raises(SavepointError, match="takes no savepoints: it runs in BATCH"):
        answer_to(world)


def test_a_job_that_restarts_refuses_a_savepoint() -> None:
    world = running(pipeline(1))
    world.fail(world.attempt("A", 0))
    ask(world)
    with pytest.raises(SavepointError, match="is RESTARTING: ask again when it is RUNNING"):
        answer_to(world)


@pytest.mark.parametrize(
    "kind", [SnapshotType.SAVEPOINT, SnapshotType.SUSPEND, SnapshotType.TERMINATE]
)
def test_a_failure_of_the_job_fails_the_savepoint_and_says_which(kind: SnapshotType) -> None:
    world = running(pipeline(1))
    ask(world, kind)
    world.fail(world.attempt("B", 0), Boom("the disk burns"))
    with pytest.raises(SavepointError, match="the job is RESTARTING: the disk burns"):
        answer_to(world)


def test_a_checkpoint_out_of_turn_is_as_any_other() -> None:
    world = running(pipeline(1))
    [trigger] = of_kind(ask(world, SnapshotType.CHECKPOINT), TriggerCheckpoint)
    assert trigger.options == ALIGNED_CHECKPOINT
    assert of_kind(acknowledge(world), NotifyCheckpointComplete)
    assert "mine" in world.checkpoints.answered
    assert world.scheduler.details().checkpoints.latest_id == 1


def test_a_job_without_checkpoints_takes_none_out_of_turn() -> None:
    world = running(pipeline(1), NO_INTERVAL)
    ask(world, SnapshotType.CHECKPOINT)
    with pytest.raises(
        SavepointError, match=r"set execution.checkpointing.interval, or take a savepoint"
    ):
        answer_to(world)


def test_a_savepoint_during_which_a_task_finishes_is_begun_again_in_another_folder() -> None:
    world = running(pipeline(1), NO_INTERVAL)
    ask(world)
    world.progress(world.attempt("A", 0))
    acknowledge(world)
    assert answer_to(world) == "savepoints/mine-2"


# -- stopping --------------------------------------------------------------------------------------

STOPS = pytest.mark.parametrize("kind", [SnapshotType.SUSPEND, SnapshotType.TERMINATE])


@STOPS
@pytest.mark.parametrize("config", [settings(), NO_INTERVAL])
def test_who_asks_to_stop_is_answered_when_the_job_has_ended(
    kind: SnapshotType, config: SchedulerConfig
) -> None:
    world = running(pipeline(2), config)
    ask(world, kind)
    commands = acknowledge(world)
    assert told(commands) == ["complete 1: A0#0 A1#0 B0#0 B1#0"]
    assert "mine" not in world.checkpoints.answered
    world.run_to(S.FINISHED)
    assert answer_to(world) == "savepoints/mine"
    assert world.states[-1] is J.FINISHED


@STOPS
def test_nothing_else_is_saved_while_the_job_stops(kind: SnapshotType) -> None:
    world = running(pipeline(1))
    ask(world, kind)
    ask(world, name="other")
    acknowledge(world)
    ask(world, name="late")
    assert not [line for line in told(world.fire(DUE)) if line.startswith("trigger")]
    for name in ("other", "late"):
        with pytest.raises(SavepointError, match="is being stopped with a savepoint"):
            answer_to(world, name)


@STOPS
def test_after_the_savepoint_all_tasks_start_from_it_once_more_when_one_fails_and_the_job_ends(
    kind: SnapshotType,
) -> None:
    world = running(strands(2))
    world.fire(DUE)
    acknowledge(world)
    ask(world, kind)
    acknowledge(world)
    for number in (1, 2):
        world.progress(next(iter(world.tasks)))
        world.fail(next(iter(world.tasks)), Boom("no more power"))
        assert world.scheduler.state is J.RESTARTING
        world.fire(f"restart-{number}") if not any(
            task.cancelled for task in world.tasks.values()
        ) else restart(world)
        world.grant_all()
        assert len(world.tasks) == world.scheduler.graph.size
        assert restored(world) == {2}
        assert all(
            task.descriptor.restore is not None and task.descriptor.restore.stops
            for task in world.tasks.values()
        )
        world.run_to(S.RUNNING)
    assert not [line for line in told(world.fire(DUE)) if line.startswith("trigger")]
    world.run_to(S.FINISHED)
    assert answer_to(world) == "savepoints/mine"
    assert world.states[-1] is J.FINISHED


@STOPS
def test_a_stop_that_fails_for_good_names_the_savepoint_that_is_complete(
    kind: SnapshotType,
) -> None:
    world = running(
        pipeline(1),
        SchedulerConfig(restart="none", checkpoints=CheckpointSettings(interval_s=10.0)),
    )
    ask(world, kind)
    acknowledge(world)
    world.fail(world.attempt("B", 0), Boom("no more power"))
    with pytest.raises(
        SavepointError,
        match=(
            "FAILING and did not stop as it should: no more power; the savepoint savepoints/mine "
            "is complete"
        ),
    ):
        answer_to(world)


@STOPS
def test_whoever_takes_over_a_job_that_was_stopping_ends_it(kind: SnapshotType) -> None:
    job_graph = pipeline(1)
    request = SnapshotRequested("mine", CheckpointOptions(kind, "savepoints/mine"))
    older = replace(earlier_checkpoint(job_graph, 7), location="dir/chk-7")
    savepoint = replace(earlier_checkpoint(job_graph, 8), location="savepoints/mine")
    scheduler = Scheduler(job_graph, replace(settings(), generation=1), IdFactory(7))
    scheduler.handle(RestoreFrom(savepoint, older=(older,), stops=request), 0.0)
    started = scheduler.handle(StartScheduling(), 0.0)
    assert [command.location for command in started if isinstance(command, ResetCoordinators)] == [
        "savepoints/mine"
    ]
    assert not scheduler.handle(request, 0.0), "who asks again is answered at the end"
    assert scheduler.checkpoints.completed.latest == savepoint
    assert scheduler.details().checkpoints.latest_id == 8
    [answer] = of_kind(scheduler.handle(CancelJob(), 0.0), SnapshotEnded)
    assert "the savepoint savepoints/mine is complete" in str(answer.error)
    assert not scheduler.handle(request, 0.0), "a question that was on its way has its answer"


def test_a_failure_while_the_job_drains_restarts_all_of_it() -> None:
    """The sources of other regions have ended their input too."""
    world = running(strands(2))
    ask(world, SnapshotType.TERMINATE)
    world.fail(world.attempt("A", 0))
    restart(world)
    assert world.running == {"A0#1", "A1#1", "B0#1", "B1#1"}


def test_a_failure_while_the_job_is_being_suspended_restarts_what_has_failed() -> None:
    world = running(strands(2))
    ask(world, SnapshotType.SUSPEND)
    world.fail(world.attempt("A", 0))
    restart(world)
    assert world.running == {"A0#1", "A1#0", "B0#1", "B1#0"}


def test_a_job_that_was_to_be_suspended_goes_on_when_the_savepoint_fails() -> None:
    world = running(pipeline(1))
    ask(world, SnapshotType.SUSPEND)
    assert "aborted 1: A0#0 B0#0" in told(failing(world, "declined"))
    assert world.scheduler.state is J.RUNNING


def test_a_job_that_was_being_drained_restarts_when_the_savepoint_fails() -> None:
    """Its sources have been told to end, and windows may have fired."""
    world = running(pipeline(1))
    ask(world, SnapshotType.TERMINATE)
    failing(world, "declined")
    assert world.scheduler.state is J.RESTARTING
    assert "was being drained" in str(world.scheduler.details().failures[-1].error)


@STOPS
def test_a_job_that_is_cancelled_while_it_stops_names_the_savepoint_that_is_complete(
    kind: SnapshotType,
) -> None:
    world = running(pipeline(1))
    ask(world, kind)
    acknowledge(world)
    world.send(CancelJob())
    with pytest.raises(
        SavepointError,
        match="CANCELLING and did not stop as it should; the savepoint savepoints/mine is complete",
    ):
        answer_to(world)


def test_how_far_a_savepoint_is_can_be_seen() -> None:
    world = running(pipeline(2))
    ask(world)
    _, first, *_ = world.checkpoints.answers
    world.answer(first)
    summary = world.scheduler.details().checkpoints
    assert (summary.requested_id, summary.requested_acknowledged, summary.requested_subtasks) == (
        "mine",
        1,
        4,
    )
    acknowledge(world)
    assert world.scheduler.details().checkpoints.requested_id is None
