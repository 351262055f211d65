"""Slow functions, restarts and ends of programs: what a user sees of the runtime."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import Configuration, Row, Types
from flinkpy.core.errors import JobRestartedError
from flinkpy.datastream import DataStream, MapFunction, RuntimeContext, StreamExecutionEnvironment

BOUND_S = 0.2
FUNCTION_RETURNS = threading.Event()  # long after every bound
MAY_FAIL = threading.Event()


class SlowInOneSubtask(MapFunction):
    """Loads its model: the first subtask waits, in ``open`` or in its first call."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._context: Any = None

    def open(self, runtime_context: RuntimeContext) -> None:
        self._context = runtime_context
        self._wait("open")

    def map(self, value: int) -> int:
        self._wait("map")
        return value

    def _wait(self, where: str) -> None:
        if where == self._where and self._context.get_index_of_this_subtask() == 0 and not FUNCTION_RETURNS.is_set():
            threading.Timer(5 * BOUND_S, FUNCTION_RETURNS.set).start()
            FUNCTION_RETURNS.wait()


@pytest.mark.finding("mechanisms F1", "first-use 13")
@pytest.mark.parametrize("where", ["open", "map"])
def test_a_function_that_is_slow_in_one_subtask_does_not_break_connections(where: str) -> None:
    FUNCTION_RETURNS.clear()
    configuration = Configuration()
    configuration.set_string("execution.target", "embedded")
    configuration.set_string("taskmanager.numberOfTaskSlots", "1")
    configuration.set_string("taskmanager.network.connect-timeout", f"{BOUND_S * 1000:.0f} ms")
    configuration.set_string("taskmanager.network.partition-request-timeout", f"{BOUND_S * 1000:.0f} ms")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    slow = env.from_sequence(1, 1000).map(SlowInOneSubtask(where))
    with slow.key_by(lambda number: number % 7).map(lambda number: number).execute_and_collect() as records:
        assert sorted(records) == list(range(1, 1001))


class FailsOnce(MapFunction):
    """On record 3, where ``marker`` exists, which is then gone."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def map(self, value: int) -> Row:
        if value == 3 and self._marker.exists():
            self._marker.unlink()
            MAY_FAIL.wait()
            raise ValueError("three")
        return Row(n=value)


def restarting(tmp_path: Path) -> DataStream:
    """1, 2, 3, 4, each sent at once, from a job that fails at 3 and restarts."""
    configuration = Configuration()
    configuration.set_string("execution.target", "embedded")
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.delay", "1 ms")
    configuration.set_string("taskmanager.network.batch.max-records", "1")
    marker = tmp_path / "fails"
    marker.touch()
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    return env.from_collection([1, 2, 3, 4]).map(FailsOnce(marker), output_type=Types.ROW_NAMED(["n"], [Types.LONG()]))


@pytest.mark.finding("first-use 3")
@pytest.mark.parametrize("collect", [
    lambda stream: stream.to_pandas()["n"].tolist(),
    lambda stream: [row.n for row in stream.take(4)],
    lambda stream: [row.n for row in stream.execute_and_collect(limit=4)],
], ids=["to_pandas", "take", "execute_and_collect"])
def test_after_a_restart_collected_results_come_once(tmp_path: Path, collect: Callable[[DataStream], list[int]]) -> None:
    MAY_FAIL.set()
    assert collect(restarting(tmp_path)) == [1, 2, 3, 4]


@pytest.mark.finding("first-use 3")
def test_iterating_over_results_that_come_again_ends_with_an_error(tmp_path: Path) -> None:
    MAY_FAIL.clear()
    with restarting(tmp_path).execute_and_collect() as records:
        seen = [next(records).n]
        MAY_FAIL.set()
        with pytest.raises(JobRestartedError, match="makes again what this iterator has given out already"):
            seen += [record.n for record in records]
    assert seen in ([1], [1, 2])
