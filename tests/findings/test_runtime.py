"""Slow functions, restarts and ends of programs: what a user sees of the runtime."""

from __future__ import annotations

import subprocess
import sys
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


IN_THE_BACKGROUND = """
import sys
from flinkpy.datastream import StreamExecutionEnvironment

HOW = sys.argv[1]

def checked(number):
    if number == 3 and HOW == "fails":
        raise ValueError("three")
    return number

env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 10**12 if sys.argv[1] == "raises" else 5).map(checked).print()
env.execute_async("numbers")
if sys.argv[1] == "exits":
    sys.exit(0)
if sys.argv[1] == "raises":
    raise KeyError("the program's own")
"""


def run_program(tmp_path: Path, launcher: str, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "job.py"
    path.write_text(text)
    command = [sys.executable] if launcher == "python" else [sys.executable, "-m", "flinkpy", "run", "-t", "embedded"]
    return subprocess.run([*command, str(path), *arguments], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.finding("first-use 11")
@pytest.mark.parametrize("how", ["ends", "exits"])
@pytest.mark.parametrize("launcher", ["python", "flinkpy run"])
def test_the_end_of_a_program_waits_for_the_jobs_it_began(tmp_path: Path, launcher: str, how: str) -> None:
    outcome = run_program(tmp_path, launcher, IN_THE_BACKGROUND, how)
    assert (outcome.stdout.split(), outcome.stderr, outcome.returncode) == (["1", "2", "3", "4", "5"], "", 0)


@pytest.mark.finding("first-use 11")
@pytest.mark.parametrize("launcher", ["python", "flinkpy run"])
def test_the_failure_of_a_job_that_is_awaited_at_the_end_is_told(tmp_path: Path, launcher: str) -> None:
    outcome = run_program(tmp_path, launcher, IN_THE_BACKGROUND, "fails")
    assert "job 'numbers' failed: ValueError: three" in outcome.stderr
    assert 'raise ValueError("three")' in outcome.stderr
    assert outcome.returncode == (1 if launcher == "flinkpy run" else 0)  # Python has chosen its exit code by then


@pytest.mark.finding("first-use 11")
@pytest.mark.parametrize("launcher", ["python", "flinkpy run"])
def test_a_program_that_failed_waits_for_nothing(tmp_path: Path, launcher: str) -> None:
    outcome = run_program(tmp_path, launcher, IN_THE_BACKGROUND, "raises")
    assert "job 'numbers' still ran, and ends with the program" in outcome.stderr
    assert "KeyError: \"the program's own\"" in outcome.stderr
    assert outcome.returncode == 1
