"""Each message between the JobMaster and a task has someone who handles it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest

from flinkpy.actors.job_master.checkpoint_actions import event_of
from flinkpy.core.errors import EngineError
from flinkpy.core.exhaustive import assert_never
from flinkpy.core.ids import OperatorId
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.graph.checkpoint_messages import (
    BeginCheckpoint,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointFromTask,
    FinalCheckpointAwaited,
    SnapshotFailed,
    SnapshotTaken,
)
from flinkpy.graph.checkpoints import SubtaskSnapshot
from flinkpy.runtime.task_messages import MessageToTask, OperatorEvent
from flinkpy.scheduler.protocol import Event
from tests.runtime.harness import JOURNAL, JournalSource, LoopHarness, attempt, descriptor

TO_TASK: dict[type[Any], MessageToTask] = {
    OperatorEvent: OperatorEvent(OperatorId("a"), "a word"),
    BeginCheckpoint: BeginCheckpoint(1, 0),
    CheckpointCompleted: CheckpointCompleted(1),
    CheckpointAborted: CheckpointAborted(1),
}
FROM_TASK: dict[type[Any], CheckpointFromTask] = {
    SnapshotTaken: SnapshotTaken(1, SubtaskSnapshot({})),
    SnapshotFailed: SnapshotFailed(1, "no disk"),
    FinalCheckpointAwaited: FinalCheckpointAwaited(),
}


@pytest.fixture
def harness() -> Iterator[LoopHarness]:
    made = LoopHarness()
    yield made
    made.close()


@pytest.mark.parametrize("kind", get_args(MessageToTask))
def test_a_running_task_handles_every_message(harness: LoopHarness, kind: type[Any]) -> None:
    task = harness.submit(descriptor("v", JournalSource("a", [], endless=True)))
    task.deliver_message(TO_TASK[kind])  # before it runs
    harness.run_until(lambda: task.state is ExecutionState.RUNNING)
    task.deliver_message(TO_TASK[kind])
    task.deliver_message(OperatorEvent(OperatorId("a"), "the last"))
    harness.run_until(lambda: "a.event the last" in JOURNAL or task.state is ExecutionState.FAILED)
    assert harness.reporter.error_of(attempt("v")) is None
    task.cancel()


@pytest.mark.parametrize("kind", get_args(CheckpointFromTask))
def test_the_scheduler_gets_an_event_for_every_message_of_a_task(kind: type[Any]) -> None:
    event = event_of(attempt("v"), FROM_TASK[kind])
    assert type(event) in get_args(Event)
    assert event.attempt_id == attempt("v")  # type: ignore[union-attr]


def test_a_message_of_no_known_type_is_refused() -> None:
    unknown: Any = "what is this?"
    with pytest.raises(EngineError, match="has no handler"):
        event_of(attempt("v"), unknown)
    with pytest.raises(EngineError, match="has no handler"):
        assert_never(unknown)
