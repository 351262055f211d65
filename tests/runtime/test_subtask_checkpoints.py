"""A task's part in checkpoints, where the task ends, or the checkpoint is aborted, while its state is being written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from flinkpy.core.elements import CheckpointBarrier
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId, OperatorId
from flinkpy.graph.checkpoint_messages import CheckpointAborted, FromTask, SnapshotTaken
from flinkpy.operators.context import TaskInfo
from flinkpy.runtime.checkpointing.subtask_checkpoints import SubtaskCheckpoints
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.state.saved_state import FrozenState
from flinkpy.testing.simulation.simulated_file_store import SimulatedFileStore

JOB = JobId("job")
TASK = TaskInfo("job", "map", ExecutionAttemptId(JOB, JobVertexId("map"), 0, 0), 1, 128)


@dataclass
class OneOperator:
    """A chain with some state. ``before_write`` is called in the middle of the writing."""

    before_write: Callable[[], None] = lambda: None
    told: list[tuple[int, bool]] = field(default_factory=list)

    def process_barrier(self, barrier: CheckpointBarrier, then: Callable[[CheckpointBarrier], None]) -> None:
        then(barrier)

    def freeze_state(self, barrier: CheckpointBarrier) -> Mapping[OperatorId, FrozenState]:
        return {OperatorId("map"): FrozenState(keyed=self)}

    def write(self) -> bytes:
        self.before_write()
        return b"state"

    def notify_checkpoint(self, checkpoint_id: int, is_complete: bool) -> None:
        self.told.append((checkpoint_id, is_complete))


@dataclass
class Setting:
    files: SimulatedFileStore = field(default_factory=SimulatedFileStore)
    operator: OneOperator = field(default_factory=OneOperator)
    said: list[FromTask] = field(default_factory=list)
    io: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        storage = FileCheckpointStorage("store://checkpoints", JOB, 0, stores=lambda location: self.files)
        self.checkpoints = SubtaskCheckpoints(
            TASK, self.operator, lambda: storage, self.io.append, self.said.append,
            lambda barrier: self.checkpoints.pass_barrier(barrier), lambda: None)


@pytest.fixture
def setting() -> Setting:
    return Setting()


def test_what_is_written_is_told(setting: Setting) -> None:
    setting.checkpoints.pass_barrier(CheckpointBarrier(1, 0))
    setting.io.pop()()
    assert [type(message) for message in setting.said] == [SnapshotTaken]
    assert len(setting.files.files) == 1


@pytest.mark.parametrize("happens", ["the task ends", "the checkpoint is aborted"])
@pytest.mark.parametrize("when", ["before it is written", "while it is written"])
def test_nothing_stays_of_what_is_written_in_vain(setting: Setting, happens: str, when: str) -> None:
    def end() -> None:
        if happens == "the task ends":
            setting.checkpoints.end()
        else:
            setting.checkpoints.handle_message(CheckpointAborted(1))

    setting.checkpoints.pass_barrier(CheckpointBarrier(1, 0))
    if when == "before it is written":
        end()
    else:
        setting.operator.before_write = end
    setting.io.pop()()
    assert setting.said == []
    assert setting.files.files == {}
