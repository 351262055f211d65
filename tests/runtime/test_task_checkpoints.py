"""A task's part in checkpoints, where the task ends, or the checkpoint is aborted, while its state
is being written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import cast

import pytest

from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import CheckpointBarrier, CheckpointOptions, Element, SnapshotType
from flinkpy.core.errors import ProgramError
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId, OperatorId
from flinkpy.graph.checkpoint_messages import (
    BeginCheckpoint,
    CheckpointAborted,
    CheckpointFromTask,
    CheckpointMetrics,
    SnapshotFailed,
    SnapshotTaken,
)
from flinkpy.network.port import InputGate, RecordWriter
from flinkpy.operators.context import TaskInfo
from flinkpy.runtime.checkpointing.channel_recording import ChannelRecording, TaskTiming
from flinkpy.runtime.checkpointing.input_barriers import InputBarriers
from flinkpy.runtime.checkpointing.output_barriers import OutputBarriers
from flinkpy.runtime.checkpointing.snapshot_writer import SnapshotWriter
from flinkpy.runtime.checkpointing.task_checkpoints import TaskCheckpoints
from flinkpy.runtime.files.worker_files import WorkerFiles
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.state.snapshots.keyed_snapshots import KeyedEntries
from flinkpy.state.snapshots.saved_state import FrozenState
from flinkpy.testing.manual_reactor import ManualTimer
from flinkpy.testing.simulation.simulated_file_store import SimulatedFileStore

JOB = JobId("job")
TASK = TaskInfo("job", "map", ExecutionAttemptId(JOB, JobVertexId("map"), 0, 0), 1, 128)


@dataclass
class OneOperator:
    """A chain with some state. ``before_write`` is called in the middle of the writing."""

    before_write: Callable[[], None] = lambda: None
    before_freeze: Callable[[], None] = lambda: None
    told: list[tuple[int, bool]] = field(default_factory=list)
    freezes: bool = True

    def process_barrier(
        self, barrier: CheckpointBarrier, then: Callable[[CheckpointBarrier], None]
    ) -> None:
        then(barrier)

    def freeze_state(self, barrier: CheckpointBarrier) -> Mapping[OperatorId, FrozenState]:
        self.before_freeze()
        if not self.freezes:
            raise ProgramError("a lock cannot be copied")
        return {OperatorId("map"): FrozenState(keyed=self)}

    def write(self) -> bytes:
        self.before_write()
        return b"state"

    def chunks(self) -> list[bytes]:
        return [self.write()]

    def entries(self) -> KeyedEntries:
        raise NotImplementedError

    def notify_checkpoint(self, checkpoint_id: int, is_complete: bool) -> None:
        self.told.append((checkpoint_id, is_complete))


@dataclass
class Setting:
    files: SimulatedFileStore = field(default_factory=SimulatedFileStore)
    operator: OneOperator = field(default_factory=OneOperator)
    said: list[CheckpointFromTask] = field(default_factory=list)
    io: list[Callable[[], None]] = field(default_factory=list)
    outputs: OutputBarriers | None = None
    clock: ManualClock = field(default_factory=ManualClock)

    had_finished: bool = False

    def __post_init__(self) -> None:
        storage = FileCheckpointStorage(
            "store://checkpoints", JOB, 0, stores=lambda location: self.files
        )
        files = WorkerFiles(run_io=self.io.append)
        self.checkpoints = TaskCheckpoints(
            self,
            self.operator,
            SnapshotWriter(
                TASK,
                lambda: storage,
                files,
                self.said.append,
                {},
                self.clock,
                had_finished=self.had_finished,
            ),
            self.outputs,
            clock=self.clock,
        )

    reads_source = False

    def begin_barrier(self, barrier: CheckpointBarrier) -> None:
        self.checkpoints.pass_barrier(barrier)

    def end_input(self) -> None: ...

    def stand_still(self) -> None: ...

    def go_on(self) -> None: ...

    def resume(self) -> None: ...


@pytest.fixture
def setting() -> Setting:
    return Setting()


class Writer:
    """Of a task that has written the end of its partition."""

    def __init__(self, holds_ends: bool) -> None:
        self.holds_ends = holds_ends
        self.lock = nullcontext()

    def set_barrier_listener(self, on_barrier_left: Callable[[int], None]) -> None: ...

    def overtake(self, checkpoint_id: int) -> list[list[Element]]:
        return []


@dataclass
class TimeOfDay:
    """The time of a task, in milliseconds, and the timers that it waits for."""

    now_ms: int = 10
    timers: list[ManualTimer] = field(default_factory=list)

    def timing(self) -> TaskTiming:
        return TaskTiming(lambda: self.now_ms, lambda action: action(), self._later)

    def _later(self, delay_s: float, action: Callable[[], None]) -> ManualTimer:
        self.timers.append(ManualTimer(self.now_ms / 1000 + delay_s, action))
        return self.timers[-1]

    def pass_on(self, now_ms: int) -> None:
        self.now_ms = now_ms
        for timer in [each for each in self.timers if each.due * 1000 <= now_ms]:
            self.timers.remove(timer)
            if not timer.cancelled:
                timer.action()


def behind_its_end(writer: Writer, time: TimeOfDay) -> Setting:
    setting = Setting(outputs=OutputBarriers([cast(RecordWriter, writer)], time.timing()))
    setting.checkpoints.close()
    return setting


def begins(checkpoint_id: int, timeout_ms: int | None, at_ms: int = 0) -> BeginCheckpoint:
    return BeginCheckpoint(checkpoint_id, at_ms, CheckpointOptions(alignment_timeout_ms=timeout_ms))


@pytest.mark.parametrize(
    ("holds_ends", "timeout_ms", "takes_part"),
    [(True, 0, True), (False, 0, False), (True, 100, False), (True, None, False)],
)
def test_behind_the_end_of_its_output_a_task_takes_part_only_if_its_barrier_comes_before_the_end_everywhere(
    holds_ends: bool, timeout_ms: int | None, takes_part: bool
) -> None:
    setting = behind_its_end(Writer(holds_ends), TimeOfDay())
    setting.checkpoints.handle_message(begins(1, timeout_ms))
    assert bool(setting.io) is takes_part


def test_behind_the_end_of_its_output_a_task_takes_part_when_the_time_to_align_is_up() -> None:
    time = TimeOfDay()
    setting = behind_its_end(Writer(True), time)
    setting.checkpoints.handle_message(begins(1, 100))
    time.pass_on(99)
    assert not setting.io
    time.pass_on(100)
    assert len(setting.io) == 1


def test_nor_does_it_take_part_if_a_consumer_has_taken_the_end_before_that_time_is_up() -> None:
    time, writer = TimeOfDay(), Writer(True)
    setting = behind_its_end(writer, time)
    setting.checkpoints.handle_message(begins(1, 100))
    writer.holds_ends = False
    time.pass_on(100)
    assert not setting.io


def test_the_newest_checkpoint_alone_waits_behind_the_end_and_none_when_the_task_is_over() -> None:
    time = TimeOfDay()
    setting = behind_its_end(Writer(True), time)
    setting.checkpoints.handle_message(begins(1, 100))
    setting.checkpoints.handle_message(begins(2, 100, at_ms=50))
    time.pass_on(120)
    assert not setting.io
    time.pass_on(150)
    assert len(setting.io) == 1
    setting.checkpoints.handle_message(begins(3, 100, at_ms=160))
    setting.checkpoints.end()
    time.pass_on(1000)
    assert len(setting.io) == 1


def test_if_state_cannot_be_frozen_nothing_in_flight_is_gathered_any_more(setting: Setting) -> None:
    abandoned: list[bool] = []
    setting.operator.freezes = False
    setting.checkpoints.pass_barrier(
        CheckpointBarrier(1, 0), ChannelRecording(1, True, lambda: abandoned.append(True))
    )
    assert abandoned == [True]
    assert [type(message) for message in setting.said] == [SnapshotFailed]


def test_a_task_that_was_drained_waits_although_its_state_cannot_be_frozen(
    setting: Setting,
) -> None:
    setting.operator.freezes = False
    options = CheckpointOptions(SnapshotType.TERMINATE)
    setting.checkpoints.handle_message(BeginCheckpoint(5, 0, options))
    assert [type(message) for message in setting.said] == [SnapshotFailed]
    setting.checkpoints.handle_message(CheckpointAborted(5))
    assert setting.checkpoints.awaits_stop


def test_what_is_written_is_told(setting: Setting) -> None:
    setting.checkpoints.pass_barrier(CheckpointBarrier(1, 0))
    setting.io.pop()()
    assert [type(message) for message in setting.said] == [SnapshotTaken]
    assert len(setting.files.files) == 1


@pytest.mark.parametrize("had_finished", [True, False])
def test_a_task_says_whether_all_its_operators_had_finished(had_finished: bool) -> None:
    setting = Setting(had_finished=had_finished)
    setting.checkpoints.pass_barrier(CheckpointBarrier(1, 0))
    setting.io.pop()()
    [taken] = setting.said
    assert isinstance(taken, SnapshotTaken)
    assert taken.snapshot.had_finished is had_finished


def test_how_long_each_step_took_is_told(setting: Setting) -> None:
    clock, operator = setting.clock, setting.operator
    operator.before_freeze = lambda: clock.advance(0.02)
    operator.before_write = lambda: clock.advance(0.3)
    clock.advance(10)
    setting.checkpoints.pass_barrier(CheckpointBarrier(1, 9000), came_ms=9600)
    clock.advance(0.1)  # until the thread for files has time
    setting.io.pop()()
    [taken] = setting.said
    assert isinstance(taken, SnapshotTaken)
    assert taken.metrics == CheckpointMetrics(
        start_delay_ms=600, alignment_ms=400, sync_ms=20, async_ms=400
    )


def test_a_barrier_that_overtakes_is_told_and_clocks_of_other_machines_give_no_negative_times(
    setting: Setting,
) -> None:
    setting.checkpoints.pass_barrier(
        CheckpointBarrier(1, 5000, CheckpointOptions(alignment_timeout_ms=0))
    )
    setting.io.pop()()
    [taken] = setting.said
    assert isinstance(taken, SnapshotTaken)
    assert taken.metrics == CheckpointMetrics(is_unaligned=True)


@dataclass
class Gate:
    """Two channels whose barriers the test lets come."""

    channels: int = 2
    blocked: set[int] = field(default_factory=set)

    def set_barrier_listener(self, listener: object) -> None: ...

    def record(self, channel: int, log: object) -> None: ...

    def block(self, channel: int) -> None:
        self.blocked.add(channel)

    def unblock(self, channel: int) -> None:
        self.blocked.discard(channel)


@dataclass
class Passed:
    """What barriers have come through, and when the first of each came."""

    barriers: list[tuple[int, int]]
    may_overtake = True

    def pass_barrier(
        self, barrier: CheckpointBarrier, in_flight: ChannelRecording | None, came_ms: int
    ) -> None:
        self.barriers.append((barrier.checkpoint_id, came_ms))


def test_the_first_barrier_of_a_checkpoint_begins_its_alignment() -> None:
    clock, passed = ManualClock(), list[tuple[int, int]]()
    timing = TaskTiming(
        clock.time_ms, lambda action: action(), lambda delay_s, action: ManualTimer(delay_s, action)
    )
    barriers = InputBarriers([cast(InputGate, Gate())], timing, Passed(passed), rest=lambda: None)
    for checkpoint_id in (1, 2):
        for channel in (0, 1):
            clock.advance(1)
            barriers.barrier_polled(channel, CheckpointBarrier(checkpoint_id, 0))
    assert passed == [(1, 1000), (2, 3000)]


@pytest.mark.parametrize("happens", ["the task ends", "the checkpoint is aborted"])
@pytest.mark.parametrize("when", ["before it is written", "while it is written"])
def test_nothing_stays_of_what_is_written_in_vain(
    setting: Setting, happens: str, when: str
) -> None:
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
