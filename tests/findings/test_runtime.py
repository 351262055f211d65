"""Slow functions, restarts and ends of programs: what a user sees of the runtime."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flinkpy.cluster.launch import submitted_jobs
from flinkpy.common import Configuration, Row, Types, Watermark, WatermarkStrategy
from flinkpy.connectors.memory.ranges import NumberSequenceSource, RangeSplit, cut
from flinkpy.connectors.source_api.enumerators import SplitQueue
from flinkpy.connectors.source_api.source import SplitEnumerator, SplitEnumeratorContext
from flinkpy.core.elements import MIN_TIMESTAMP
from flinkpy.core.errors import JobExecutionError, JobRestartedError
from flinkpy.core.lifecycles import JobState
from flinkpy.datastream import (
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
    SourceFunction,
    StreamExecutionEnvironment,
)
from flinkpy.operators.functions import SourceContext
from tests.waiting import eventually

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
        if (
            where == self._where
            and self._context.get_index_of_this_subtask() == 0
            and not FUNCTION_RETURNS.is_set()
        ):
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
    configuration.set_string(
        "taskmanager.network.partition-request-timeout", f"{BOUND_S * 1000:.0f} ms"
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    slow = env.from_sequence(1, 1000).map(SlowInOneSubtask(where))
    with (
        slow.key_by(lambda number: number % 7)
        .map(lambda number: number)
        .execute_and_collect() as records
    ):
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
    return env.from_collection([1, 2, 3, 4]).map(
        FailsOnce(marker), output_type=Types.ROW_NAMED(["n"], [Types.LONG()])
    )


@pytest.mark.finding("first-use 3")
@pytest.mark.parametrize(
    "collect",
    [
        lambda stream: stream.to_pandas()["n"].tolist(),
        lambda stream: [row.n for row in stream.take(4)],
        lambda stream: [row.n for row in stream.execute_and_collect(limit=4)],
    ],
    ids=["to_pandas", "take", "execute_and_collect"],
)
def test_after_a_restart_collected_results_come_once(
    tmp_path: Path, collect: Callable[[DataStream], list[int]]
) -> None:
    MAY_FAIL.set()
    assert collect(restarting(tmp_path)) == [1, 2, 3, 4]


@pytest.mark.finding("first-use 3")
def test_iterating_over_results_that_come_again_ends_with_an_error(tmp_path: Path) -> None:
    MAY_FAIL.clear()
    with restarting(tmp_path).execute_and_collect() as records:
        seen = [next(records).n]
        MAY_FAIL.set()
        with pytest.raises(
            JobRestartedError, match="makes again what this iterator has given out already"
        ):
            seen += [record.n for record in records]
    assert seen in ([1], [1, 2])


IN_THE_BACKGROUND = """
import atexit, sys
from flinkpy.datastream import StreamExecutionEnvironment

HOW = sys.argv[1]

def checked(number):
    if number == 3 and HOW == "fails":
        raise ValueError("three")
    return number

env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 10**12 if sys.argv[1] == "raises" else 5).map(checked).print()
job = env.execute_async("numbers")
atexit.register(print, "the program's own end")
if sys.argv[1] == "exits":
    sys.exit(0)
if sys.argv[1] == "raises":
    raise KeyError("the program's own")
"""


LAUNCHERS = {
    "python": [sys.executable],
    "flinkpy run": [sys.executable, "-m", "flinkpy", "run", "-t", "embedded"],
}


def run_program(
    tmp_path: Path, launcher: str, text: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "job.py"
    path.write_text(text)
    return subprocess.run(
        [*LAUNCHERS[launcher], str(path), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.wide
@pytest.mark.finding("first-use 11")
@pytest.mark.parametrize("how", ["ends", "exits"])
@pytest.mark.parametrize("launcher", ["python", "flinkpy run"])
def test_the_end_of_a_program_waits_for_the_jobs_it_began(
    tmp_path: Path, launcher: str, how: str
) -> None:
    outcome = run_program(tmp_path, launcher, IN_THE_BACKGROUND, how)
    assert (outcome.stdout.splitlines(), outcome.stderr, outcome.returncode) == (
        ["1", "2", "3", "4", "5", "the program's own end"],
        "",
        0,
    )


@pytest.mark.wide(but=("python",))
@pytest.mark.finding("first-use 11")
@pytest.mark.parametrize("launcher", ["python", "flinkpy run"])
def test_the_failure_of_a_job_that_is_awaited_at_the_end_is_told(
    tmp_path: Path, launcher: str
) -> None:
    outcome = run_program(tmp_path, launcher, IN_THE_BACKGROUND, "fails")
    assert "job 'numbers' failed: ValueError: three" in outcome.stderr
    assert 'raise ValueError("three")' in outcome.stderr
    assert outcome.returncode == 1


FAILED_BEFORE_THE_END = """
from flinkpy.common import JobStatus
from flinkpy.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 5).map(lambda number: 1 // 0).print()
job = env.execute_async("numbers")
while not {has_failed}:
    pass
"""


@pytest.mark.wide(but=("python",))
@pytest.mark.parametrize("launcher", ["python", "flinkpy run"])
def test_a_job_that_failed_before_the_end_is_told_unless_the_program_asked_how_it_is(
    tmp_path: Path, launcher: str
) -> None:
    seen = run_program(
        tmp_path, launcher, FAILED_BEFORE_THE_END.format(has_failed="'FAILED' in repr(job)")
    )
    assert "job 'numbers' failed: ZeroDivisionError" in seen.stderr
    assert seen.returncode == 1
    asked = run_program(
        tmp_path,
        launcher,
        FAILED_BEFORE_THE_END.format(
            has_failed="job.get_job_status().result() is JobStatus.FAILED"
        ),
    )
    assert (asked.stdout, asked.stderr, asked.returncode) == ("", "", 0)


@pytest.mark.wide
@pytest.mark.finding("first-use 11")
@pytest.mark.parametrize("launcher", ["python", "flinkpy run"])
def test_a_program_that_failed_waits_for_nothing(tmp_path: Path, launcher: str) -> None:
    outcome = run_program(tmp_path, launcher, IN_THE_BACKGROUND, "raises")
    assert "job 'numbers' still ran, and ends with the program" in outcome.stderr
    assert 'KeyError: "the program\'s own"' in outcome.stderr
    assert outcome.returncode == 1


ENDLESS_LINES = """
import sys
from flinkpy.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 10**12).print()
{run}
"""


def begin(tmp_path: Path, launcher: str, text: str) -> subprocess.Popen[str]:
    path = tmp_path / "job.py"
    path.write_text(text)
    return subprocess.Popen(
        [*LAUNCHERS[launcher], str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.wide(but=("execute()-flinkpy run",))
@pytest.mark.finding("first-use 21")
@pytest.mark.parametrize("launcher", ["python", "flinkpy run"])
@pytest.mark.parametrize(
    "run",
    [
        "env.execute()",
        "env.execute_async().get_job_execution_result().result()",
        "env.execute_async()",
    ],
)
def test_a_reader_that_goes_away_ends_the_program_without_a_traceback(
    tmp_path: Path, launcher: str, run: str
) -> None:
    with begin(tmp_path, launcher, ENDLESS_LINES.format(run=run)) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        assert program.stdout.readline() == "1\n"
        program.stdout.close()
        assert program.stderr.read() == ""
    assert program.returncode == 141


STUCK = """
import sys, threading
from flinkpy.datastream import StreamExecutionEnvironment

def stuck(number):
    print("begun", flush=True)
    threading.Event().wait()

env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 1).map(stuck).print()
env.execute("numbers")
"""


@pytest.mark.wide(but=("python",))
@pytest.mark.parametrize("launcher", ["python", "flinkpy run"])
def test_an_interrupt_that_waits_for_a_function_says_so(tmp_path: Path, launcher: str) -> None:
    with begin(tmp_path, launcher, STUCK) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        assert program.stdout.readline() == "begun\n"
        program.send_signal(signal.SIGINT)
        assert program.stderr.readline() == (
            "cancelling job 'numbers': waiting for its functions to return; Ctrl-C again ends "
            "the wait\n"
        )
        program.send_signal(signal.SIGINT)
        program.stderr.read()
    assert program.returncode in (130, -signal.SIGINT)


class OutOfStock(Exception):
    """Of the program's own, with an argument of its own."""

    def __init__(self, left: int) -> None:
        super().__init__(f"{left} left")
        self.left = left

    def __reduce__(self) -> Any:
        return OutOfStock, (self.left,)


def sold_out(number: int) -> int:
    raise OutOfStock(number)


def undescribable(number: int) -> int:
    raise OutOfStock(threading.Lock())  # type: ignore[arg-type]  # which does not travel


@pytest.mark.parametrize(
    "execute",
    [
        lambda stream: stream.execute_and_collect(limit=1),
        lambda stream: stream.print() and stream.get_execution_environment().execute(),
    ],
)
def test_a_failed_jobs_error_is_raised_from_what_the_function_raised(
    execute: Callable[[DataStream], Any],
) -> None:
    configuration = Configuration()
    configuration.set_string("execution.target", "embedded")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    with pytest.raises(JobExecutionError, match="OutOfStock: 7 left") as raised:
        execute(env.from_collection([7]).map(sold_out))
    assert isinstance(raised.value.__cause__, OutOfStock)
    assert raised.value.__cause__.left == 7
    with pytest.raises(JobExecutionError, match=r"OutOfStock: <unlocked _thread\.lock") as raised:
        execute(env.from_collection([7]).map(undescribable))
    assert raised.value.__cause__ is None


class OwnTime(SourceFunction):
    """``given`` is what its watermark is told as."""

    def __init__(self, given: Any) -> None:
        self._given = given

    def run(self, ctx: SourceContext) -> None:
        ctx.collect_with_timestamp("early", 5)
        ctx.emit_watermark(self._given)
        ctx.collect_with_timestamp("late", 7)

    def cancel(self) -> None: ...


class Moments(KeyedProcessFunction):
    """Each record with the event time it meets."""

    def process_element(
        self, value: str, ctx: KeyedProcessFunction.Context
    ) -> Iterator[tuple[str, int]]:
        yield value, ctx.timer_service().current_watermark()


def moments(given: Any) -> list[Any]:
    configuration = Configuration()
    configuration.set_string("execution.target", "embedded")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    collected: list[Any] = (
        env.add_source(OwnTime(given))
        .key_by(lambda word: word)
        .process(Moments())
        .execute_and_collect(limit=10)
    )
    return collected


@pytest.mark.finding("first-use 4")
@pytest.mark.parametrize(
    "given", [Watermark(999), 999, np.int64(999)], ids=["Watermark", "int", "numpy"]
)
def test_a_source_functions_watermark_is_a_watermark(given: Any) -> None:
    assert moments(given) == [("early", MIN_TIMESTAMP), ("late", 999)]


@pytest.mark.finding("first-use 4")
@pytest.mark.parametrize("given", ["999", 9.5, None, True])
def test_what_is_no_watermark_is_refused_where_it_is_emitted(given: Any) -> None:
    with pytest.raises(
        JobExecutionError,
        match=(
            r"(?s)a watermark is Watermark\(timestamp\), or the timestamp "
            r"itself.*ctx\.emit_watermark"
        ),
    ):
        moments(given)


class FailingEnumerator(SplitQueue[RangeSplit]):
    """Until ``fails`` exists no more: at its start, or when it has handed out something already."""

    def __init__(
        self, context: SplitEnumeratorContext[RangeSplit], fails: Path, where: str
    ) -> None:
        super().__init__(context, lambda parallelism: cut(1, 101, 4))
        self._fails, self._where = fails, where

    def start(self) -> None:
        self._fail("start")
        super().start()

    def handle_split_request(self, subtask: int, host: str) -> None:
        if len(self._left) < 3:
            self._fail("handle_split_request")
        super().handle_split_request(subtask, host)

    def snapshot_state(self, checkpoint_id: int) -> Any:
        self._fail("snapshot_state")
        return super().snapshot_state(checkpoint_id)

    def _fail(self, where: str) -> None:
        if where == self._where and self._fails.exists():
            self._fails.unlink()
            raise OSError("the catalogue does not answer")


class FlakySource(NumberSequenceSource):
    def __init__(self, fails: Path, where: str) -> None:
        super().__init__(1, 100)
        self._fails, self._where = fails, where

    def create_enumerator(
        self, context: SplitEnumeratorContext[RangeSplit], checkpoint: Any = None
    ) -> SplitEnumerator[RangeSplit]:
        return FailingEnumerator(context, self._fails, self._where)

    def without_data(self) -> FlakySource:
        return self


def flaky(tmp_path: Path, where: str, **options: str) -> DataStream:
    configuration = Configuration()
    for key, value in {
        "execution.target": "embedded",
        "restart-strategy.fixed-delay.delay": "1 ms",
        **options,
    }.items():
        configuration.set_string(key, value)
    fails = tmp_path / "fails"
    fails.touch()
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    return env.from_source(
        FlakySource(fails, where), WatermarkStrategy.no_watermarks(), "flaky"
    ).set_parallelism(2)


@pytest.mark.parametrize("where", ["start", "handle_split_request"])
def test_a_failing_enumerator_goes_through_the_restart_strategy(tmp_path: Path, where: str) -> None:
    collected = (
        flaky(tmp_path, where, **{"restart-strategy.type": "fixed-delay"})
        .map(lambda number: number)
        .execute_and_collect(limit=1000)
    )
    assert sorted(collected) == list(range(1, 101))


@pytest.mark.parametrize("where", ["start", "handle_split_request"])
def test_without_a_restart_strategy_a_failing_enumerator_fails_the_job(
    tmp_path: Path, where: str
) -> None:
    with pytest.raises(
        JobExecutionError,
        match=r"(?s)the catalogue does not answer.*in operator 'Source: flaky \(enumerator\)'",
    ):
        flaky(tmp_path, where).execute_and_collect(limit=1000)


@pytest.mark.parametrize("tolerated", ["0", "5"])
def test_an_enumerator_that_fails_at_a_checkpoint_fails_the_checkpoint(
    tmp_path: Path, tolerated: str
) -> None:
    options = {
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.tolerable-failed-checkpoints": tolerated,
        "restart-strategy.type": "fixed-delay",
    }
    stream = flaky(tmp_path, "snapshot_state", **options)

    def when_it_has_failed(number: int) -> int:
        eventually(lambda: not (tmp_path / "fails").exists())
        return number

    assert sorted(stream.map(when_it_has_failed).execute_and_collect(limit=1000)) == list(
        range(1, 101)
    )


class Repeating(KeyedProcessFunction):
    """Each timer registers the next, so the end of event time never gets to its end."""

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        ctx.timer_service().register_event_time_timer(1)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[int]:
        yield timestamp
        ctx.timer_service().register_event_time_timer(timestamp + 1)


@pytest.mark.finding("first-use 14")
def test_timers_that_register_timers_do_not_hold_up_closing() -> None:
    configuration = Configuration()
    configuration.set_string("execution.target", "embedded")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    results = (
        env.from_collection([7])
        .key_by(lambda number: number)
        .process(Repeating())
        .execute_and_collect()
    )
    assert next(results) == 1
    results.close()
    assert submitted_jobs()[-1].status() is JobState.CANCELED
