"""The mailbox loop of a task over gates and writers that the test moves by hand: back-pressure,
idleness, alignment, the end."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import (
    CheckpointBarrier,
    Element,
    EndOfData,
    EndOfPartition,
    LatencyMarker,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from flinkpy.core.errors import EngineError
from flinkpy.core.ids import IntermediateDataSetId
from flinkpy.graph.checkpoints import ChannelKey
from flinkpy.network.channel_state import ElementLog
from flinkpy.network.port import Traffic
from flinkpy.operators.base import InputStatus, SourceOperator
from flinkpy.operators.context import TaskInfo
from flinkpy.operators.rows.stateless import FlatMapOperator, MapOperator
from flinkpy.runtime.loop.adaptive_batch_size import GOOD_S
from flinkpy.runtime.loop.busy_time import BusyTime, Waiting
from flinkpy.runtime.loop.slot_loop import SlotLoop
from flinkpy.runtime.stream_task import StreamTask, StreamTaskConfig, TaskServices
from tests.operators.harness import ATTEMPT, RecordingWriter, linear

INFO = TaskInfo("job", "task", ATTEMPT, 1, 128)


class ManualGate:
    """An InputGate filled by the test."""

    def __init__(self, channels: int) -> None:
        self.channels = channels
        self.queues: list[deque[Element]] = [deque() for _ in range(channels)]
        self.blocked: set[int] = set()
        self.ended = 0
        self.listener: Callable[[], None] | None = None

    def traffic(self) -> Traffic:
        return Traffic(queued=sum(map(len, self.queues)))

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self.listener = on_available

    def put(self, channel: int, *elements: Element) -> None:
        self.queues[channel].extend(elements)
        if self.listener is not None:
            self.listener()

    def poll(self) -> tuple[int, Element] | None:
        for channel, queue in enumerate(self.queues):
            if queue and channel not in self.blocked:
                element = queue.popleft()
                self.ended += isinstance(element, EndOfPartition)
                return channel, element
        return None

    def block(self, channel: int) -> None:
        self.blocked.add(channel)

    def unblock(self, channel: int) -> None:
        self.blocked.discard(channel)

    def set_barrier_listener(
        self, on_barrier: Callable[[CheckpointBarrier | EndOfPartition], None]
    ) -> None: ...

    def overtake(
        self, channel: int, checkpoint_id: int
    ) -> tuple[CheckpointBarrier | EndOfPartition, list[Element]] | None:
        return None

    def record(self, channel: int, log: ElementLog | None) -> None: ...

    def source_of(self, channel: int) -> ChannelKey:
        return ChannelKey(IntermediateDataSetId("input"), channel, 0)

    @property
    def finished(self) -> bool:
        return self.ended == self.channels


class Slow:
    """Takes so long for a record."""

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        self.clock, self.seconds = clock, seconds

    def __call__(self, value: Any) -> Any:
        self.clock.advance(self.seconds)
        return value


class TaskHarness:
    """A restored one-input task with one gate of two channels and one writer."""

    def __init__(self, gates: int = 1, seconds: float = 0.0) -> None:
        """Of which each record takes so long."""
        self.clock = ManualClock()
        self.loop = SlotLoop("test", self.clock)
        self.gates = [ManualGate(2) for _ in range(gates)]
        self.writer = RecordingWriter()
        self.wakes = 0
        config = StreamTaskConfig(
            INFO, linear(MapOperator(Slow(self.clock, seconds))), tuple(0 for _ in self.gates)
        )
        self.task: StreamTask = StreamTask(
            config,
            [self.writer],
            self.gates,
            TaskServices(self.loop, self._wake, lambda message: None),
        )
        self.task.restore()

    def _wake(self) -> None:
        self.wakes += 1

    def settle(self) -> None:
        while self.task.run_step():
            pass

    @property
    def out(self) -> list[Any]:
        return [
            element.values if isinstance(element, RowBatch) else element
            for element in self.writer.elements
        ]


@pytest.fixture
def harness() -> Iterator[TaskHarness]:
    made = TaskHarness()
    yield made
    made.task.abort()
    made.loop.stop()


def test_an_empty_gate_flushes_and_suspends_until_something_comes(harness: TaskHarness) -> None:
    harness.settle()
    assert harness.writer.flushes == 1
    assert harness.task.time.reason is Waiting.INPUT
    assert not harness.task.processor.has_work
    harness.gates[0].put(0, RowBatch([1]))
    assert harness.wakes == 1
    harness.settle()
    assert harness.out == [[1]]
    assert harness.writer.flushes == 2


def test_a_full_writer_stops_the_task_after_the_batch_at_hand(harness: TaskHarness) -> None:
    harness.writer.available = False
    harness.gates[0].put(0, RowBatch([1]), RowBatch([2]))
    harness.settle()
    assert harness.out == []
    assert harness.task.time.reason is Waiting.OUTPUT
    harness.gates[0].put(1, RowBatch([3]))
    assert not harness.task.run_step()
    harness.clock.advance(2)
    harness.writer.available = True
    assert harness.writer.listener is not None
    harness.writer.listener()
    harness.settle()
    assert harness.out == [[1], [2], [3]]
    assert harness.task.time.waited(Waiting.OUTPUT) == 2


def test_time_is_split_into_busy_held_back_and_idle(harness: TaskHarness) -> None:
    harness.settle()
    harness.clock.advance(3)
    harness.gates[0].put(0, RowBatch([1]))
    harness.writer.available = False
    harness.settle()
    harness.clock.advance(1)
    time = harness.task.time
    assert (time.waited(Waiting.INPUT), time.waited(Waiting.OUTPUT), time.busy) == (3, 1, 0)


@pytest.mark.finding("newcomers 4")
def test_a_task_that_could_go_on_is_busy_while_it_waits_for_its_turn() -> None:
    clock = ManualClock()
    time = BusyTime(clock)
    clock.advance(7)  # before its first step
    for _ in range(3):
        time.step_begins()
        clock.advance(1)
        time.step_ends()
        clock.advance(3)  # of the others
    assert (time.busy, time.waited(Waiting.INPUT), time.waited(Waiting.OUTPUT)) == (12, 0, 0)
    time.stop()
    clock.advance(5)
    assert time.busy == 12


def test_a_step_under_way_is_busy_time_already() -> None:
    clock = ManualClock()
    time = BusyTime(clock)
    time.step_begins()
    clock.advance(5)
    assert time.busy == 5
    time.reason = Waiting.OUTPUT
    assert time.step_ends() == 5
    clock.advance(2)
    assert (time.busy, time.waited(Waiting.OUTPUT), time.waited(Waiting.INPUT)) == (5, 2, 0)


def test_watermarks_of_channels_are_combined_and_markers_pass(harness: TaskHarness) -> None:
    marker = LatencyMarker(1, "source", 0)
    harness.gates[0].put(0, Watermark(10), marker)
    harness.gates[0].put(1, Watermark(5), WatermarkStatus(idle=True))
    harness.settle()
    assert harness.out == [marker, Watermark(5), Watermark(10)]


def test_a_barrier_goes_out_behind_everything_that_came_before_it_in_any_channel(
    harness: TaskHarness,
) -> None:
    gate, barrier = harness.gates[0], CheckpointBarrier(1, 0)
    gate.put(0, RowBatch(["a0"]), barrier, RowBatch(["a1"]))
    harness.settle()
    assert (harness.out, gate.blocked) == ([["a0"]], {0})
    gate.put(1, RowBatch(["b0"]), barrier, RowBatch(["b1"]))
    harness.settle()
    assert harness.out == [["a0"], ["b0"], barrier, ["a1"], ["b1"]]
    assert gate.blocked == set()


def test_barriers_align_over_all_gates_of_a_union() -> None:
    harness = TaskHarness(gates=2)
    barrier = CheckpointBarrier(1, 0)
    for gate, name in zip(harness.gates, "ab"):
        for channel in range(2):
            gate.put(channel, barrier, RowBatch([f"{name}{channel}"]))
            assert barrier not in harness.out
            harness.settle()
    assert harness.out[0] == barrier
    assert sorted(harness.out[1:]) == [["a0"], ["a1"], ["b0"], ["b1"]]
    harness.task.abort()
    harness.loop.stop()


def test_the_end_waits_for_all_channels_then_for_the_writers_then_for_the_last_elements(
    harness: TaskHarness,
) -> None:
    gate = harness.gates[0]
    gate.put(0, RowBatch([1]), EndOfData(), EndOfPartition())
    harness.settle()
    assert harness.out == [[1]]
    harness.writer.consumed = False
    gate.put(1, EndOfData(drain=False))
    harness.settle()
    assert harness.out == [[1], EndOfData(drain=False), EndOfPartition()]
    gate.put(1, EndOfPartition())
    harness.settle()
    done = [harness.task.done]
    harness.writer.consumed = True
    harness.task.resume()
    harness.loop.run_once(may_wait=False)
    harness.settle()
    assert [*done, harness.task.done] == [False, True]
    assert harness.loop.statistics().timers == 0


def test_records_behind_the_end_of_the_data_are_a_bug_and_said_to_be_one(
    harness: TaskHarness,
) -> None:
    harness.gates[0].put(0, EndOfData())
    harness.gates[0].put(1, EndOfData(), RowBatch([1]))
    with pytest.raises(EngineError, match="behind EndOfData"):
        harness.settle()


def test_a_step_is_bounded(harness: TaskHarness) -> None:
    harness.gates[0].put(0, *(RowBatch([n]) for n in range(100)))
    assert harness.task.run_step()
    assert 0 < len(harness.out) < 100
    harness.gates[0].put(1, *(RowBatch([0] * 4096) for _ in range(3)))
    harness.settle()
    assert sum(map(len, harness.out)) == 100 + 3 * 4096


@pytest.mark.parametrize(("seconds", "at_a_time"), [(1.0, 1), (0.1, 1), (0.001, 16)])
def test_a_slow_function_holds_the_slot_for_few_records_at_a_time(
    seconds: float, at_a_time: int
) -> None:
    harness = TaskHarness(seconds=seconds)
    harness.gates[0].put(1, Watermark(600))
    harness.gates[0].put(0, RowBatch(list(range(500)), list(range(500))), Watermark(600))
    longest, began, seen = 0.0, harness.clock.monotonic(), 0
    while harness.task.run_step():
        longest, began = max(longest, harness.clock.monotonic() - began), harness.clock.monotonic()
        # each step gives something
        assert len(harness.writer.values) > seen or harness.writer.elements[-1] == Watermark(600)
        seen = len(harness.writer.values)
    assert longest <= 2 * max(seconds, GOOD_S) + 1e-6
    parts = [element for element in harness.writer.elements if isinstance(element, RowBatch)]
    assert (
        [stamp for part in parts for stamp in part.timestamps or ()]
        == harness.writer.values
        == list(range(500))
    )
    assert statistics.mode(map(len, parts)) == at_a_time
    assert harness.writer.elements[-1] == Watermark(600)
    harness.task.abort()
    harness.loop.stop()


def test_a_fast_function_gets_whole_batches_after_a_few_steps(harness: TaskHarness) -> None:
    for _ in range(20):
        harness.gates[0].put(0, RowBatch([0] * 4096))
    harness.settle()
    sizes = [len(part) for part in harness.out]
    assert sizes[:12] == [1, 1, 4, 4, 16, 16, 64, 64, 256, 256, 1024, 1024]
    assert sizes[13:] == [4096] * 19


class Tap(SourceOperator):
    """Gives as many rows as it is asked for, once it is open."""

    running = False

    def emit_next(self) -> InputStatus:
        if not self.running:
            return InputStatus.NOTHING_AVAILABLE
        self.output.emit(RowBatch([0] * self.batch_size))
        self.rows_emitted += self.batch_size
        return InputStatus.MORE_AVAILABLE


@pytest.mark.parametrize("empty_polls", [0, 1, 2, 100])
def test_a_source_whose_records_become_many_never_makes_more_at_a_time_than_the_cache_holds(
    empty_polls: int,
) -> None:
    writer, loop, tap = RecordingWriter(), SlotLoop("test", ManualClock()), Tap()
    config = StreamTaskConfig(
        INFO, linear(tap, FlatMapOperator(lambda value: [value] * 10), inputs=0)
    )
    task = StreamTask(config, [writer], [], TaskServices(loop, lambda: None, lambda message: None))
    task.restore()
    for _ in range(empty_polls):
        task.input_available()
        task.run_step()
    tap.running = True
    task.input_available()
    for _ in range(100):
        task.run_step()
    sizes = [len(part) for part in writer.elements if isinstance(part, RowBatch)]
    assert max(sizes) == 1020
    assert sizes.count(1020) > 180
    task.abort()
    loop.stop()


def test_a_source_of_which_only_the_first_record_becomes_many_goes_back_to_whole_batches() -> None:
    writer, loop, tap = RecordingWriter(), SlotLoop("test", ManualClock()), Tap()
    once = iter([200])
    config = StreamTaskConfig(
        INFO, linear(tap, FlatMapOperator(lambda value: [value] * next(once, 1)), inputs=0)
    )
    task = StreamTask(config, [writer], [], TaskServices(loop, lambda: None, lambda message: None))
    task.restore()
    tap.running = True
    for _ in range(200):
        task.run_step()
    assert len(writer.elements[0].values) == 200  # type: ignore[union-attr]
    assert tap.batch_size == 4096
    task.abort()
    loop.stop()


def test_mail_goes_before_input_and_is_refused_after_the_end(harness: TaskHarness) -> None:
    order: list[Any] = []
    harness.gates[0].put(0, RowBatch([1]))
    harness.task.run_in_task(lambda: order.append(list(harness.out)))
    harness.settle()
    assert order == [[]]
    harness.task.abort()
    harness.task.run_in_task(lambda: order.append("late"))
    assert harness.task.abort() == []
    assert len(order) == 1


@pytest.mark.finding("first-use 12")
def test_timers_that_are_due_at_the_end_of_the_input_fire_before_it_and_later_ones_do_not(
    harness: TaskHarness,
) -> None:
    fired: list[tuple[str, list[Any]]] = []
    for seconds, name in ((3600, "late"), (0, "due")):
        harness.task.timers.call_later(
            seconds, partial(lambda name: fired.append((name, harness.out)), name)
        )
    for channel in (0, 1):
        harness.gates[0].put(channel, EndOfData(drain=True))
    harness.settle()
    assert fired == [("due", [])]
    assert harness.out == [EndOfData(drain=True), EndOfPartition()]
