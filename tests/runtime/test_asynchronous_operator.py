"""A task with an asynchronous operator: it holds its input back, sends what comes back at once, and
ends when all has come back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import EndOfData, EndOfPartition, RowBatch, Watermark
from flinkpy.operators.async_io.async_functions import AsyncFunctionDescriptor
from flinkpy.operators.async_io.async_wait import AsyncWaitOperator
from flinkpy.operators.context import TaskInfo
from flinkpy.operators.rows.stateless import MapOperator
from flinkpy.runtime.loop.busy_time import Waiting
from flinkpy.runtime.stream_task import Phase, StreamTask, StreamTaskConfig, TaskServices
from flinkpy.testing.manual_reactor import ManualReactor
from tests.operators.async_harness import HandLoop, never_called
from tests.operators.harness import ATTEMPT, RecordingWriter, linear
from tests.runtime.test_stream_task import ManualGate

INFO = TaskInfo("job", "task", ATTEMPT, 1, 128)


class World:
    """A task of one gate, an asynchronous operator of capacity 1 and a map, over a writer that
    records."""

    def __init__(self) -> None:
        self.gate, self.writer = ManualGate(1), RecordingWriter()
        self.reactor = ManualReactor(ManualClock())
        self.loops: list[HandLoop] = []
        operator = AsyncWaitOperator(AsyncFunctionDescriptor(never_called, 0, 1), self._create_loop)
        config = StreamTaskConfig(
            INFO, linear(operator, MapOperator(lambda value: value * 10)), (0,)
        )
        self.task: Any = StreamTask(
            config,
            [self.writer],
            [self.gate],
            TaskServices(self.reactor, lambda: None, lambda message: None),
        )
        self.task.restore()

    def _create_loop(self, name: str, invoke: Any, deliver: Any) -> HandLoop:
        self.loops.append(HandLoop(deliver))
        return self.loops[0]

    @property
    def loop(self) -> HandLoop:
        return self.loops[0]

    def run(self) -> None:
        """Until there is nothing to do."""
        while not self.task.done and self.task.run_step():
            pass

    def close(self) -> None:
        self.task.abort()
        self.reactor.close()


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


def test_input_waits_in_the_gate_while_the_capacity_is_used_up(world: World) -> None:
    world.gate.put(0, RowBatch([1]), RowBatch([2]))
    world.run()
    assert world.loop.begun == [1]
    assert len(world.gate.queues[0]) == 1
    assert world.task.time.reason is Waiting.OUTPUT
    world.loop.answer(1)
    world.run()
    assert world.loop.begun == [1, 2]
    assert world.writer.values == [10]


def test_what_comes_back_while_there_is_no_input_is_sent_at_once(world: World) -> None:
    world.gate.put(0, RowBatch([1]))
    world.run()
    flushes = world.writer.flushes
    world.loop.answer(1)
    world.run()
    assert world.writer.values == [10]
    assert world.writer.flushes > flushes


def test_the_task_ends_when_all_has_come_back(world: World) -> None:
    world.gate.put(0, RowBatch([1, 2]), Watermark(7), EndOfData(), EndOfPartition())
    for value in (1, 2):
        world.run()
        assert not world.task.done
        assert EndOfData() not in world.writer.elements
        world.loop.answer(value)
    world.run()
    assert world.task.done
    assert world.writer.elements == [
        RowBatch([10]),
        RowBatch([20]),
        Watermark(7),
        EndOfData(),
        EndOfPartition(),
    ]
    assert world.loop.closed
    assert world.task.phases.count(Phase.FINISH) == 1


def test_a_task_that_waits_for_the_last_answers_can_be_cancelled(world: World) -> None:
    world.gate.put(0, RowBatch([1]), EndOfData(), EndOfPartition())
    world.run()
    assert world.task.abort() == []
    assert world.loop.closed
    world.loop.answer(1)
    assert world.writer.values == []
