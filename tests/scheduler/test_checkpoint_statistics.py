"""What is told of a job's checkpoints: how many, the latest few, and how their subtasks took
part."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.lifecycles import CheckpointState
from flinkpy.graph.checkpoint_messages import CheckpointMetrics
from flinkpy.metrics.stats_summary import RunningStats, StatsSummary
from flinkpy.scheduler.checkpointing.checkpoint_statistics import CheckpointsReport
from flinkpy.scheduler.protocol import CheckpointAcknowledged, CheckpointDeclined
from tests.scheduler.environment import World
from tests.scheduler.jobs import pipeline
from tests.scheduler.test_checkpoints import DUE, acknowledge, restart, running, settings


def report(world: World) -> CheckpointsReport:
    return world.scheduler.report().checkpoints


def test_a_checkpoint_under_way_tells_who_has_acknowledged() -> None:
    world = running(pipeline(2))
    world.now = 2.0
    world.fire(DUE)
    awaited = [
        each for each in world.checkpoints.answers if isinstance(each, CheckpointAcknowledged)
    ]
    world.now += 1.5
    world.answer(awaited[0])
    [checkpoint] = report(world).history
    assert (
        checkpoint.state,
        checkpoint.triggered_ms,
        checkpoint.subtasks,
        checkpoint.duration_ms,
    ) == (CheckpointState.PENDING, 1_012_000, 4, 1500)
    assert [
        (vertex.subtasks, [each.index for each in vertex.acknowledged])
        for vertex in checkpoint.vertices
    ] == [((0, 1), [0]), ((0, 1), [])]
    assert report(world).in_progress == 1


def test_a_complete_checkpoint_tells_its_sizes_with_those_of_the_enumerators_and_what_its_tasks_measured() -> (
    None
):
    world = running(pipeline(1))
    world.fire(DUE)
    metrics = CheckpointMetrics(start_delay_ms=3, sync_ms=5)
    for answer in list(world.checkpoints.answers):
        if isinstance(answer, CheckpointAcknowledged):
            world.send(
                CheckpointAcknowledged(
                    answer.attempt_id, answer.checkpoint_id, answer.snapshot, metrics
                )
            )
            world.checkpoints.answers.remove(answer)
    acknowledge(world)
    found = report(world)
    latest = found.latest_completed
    assert latest is not None
    assert (found.completed, found.failed, found.in_progress, found.history) == (1, 0, 0, (latest,))
    assert (latest.state_size, latest.written, latest.coordinators_size) == (21, 21, 7)
    assert {each.metrics for each in latest.acknowledged} == {metrics}
    assert found.summary["state_size"].greatest == 21


def test_one_that_fails_says_why_and_those_whose_files_are_gone_are_discarded() -> None:
    world = running(pipeline(1), settings(tolerable_failures=5))
    for _ in range(2):
        world.fire(DUE)
        acknowledge(world)
    world.fire(DUE)
    world.send(CheckpointDeclined(world.attempt("A", 0), 3, "no room"))
    found = report(world)
    assert found.latest_failed is not None
    assert "no room" in found.latest_failed.failure
    assert [(each.checkpoint_id, each.state.name, each.is_discarded) for each in found.history] == [
        (3, "ABORTED", False),
        (2, "COMPLETED", False),
        (1, "COMPLETED", True),
    ]


def test_what_was_restored_is_counted_and_told() -> None:
    world = running(pipeline(1))
    world.fire(DUE)
    acknowledge(world)
    assert report(world).restored == 0
    world.fail(world.attempt("A", 0))
    restart(world)
    found = report(world)
    assert found.latest_restored is not None
    assert (
        found.restored,
        found.latest_restored.checkpoint_id,
        found.latest_restored.is_savepoint,
    ) == (1, 1, False)


def test_only_the_latest_are_told_and_all_are_counted() -> None:
    world = running(pipeline(1), settings(history=3))
    for _ in range(5):
        world.fire(DUE)
        acknowledge(world)
    world.fire(DUE)
    assert [each.checkpoint_id for each in report(world).history] == [6, 5, 4]
    assert report(world).completed == 5
    assert report(world).find(3) is None
    assert report(world).find(5) is not None


@given(st.lists(st.integers(0, 10**12), max_size=50))
def test_numbers_that_come_one_by_one_are_summarized_as_those_that_are_there_at_once(
    numbers: list[int],
) -> None:
    running_stats = RunningStats()
    for number in numbers:
        running_stats.add(number)
    summary = running_stats.summary()
    assert summary == StatsSummary.of(numbers)
    assert summary.least <= min(summary.quantiles) <= max(summary.quantiles) <= summary.greatest
    assert list(summary.quantiles) == sorted(summary.quantiles)


def test_the_quantiles_of_a_long_row_are_those_of_its_end() -> None:
    numbers = RunningStats()
    for number in (10**6, *[1] * RunningStats.WINDOW):
        numbers.add(number)
    summary = numbers.summary()
    assert (summary.greatest, summary.quantiles) == (10**6, (1.0,) * 5)
