"""The log of the scheduler's last events: it can be fed to a fresh scheduler, and holds no state."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flinkpy.core.ids import ExecutionAttemptId, IdFactory, JobId, JobVertexId, OperatorId
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.graph.checkpoints import OperatorSubtaskState, StateHandle, SubtaskSnapshot
from flinkpy.graph.job_graph import JobGraph, ResultPartitionType
from flinkpy.scheduler.event_log import EarlierError, EventLog, details_of
from flinkpy.scheduler.protocol import (
    CheckpointAcknowledged,
    Command,
    Event,
    FailJob,
    RestoreFrom,
    StartScheduling,
    TaskStateChanged,
    TimerFired,
)
from flinkpy.scheduler.scheduler import Scheduler, SchedulerConfig
from tests.scheduler.checkpoint_ledger import earlier_checkpoint
from tests.scheduler.environment import Boom, World
from tests.scheduler.jobs import pipeline
from tests.scheduler.test_any_environment import configs, happen, happen_to_checkpoints, jobs

ATTEMPT = ExecutionAttemptId(JobId("job"), JobVertexId("A"), 1, 2)


@dataclass
class Recorded(World):
    """Keeps what the scheduler answered to each event."""

    answers: list[list[Command]] = field(default_factory=list)

    def send(self, event: Event) -> list[Command]:
        self.answers.append(super().send(event))
        return self.answers[-1]


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(jobs([ResultPartitionType.PIPELINED]), configs, st.integers(0, 30), st.data())
def test_a_log_that_is_fed_to_a_fresh_scheduler_gives_the_same_commands(
    job_graph: JobGraph, config: SchedulerConfig, steps: int, data: st.DataObject
) -> None:
    fresh = Scheduler(copy.deepcopy(job_graph), config, IdFactory(7))
    world = Recorded(Scheduler(job_graph, config, IdFactory(7)))
    world.checkpoints.settings = config.checkpoints
    world.scheduler.events = EventLog(kept=10_000)
    world.send(StartScheduling())
    for _ in range(steps):
        (happen if data.draw(st.booleans()) else happen_to_checkpoints)(world, data)
    log = world.scheduler.events.entries()

    replayed = [fresh.handle(entry.event, entry.at) for entry in log]
    names = [tuple(type(command).__name__ for command in commands) for commands in replayed]
    assert names == [entry.commands for entry in log]
    if not any(isinstance(getattr(entry.event, "error", None), EarlierError) for entry in log):
        assert repr(replayed) == repr(world.answers)
    assert fresh.state is world.scheduler.state


def test_the_latest_events_stay_and_an_event_that_raised_an_error_is_the_last_one() -> None:
    log = EventLog()
    for number in range(log.KEPT + 5):
        log.record(TimerFired(f"timer {number}"), float(number))
    assert [each.details for each in log.summaries()][:2] == ["timer 5", "timer 6"]
    assert (len(log.entries()), log.summaries()[-1].commands) == (log.KEPT, ())


def test_state_in_a_message_is_not_kept() -> None:
    big = StateHandle(5, 17, data=b"state")
    snapshot = SubtaskSnapshot({OperatorId("a"): OperatorSubtaskState(keyed=big, operator=big)})
    checkpoint = earlier_checkpoint(pipeline(1))
    inside = replace(
        checkpoint,
        operators={
            name: replace(each, coordinator=big) for name, each in checkpoint.operators.items()
        },
    )
    log = EventLog()
    log.record(CheckpointAcknowledged(ATTEMPT, 3, snapshot), 0.0)
    log.record(RestoreFrom(inside), 0.0)

    for entry in log.entries():
        assert b"state" not in repr(entry.event).encode()
    acknowledged, _ = [entry.event for entry in log.entries()]
    assert isinstance(acknowledged, CheckpointAcknowledged)
    assert [handle.length for handle in acknowledged.snapshot.handles()] == [5, 5]


def test_of_old_errors_only_the_words_are_kept() -> None:
    log = EventLog()
    errors = [Boom(f"number {number}") for number in range(log.ERRORS_KEPT + 2)]
    for error in errors:
        log.record(FailJob(error), 0.0)
    kept = [entry.event.error for entry in log.entries() if isinstance(entry.event, FailJob)]
    assert kept[2:] == errors[2:]
    assert [str(error) for error in kept[:2]] == ["Boom: number 0", "Boom: number 1"]
    assert [each.details for each in log.summaries()][1:3] == ["Boom: number 1", "Boom: number 2"]


def test_an_event_is_told_in_a_line() -> None:
    failed = TaskStateChanged(ATTEMPT, ExecutionState.FAILED, Boom("first line\nsecond line"))
    assert details_of(failed) == "A (2)#2, FAILED, Boom: first line"
    assert len(details_of(FailJob(Boom("x" * 10_000)))) < 400
