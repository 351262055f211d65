"""When a TaskExecutor reports: what somebody waits for at once, and the same of all its tasks in
one message."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flinkpy.actors.task_executor.report_pace import CHECKPOINTS, TICK_S, ReportPace
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId, OperatorId
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.graph.checkpoint_messages import FinalCheckpointAwaited, SnapshotFailed, SnapshotTaken
from flinkpy.graph.checkpoints import SubtaskSnapshot
from flinkpy.graph.deployment import TaskExecutionState
from flinkpy.runtime.task_messages import OperatorEvent

_S = ExecutionState


def attempt(subtask: int) -> ExecutionAttemptId:
    return ExecutionAttemptId(JobId("job"), JobVertexId("v"), subtask, 0)


class Tasks:
    """Some tasks of one job, and the pace of their reports."""

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks
        self.pace = ReportPace()

    def enter(self, state: ExecutionState, *subtasks: int, now: float = 0.0) -> float:
        """How long their report waits."""
        for subtask in subtasks:
            self.pace.state_changed(TaskExecutionState(attempt(subtask), state), now)
        return self.wait_s(now)

    def take(self, checkpoint_id: int, *subtasks: int, now: float = 0.0) -> float:
        for subtask in subtasks:
            taken = SnapshotTaken(checkpoint_id, SubtaskSnapshot())
            self.pace.message_said(attempt(subtask), taken, now)
        return self.wait_s(now)

    def wait_s(self, now: float) -> float:
        return self.pace.wait_s(self.tasks, now)

    def all_run(self) -> Tasks:
        assert self.enter(_S.RUNNING, *range(self.tasks)) == 0.0
        self.pace.sent()
        return self


def test_what_a_single_task_says_never_waits() -> None:
    tasks = Tasks(1).all_run()
    for checkpoint_id in range(1, 3):
        assert tasks.take(checkpoint_id, 0, now=float(checkpoint_id)) == 0.0
        tasks.pace.sent()


def test_parts_in_a_checkpoint_wait_for_the_last_of_them_and_that_goes_at_once() -> None:
    tasks = Tasks(3).all_run()
    assert tasks.take(1, 0, now=5.0) == pytest.approx(TICK_S)
    assert tasks.take(1, 1, now=5.03) == pytest.approx(TICK_S - 0.03)
    assert tasks.take(1, 2, now=5.04) == 0.0


def test_parts_wait_a_tick_at_most_and_the_last_one_that_comes_later_does_not_wait() -> None:
    tasks = Tasks(3).all_run()
    assert tasks.take(1, 0, 1, now=5.0) == pytest.approx(TICK_S)
    assert tasks.wait_s(5.0 + TICK_S) == 0.0
    tasks.pace.sent()
    assert tasks.wait_s(6.0) == 0.0
    assert tasks.take(1, 2, now=7.0) == 0.0


def test_a_task_that_has_ended_is_not_waited_for() -> None:
    tasks = Tasks(3).all_run()
    assert tasks.enter(_S.FINISHED, 2) == 0.0
    tasks.pace.sent()
    tasks.tasks = 2
    assert tasks.take(1, 0, now=1.0) == pytest.approx(TICK_S)
    assert tasks.take(1, 1, now=1.0) == 0.0


def test_tasks_that_run_wait_for_those_that_start() -> None:
    tasks = Tasks(2)
    assert tasks.enter(_S.INITIALIZING, 0, 1, now=1.0) == pytest.approx(TICK_S)
    assert tasks.enter(_S.RUNNING, 0, now=1.02) == pytest.approx(TICK_S - 0.02)
    assert tasks.enter(_S.RUNNING, 1, now=1.03) == 0.0


@pytest.mark.parametrize(
    "urgent",
    [
        lambda tasks: tasks.enter(_S.FAILED, 1),
        lambda tasks: tasks.enter(_S.FINISHED, 1),
        lambda tasks: tasks.enter(_S.CANCELED, 1),
        *(
            lambda tasks, message=message: tasks.pace.message_said(attempt(1), message, 0.0)
            for message in (
                SnapshotFailed(1, "full"),
                FinalCheckpointAwaited(),
                OperatorEvent(OperatorId("o"), "a split, please"),
            )
        ),
    ],
)
def test_what_somebody_waits_for_goes_at_once_with_all_that_waits(
    urgent: Callable[[Tasks], object],
) -> None:
    tasks = Tasks(3).all_run()
    assert tasks.take(1, 0) == pytest.approx(TICK_S)
    urgent(tasks)
    assert tasks.wait_s(0.0) == 0.0


def test_checkpoints_that_are_never_whole_are_forgotten() -> None:
    tasks = Tasks(2).all_run()
    for checkpoint_id in range(10 * CHECKPOINTS):
        assert tasks.take(checkpoint_id, 0, now=float(checkpoint_id)) == pytest.approx(TICK_S)
        tasks.pace.sent()
    assert len(tasks.pace._taken) <= CHECKPOINTS
