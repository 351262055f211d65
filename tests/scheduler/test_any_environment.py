"""Whatever happens to a job, it ends, and gives everything back. Invariants are checked after every
event, and what becomes of checkpoints by a ledger."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flinkpy.core.elements import CheckpointOptions, SnapshotType
from flinkpy.core.errors import PartitionNotFoundError, TaskExecutorLostError
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.core.options.checkpointing import CheckpointRetention, CheckpointSettings
from flinkpy.core.options.engine import SchedulingStrategyKind
from flinkpy.graph.job_graph import DistributionPattern, JobGraph, ResultPartitionType
from flinkpy.scheduler.checkpointing.checkpoint_coordinator import CheckpointCoordinator
from flinkpy.scheduler.checkpointing.checkpoint_schedule import CheckpointSchedule
from flinkpy.scheduler.protocol import (
    CancelJob,
    CheckpointAcknowledged,
    CheckpointDeclined,
    CheckpointDiscarded,
    CheckpointStored,
    CheckpointStoreFailed,
    DeploymentRejected,
    Event,
    FailJob,
    SlotAssigned,
    SnapshotRequested,
    StartScheduling,
    TaskStateChanged,
)
from flinkpy.scheduler.scheduler import SchedulerConfig
from tests.scheduler.checkpoint_ledger import earlier_checkpoint
from tests.scheduler.environment import Boom, World
from tests.scheduler.jobs import job

KINDS = list(SchedulingStrategyKind)


@st.composite
def jobs(
    draw: st.DrawFn, kinds: Sequence[ResultPartitionType] = tuple(ResultPartitionType)
) -> JobGraph:
    """Up to four vertices in a row or in branches, of any widths, edges and sharing groups."""
    names = "ABCD"[: draw(st.integers(1, 4))]
    parallelism = {name: draw(st.integers(1, 3)) for name in names}
    edges = []
    for position, consumer in enumerate(names):
        producers = (
            draw(st.sets(st.sampled_from(names[:position]), max_size=2)) if position else set()
        )
        edges += [
            (
                producer,
                consumer,
                draw(st.sampled_from(DistributionPattern)),
                draw(st.sampled_from(kinds)),
            )
            for producer in sorted(producers)
        ]
    return job(
        parallelism,
        *edges,
        groups={name: draw(st.sampled_from(["default", "other"])) for name in names},
    )


checkpoint_settings = st.builds(
    CheckpointSettings,
    interval_s=st.just(10.0),
    min_pause_s=st.sampled_from([0.0, 3.0]),
    timeout_s=st.sampled_from([5.0, 600.0]),
    max_concurrent=st.integers(1, 3),
    tolerable_failures=st.integers(0, 2),
    retention=st.sampled_from(CheckpointRetention),
    retained=st.integers(1, 3),
    incremental=st.booleans(),
)
configs = st.builds(
    SchedulerConfig,
    strategy=st.sampled_from(KINDS),
    restart=st.sampled_from(["none", "fixed-delay", "exponential-delay"]),
    attempts=st.integers(0, 3),
    exp_attempts=st.integers(0, 3),
    checkpoints=checkpoint_settings,
)


def _old_news(world: World, data: st.DataObject) -> Event:
    """A report of an attempt that has ended, once more."""
    attempt_id = data.draw(st.sampled_from(sorted(world.ended)))
    return TaskStateChanged(attempt_id, world.ended[attempt_id], Boom("again"))


def happen(world: World, data: st.DataObject) -> None:
    """One thing that can happen now, good or bad; good ones are more likely."""
    requests = list(world.requests)
    tasks = list(world.tasks)
    slots = list(world.slots)
    timers = list(world.timers)
    possible = ["grant", "grant", "grant", "refuse"] * bool(requests) + (
        ["progress"] * 6 + ["fail", "missing", "reject"]
    ) * bool(tasks)
    possible += (
        ["lose"] * bool(slots)
        + ["fire"] * 3 * bool(timers)
        + ["old news"] * bool(world.ended)
        + ["slot twice", "cancel", "fail job"]
    )
    what = data.draw(st.sampled_from(possible))
    if what in ("grant", "refuse"):
        (world.grant if what == "grant" else world.refuse)(data.draw(st.sampled_from(requests)))
    elif what == "progress":
        world.progress(data.draw(st.sampled_from(tasks)))
    elif what in ("fail", "missing"):
        world.fail(
            data.draw(st.sampled_from(tasks)),
            PartitionNotFoundError("gone") if what == "missing" else None,
        )
    elif what == "reject":
        attempt_id = data.draw(st.sampled_from(tasks))
        world.ended[attempt_id] = ExecutionState.FAILED
        del world.tasks[attempt_id]
        world.send(DeploymentRejected(attempt_id, Boom("rejected")))
    elif what == "lose":
        place, error = world.slots[data.draw(st.sampled_from(slots))], TaskExecutorLostError("died")
        for allocation_id in [each for each in slots if world.slots[each] == place]:
            # else the scheduler gave it back as soon as it heard of the first
            if allocation_id in world.slots:
                world.lose(allocation_id, error)
    elif what == "fire":
        world.fire(data.draw(st.sampled_from(timers)))
    elif what == "old news":
        world.send(_old_news(world, data))
    elif what == "slot twice":
        if slots:
            allocation_id = data.draw(st.sampled_from(slots))
            slot = world.scheduler.slots.by_allocation[allocation_id]
            world.send(SlotAssigned(slot.request_id, allocation_id, world.slots[allocation_id]))
    elif what in ("cancel", "fail job") and data.draw(st.integers(0, 3)) == 0:
        world.send(CancelJob() if what == "cancel" else FailJob(Boom("from outside")))


def happen_to_checkpoints(world: World, data: st.DataObject) -> None:
    """Something about checkpoints arrives, or does not: mostly in order, but also late, twice, or
    never."""
    ledger = world.checkpoints
    if data.draw(st.integers(0, 15)) == 0:
        kind = data.draw(st.sampled_from(SnapshotType))
        number = len(ledger.asked) + len(ledger.answered)
        target = f"savepoints/{number}" if kind.is_savepoint else None
        world.answer(SnapshotRequested(f"request {number}", CheckpointOptions(kind, target)))
    possible = ["due"] * 2 * (CheckpointSchedule.DUE in world.timers) + ["expire"] * (
        CheckpointCoordinator.TIMEOUT in world.timers
    )
    possible += (["answer"] * 8 + ["other answer", "lose", "decline", "store fails"]) * bool(
        ledger.answers
    ) + ["again"] * bool(ledger.past)
    what = data.draw(st.sampled_from(possible)) if possible else "nothing"
    if what in ("due", "expire"):
        world.fire(CheckpointSchedule.DUE if what == "due" else CheckpointCoordinator.TIMEOUT)
    elif what == "answer":
        world.answer(ledger.answers[0])
    elif what in ("other answer", "again"):
        world.answer(
            data.draw(st.sampled_from(ledger.answers if what == "other answer" else ledger.past))
        )
    elif what == "lose":
        answer = data.draw(st.sampled_from(ledger.answers))
        if not isinstance(answer, CheckpointDiscarded):
            ledger.lose(answer)
    elif what in ("decline", "store fails"):
        answer = data.draw(st.sampled_from(ledger.answers))
        if isinstance(answer, CheckpointAcknowledged) and what == "decline":
            ledger.lose(answer)
            world.answer(CheckpointDeclined(answer.attempt_id, answer.checkpoint_id, "no"))
        elif isinstance(answer, CheckpointStored):
            world.answer(CheckpointStoreFailed(answer.checkpoint_id, Boom("disk full")))


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
@given(
    jobs([ResultPartitionType.PIPELINED]),
    configs,
    st.sampled_from(["anew", "restored", "claimed"]),
    st.integers(0, 60),
    st.data(),
)
def test_checkpoints_end_well_whatever_happens(
    job_graph: JobGraph, config: SchedulerConfig, begins: str, steps: int, data: st.DataObject
) -> None:
    world = World.of(job_graph, config)
    if begins != "anew":
        world.restore(earlier_checkpoint(job_graph), claim=begins == "claimed")
    world.send(StartScheduling())
    world.grant_all()
    if data.draw(st.booleans()):
        world.run_to(ExecutionState.RUNNING)
    for _ in range(steps):
        if data.draw(st.integers(0, 3)) == 0:
            happen(world, data)
        else:
            happen_to_checkpoints(world, data)
    world.run_fairly()

    assert world.scheduler.checkpoints.pending == {}
    report, ledger = world.scheduler.report().checkpoints, world.checkpoints
    assert report.completed + report.failed == len(ledger.participants)
    assert (report.completed, report.in_progress) == (
        len(ledger.complete) - (begins == "claimed"),
        0,
    )
    assert ledger.asked == {}, "somebody is not answered"


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
@given(jobs(), configs, st.integers(0, 40), st.data())
def test_a_job_always_ends_and_gives_all_its_slots_back(
    job_graph: JobGraph, config: SchedulerConfig, steps: int, data: st.DataObject
) -> None:
    world = World.of(job_graph, config)
    world.send(StartScheduling())
    for _ in range(steps):
        happen(world, data)
    world.run_fairly()

    assert world.states[-1] in (JobState.FINISHED, JobState.CANCELED, JobState.FAILED)
    assert (world.slots, world.requests, world.tasks) == ({}, {}, {})
    assert (world.error is not None) == (world.states[-1] is JobState.FAILED)
    if world.states[-1] is JobState.FINISHED:
        assert len({attempt.vertex for attempt in world.ended}) == world.scheduler.graph.size


@pytest.mark.parametrize("kind", KINDS)
@given(jobs(), st.data())
@settings(max_examples=50, deadline=None)
def test_without_faults_every_subtask_runs_exactly_once(
    kind: SchedulingStrategyKind, job_graph: JobGraph, data: st.DataObject
) -> None:
    world = World.of(job_graph, SchedulerConfig(strategy=kind))
    world.send(StartScheduling())
    while world.requests or world.tasks:
        chosen = data.draw(st.integers(0, len(world.requests) + len(world.tasks) - 1))
        if chosen < len(world.requests):
            world.grant(list(world.requests)[chosen])
        else:
            world.progress(list(world.tasks)[chosen - len(world.requests)])

    assert world.states == [JobState.CREATED, JobState.RUNNING, JobState.FINISHED]
    assert sorted(world.ended) == sorted(
        vertex.execution.attempt_id for vertex in world.scheduler.graph.vertices
    )
    assert {attempt.attempt for attempt in world.ended} == {0}
