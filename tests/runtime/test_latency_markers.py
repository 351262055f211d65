"""A source's task sends latency markers, as often as the option says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import LatencyMarker
from flinkpy.metrics.latency import latency_identifier
from flinkpy.metrics.reported import metrics_of
from flinkpy.operators.base import InputStatus, SourceOperator
from flinkpy.operators.context import TaskInfo
from flinkpy.operators.rows.stateless import MapOperator
from flinkpy.runtime.stream_task import StreamTask, StreamTaskConfig, TaskServices
from flinkpy.testing.manual_reactor import ManualReactor
from tests.operators.harness import ATTEMPT, RecordingWriter, linear

INFO = TaskInfo("job", "task", ATTEMPT, 1, 128)


class Silent(SourceOperator):
    """Never has anything."""

    def emit_next(self) -> InputStatus:
        return InputStatus.NOTHING_AVAILABLE


class World:
    """A source's task on a clock that the test moves."""

    def __init__(self, configuration: dict[str, Any]) -> None:
        self.clock = ManualClock()
        self.reactor = ManualReactor(self.clock)
        self.writer = RecordingWriter()
        config = StreamTaskConfig(
            INFO, linear(Silent(), MapOperator(str), inputs=0), configuration=configuration
        )
        self.task: StreamTask = StreamTask(
            config,
            [self.writer],
            [],
            TaskServices(self.reactor, lambda: None, lambda message: None),
        )
        self.task.restore()
        self.step()

    def close(self) -> None:
        self.task.abort()
        self.reactor.close()

    def step(self) -> None:
        while self.task.run_step():
            pass

    def pass_ms(self, milliseconds: int) -> None:
        for _ in range(milliseconds):
            self.clock.advance(0.001)
            self.reactor.step()
            self.step()

    @property
    def markers(self) -> list[Any]:
        return [element for element in self.writer.elements if isinstance(element, LatencyMarker)]


@pytest.fixture
def start() -> Iterator[Callable[..., World]]:
    worlds: list[World] = []

    def begin(**configuration: Any) -> World:
        worlds.append(World({key.replace("_", "."): value for key, value in configuration.items()}))
        return worlds[-1]

    yield begin
    for world in worlds:
        world.close()


def test_markers_are_sent_at_the_interval_with_the_time_and_the_source(
    start: Callable[..., World],
) -> None:
    world = start(metrics_latency_interval="10 ms")
    before = world.clock.time_ms()
    world.pass_ms(35)
    assert len(world.markers) == 3
    assert [marker.marked_ms - before for marker in world.markers] == pytest.approx(
        [10, 20, 30], abs=3
    )
    assert {(marker.operator_id, marker.subtask_index) for marker in world.markers} == {("op0", 0)}
    assert (
        metrics_of(world.task.accumulators)[latency_identifier("op 1", 0, "op0")].value()["count"]
        == 3
    )


def test_without_the_option_there_are_none(start: Callable[..., World]) -> None:
    world = start()
    world.pass_ms(100)
    assert world.markers == []


def test_none_are_sent_while_the_output_takes_no_more(start: Callable[..., World]) -> None:
    world = start(metrics_latency_interval="10 ms")
    world.writer.available = False
    world.pass_ms(50)
    assert world.markers == []
    world.writer.available = True
    world.pass_ms(15)
    assert len(world.markers) >= 1


def test_they_end_with_the_task(start: Callable[..., World]) -> None:
    world = start(metrics_latency_interval="10 ms")
    world.task.abort()
    world.clock.advance(1.0)
    world.reactor.step()
    assert world.markers == []
    assert world.task.timers.pending == 0
