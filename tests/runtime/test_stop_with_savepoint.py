"""A task that stops with a savepoint: what it still gives out, and what it does when there is no
savepoint after all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import (
    MAX_TIMESTAMP,
    CheckpointBarrier,
    CheckpointOptions,
    EndOfData,
    EndOfPartition,
    RowBatch,
    SnapshotType,
    Watermark,
)
from flinkpy.graph.checkpoint_messages import (
    BeginCheckpoint,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointToTask,
    SnapshotTaken,
)
from flinkpy.operators.base import InputStatus, OneInputOperator, SourceOperator
from flinkpy.runtime.loop.slot_loop import SlotLoop
from flinkpy.runtime.stream_task import Phase, StreamTask, StreamTaskConfig, TaskServices
from flinkpy.runtime.task_messages import OperatorEvent
from tests.operators.harness import RecordingWriter, linear
from tests.runtime.test_stream_task import INFO, ManualGate

END = Watermark(MAX_TIMESTAMP)


def options(kind: SnapshotType) -> CheckpointOptions:
    return CheckpointOptions(kind, "savepoints/mine")


class Passing(OneInputOperator):
    """Emits what it gets; ``later`` at a timer, and ``the end`` when it finishes."""

    def open(self) -> None:
        self.context.timers.call_later(1.0, lambda: self.output.emit(RowBatch(["later"])))

    def process_batch(self, batch: Any) -> None:
        self.output.emit(batch)

    def finish(self) -> None:
        self.output.emit(RowBatch(["the end"]))


class Counting(SourceOperator):
    """Gives the next number whenever it is asked."""

    number = 0

    def emit_next(self) -> InputStatus:
        self.number += 1
        self.output.emit(RowBatch([self.number]))
        return InputStatus.MORE_AVAILABLE


class StoppingTask:
    """A task of one operator, with a gate of two channels unless it is a source; a writer; and the
    messages it sends."""

    def __init__(self, operator: SourceOperator | OneInputOperator, stops: bool = False) -> None:
        is_source = isinstance(operator, SourceOperator)
        self.clock, self.sent = ManualClock(), list[Any]()
        self.loop = SlotLoop("test", self.clock)
        self.writer = RecordingWriter()
        self.gate = ManualGate(2)
        config = StreamTaskConfig(
            INFO,
            linear(operator, inputs=0 if is_source else 1),
            () if is_source else (0,),
            has_checkpoints=True,
            stops=stops,
        )
        self.task: StreamTask = StreamTask(
            config,
            [self.writer],
            [] if is_source else [self.gate],
            TaskServices(self.loop, lambda: None, self.sent.append),
        )
        self.task.restore()

    def tell(self, message: CheckpointToTask) -> None:
        """As the JobMaster."""
        self.task.deliver_message(message)
        self.settle()

    def settle(self, steps: int = 20) -> None:
        for _ in range(steps):
            if self.task.done or not self.task.run_step():
                return

    def pass_time(self) -> None:
        self.clock.advance(10)
        self.loop.run_once(may_wait=False)
        self.settle()

    @property
    def out(self) -> list[Any]:
        return [
            element.values if isinstance(element, RowBatch) else element
            for element in self.writer.elements
        ]


@pytest.fixture
def make() -> Iterator[Callable[..., StoppingTask]]:
    made = []

    def make_task(
        operator: SourceOperator | OneInputOperator | None = None, stops: bool = False
    ) -> StoppingTask:
        made.append(StoppingTask(operator or Passing(), stops))
        return made[-1]

    yield make_task
    for each in made:
        each.task.abort()
        each.loop.stop()


Make = Callable[..., StoppingTask]


def suspended(make: Make) -> tuple[StoppingTask, CheckpointBarrier]:
    stopping, barrier = make(), CheckpointBarrier(5, 0, options(SnapshotType.SUSPEND))
    stopping.gate.put(0, RowBatch(["a"]), barrier)
    stopping.gate.put(1, RowBatch(["b"]), barrier)
    stopping.settle()
    return stopping, barrier


def test_behind_the_barrier_nothing_is_given_out_and_no_timer_fires(make: Make) -> None:
    stopping, barrier = suspended(make)
    stopping.gate.put(0, RowBatch(["behind"]))
    stopping.pass_time()
    assert stopping.out == [["a"], ["b"], barrier]
    assert [type(each) for each in stopping.sent] == [SnapshotTaken]


def test_when_the_savepoint_is_complete_the_task_ends_and_its_operators_do_not_finish(
    make: Make,
) -> None:
    stopping, barrier = suspended(make)
    stopping.tell(CheckpointCompleted(5))
    stopping.pass_time()
    assert stopping.out == [["a"], ["b"], barrier, EndOfData(drain=False), EndOfPartition()]
    assert Phase.CLEAN_UP not in stopping.task.phases
    stopping.gate.put(0, EndOfData(drain=False), EndOfPartition())
    stopping.gate.put(1, EndOfData(drain=False), EndOfPartition())
    stopping.settle()
    assert stopping.task.done
    assert Phase.FINISH not in stopping.task.phases


def test_when_the_savepoint_is_given_up_the_task_goes_on_as_if_nothing_had_been(make: Make) -> None:
    stopping, _ = suspended(make)
    stopping.gate.put(0, RowBatch(["c"]))
    stopping.pass_time()
    stopping.tell(CheckpointAborted(5))
    assert sorted(stopping.out[3:]) == [["c"], ["later"]]
    again = CheckpointBarrier(6, 0)
    stopping.gate.put(0, again)
    stopping.gate.put(1, again, RowBatch(["d"]))
    stopping.settle()
    assert stopping.out[5:] == [again, ["d"]]


def test_a_barrier_that_comes_when_its_savepoint_was_given_up_stops_nothing(make: Make) -> None:
    stopping, barrier = make(), CheckpointBarrier(5, 0, options(SnapshotType.SUSPEND))
    stopping.gate.put(0, barrier)
    stopping.tell(CheckpointAborted(5))
    stopping.gate.put(1, barrier, RowBatch(["on"]))
    stopping.settle()
    assert stopping.out == [barrier, ["on"]]


def test_the_end_of_another_checkpoint_does_not_end_the_wait(make: Make) -> None:
    stopping, barrier = suspended(make)
    stopping.tell(CheckpointCompleted(4))
    stopping.tell(CheckpointAborted(3))
    assert stopping.out == [["a"], ["b"], barrier]


def test_a_source_gives_nothing_behind_the_barrier(make: Make) -> None:
    stopping = make(Counting())
    stopping.settle(2)
    stopping.tell(BeginCheckpoint(5, 0, options(SnapshotType.SUSPEND)))
    before = stopping.out
    assert before[-1] == CheckpointBarrier(5, 0, options(SnapshotType.SUSPEND))
    stopping.settle()
    assert stopping.out == before
    stopping.tell(CheckpointCompleted(5))
    assert stopping.out == [*before, EndOfData(drain=False), EndOfPartition()]
    assert stopping.task.done


class TakesSplits(Counting):
    """Knows at each barrier what its coordinator has said."""

    def open(self) -> None:
        self.said: list[Any] = []
        self.at_barriers: list[list[Any]] = []

    def handle_operator_event(self, event: Any) -> None:
        self.said.append(event)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        self.at_barriers.append(list(self.said))


def test_a_split_that_came_while_a_source_stood_still_is_in_the_next_savepoint(make: Make) -> None:
    """The coordinator's part of that savepoint no longer has it."""
    source = TakesSplits()
    stopping = make(source)
    stopping.tell(BeginCheckpoint(5, 0, options(SnapshotType.SUSPEND)))
    operator = stopping.task.config.chain.head.operator_id
    for message in (
        OperatorEvent(operator, "a split"),
        CheckpointAborted(5),
        BeginCheckpoint(6, 0, options(SnapshotType.SUSPEND)),
    ):
        stopping.task.deliver_message(message)
    stopping.settle()
    assert source.at_barriers == [[], ["a split"]]


def test_a_source_that_drains_ends_event_time_before_the_barrier_and_waits_for_the_savepoint(
    make: Make,
) -> None:
    stopping = make(Counting())
    stopping.settle(2)
    stopping.tell(BeginCheckpoint(5, 0, options(SnapshotType.TERMINATE)))
    assert stopping.out[-3:] == [
        END,
        EndOfData(drain=True),
        CheckpointBarrier(5, 0, options(SnapshotType.TERMINATE)),
    ]
    stopping.settle()
    assert not stopping.task.done
    stopping.tell(CheckpointCompleted(5))
    assert stopping.out[-1] == EndOfPartition()
    assert stopping.task.done


def test_a_task_that_drains_finishes_before_the_barrier(make: Make) -> None:
    stopping, barrier = make(), CheckpointBarrier(5, 0, options(SnapshotType.TERMINATE))
    for channel in (0, 1):
        stopping.gate.put(channel, END, EndOfData(), barrier)
    stopping.settle()
    assert stopping.out == [END, ["the end"], EndOfData(), barrier]
    stopping.tell(CheckpointCompleted(5))
    for channel in (0, 1):
        stopping.gate.put(channel, EndOfPartition())
    stopping.settle()
    assert stopping.task.done


def test_a_source_that_was_drained_waits_for_the_next_try_when_the_savepoint_is_given_up(
    make: Make,
) -> None:
    stopping = make(Counting())
    stopping.tell(BeginCheckpoint(5, 0, options(SnapshotType.TERMINATE)))
    stopping.tell(CheckpointAborted(5))
    stopping.settle()
    assert EndOfPartition() not in stopping.out
    stopping.tell(BeginCheckpoint(6, 0, options(SnapshotType.TERMINATE)))
    stopping.tell(CheckpointCompleted(6))
    assert stopping.task.done


class CountsAndFinishesLater(Counting):
    """Is not done with its end before it ``may_end``."""

    may_end = False

    @property
    def drained(self) -> bool:
        return self.may_end

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self.on_available = on_available


def test_a_source_waits_for_the_next_try_when_the_savepoint_is_given_up_before_its_barrier(
    make: Make,
) -> None:
    """It has not read to its end: one that ends now counts as read to the end for whoever starts
    from the next savepoint."""
    operator = CountsAndFinishesLater()
    stopping = make(operator)
    stopping.tell(BeginCheckpoint(5, 0, options(SnapshotType.TERMINATE)))
    stopping.tell(CheckpointAborted(5))
    operator.may_end = True
    operator.on_available()
    stopping.settle()
    assert EndOfPartition() not in stopping.out
    stopping.tell(BeginCheckpoint(6, 0, options(SnapshotType.TERMINATE)))
    stopping.tell(CheckpointCompleted(6))
    assert stopping.task.done


def test_a_source_that_starts_from_the_savepoint_with_which_its_job_has_stopped_gives_nothing_and_ends(
    make: Make,
) -> None:
    starting = make(Counting(), stops=True)
    starting.settle()
    assert starting.out == [EndOfData(drain=False), EndOfPartition()]
    assert starting.task.done


def test_a_task_that_starts_from_the_savepoint_with_which_its_job_has_stopped_runs_no_timer_and_ends_when_its_producers_have(
    make: Make,
) -> None:
    starting = make(stops=True)
    starting.pass_time()
    assert starting.out == [EndOfData(drain=False), EndOfPartition()]
    for channel in (0, 1):
        starting.gate.put(channel, EndOfData(drain=False), EndOfPartition())
    starting.settle()
    assert starting.task.done
    assert not {Phase.FINISH, Phase.AWAIT_CHECKPOINT} & set(starting.task.phases)


def test_a_savepoint_that_stops_nothing_is_as_a_checkpoint(make: Make) -> None:
    stopping = make(Counting())
    stopping.tell(BeginCheckpoint(5, 0, options(SnapshotType.SAVEPOINT)))
    at = stopping.out.index(CheckpointBarrier(5, 0, options(SnapshotType.SAVEPOINT)))
    stopping.settle()
    assert len(stopping.out) > at + 1


class FinishesLater(SourceOperator):
    """Ends at once, but is not done with its end before it ``may_end``, as an operator that waits
    for answers."""

    may_end = False

    def emit_next(self) -> InputStatus:
        return InputStatus.END_OF_INPUT

    def finish(self) -> None:
        self.output.emit(RowBatch(["the end"]))

    @property
    def drained(self) -> bool:
        return self.may_end

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self.on_available = on_available


@pytest.mark.finding("faults 9")
def test_no_barrier_begins_while_the_operators_finish(make: Make) -> None:
    operator, barrier = FinishesLater(), CheckpointBarrier(5, 0, CheckpointOptions())
    finishing = make(operator)
    finishing.settle()
    finishing.tell(BeginCheckpoint(5, 0, CheckpointOptions()))
    assert finishing.out[-2:] == [END, ["the end"]], (
        "its state is half that of before the end, half that of after"
    )
    operator.may_end = True
    operator.on_available()
    finishing.settle()
    assert finishing.out[-4:] == [["the end"], EndOfData(), barrier, EndOfPartition()]
