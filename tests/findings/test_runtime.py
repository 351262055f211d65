"""Slow functions, restarts and ends of programs: what a user sees of the runtime."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from flinkpy.common import Configuration
from flinkpy.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment

BOUND_S = 0.2
FUNCTION_RETURNS = threading.Event()  # long after every bound


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
