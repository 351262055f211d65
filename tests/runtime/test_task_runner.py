"""The runner as a TaskExecutor uses it: its thread, the real shuffle environment, states in order,
everything given back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from flinkpy.core.errors import EngineError, ResourceUnavailableError
from flinkpy.core.ids import OperatorId, ResourceId
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.operators.functions import SourceContext, SourceFunction
from flinkpy.operators.rows.stateless import MapOperator
from flinkpy.operators.sinks.legacy_source import LegacySourceOperator
from flinkpy.operators.sinks.sink_operator import SinkOperator
from flinkpy.runtime import task_runner
from flinkpy.runtime.runner_port import RunnerStatistics
from flinkpy.runtime.task_messages import OperatorEvent
from flinkpy.runtime.task_runner import SlotTaskRunner
from tests.runtime.harness import (
    JOURNAL,
    RESOURCE,
    SECRET,
    JournalOperator,
    JournalSource,
    Reporter,
    attempt,
    descriptor,
)
from tests.waiting import eventually

RUNNING = ["DEPLOYING", "INITIALIZING", "RUNNING"]
NOTHING = RunnerStatistics(0, 0, 0, 0)


@pytest.fixture
def runner() -> Iterator[SlotTaskRunner]:
    JOURNAL.clear()
    made = SlotTaskRunner(NetworkConfig(), SECRET, RESOURCE)
    made.start()
    yield made
    made.stop()


def test_a_job_of_two_tasks_runs_and_gives_everything_back(runner: SlotTaskRunner) -> None:
    reporter = Reporter()
    runner.submit(0, descriptor("s", JournalOperator("z"), reads=[("p", 0)]), reporter)
    runner.submit(
        0, descriptor("p", JournalSource("a", [[n] for n in range(100)]), consumers=1), reporter
    )
    reporter.wait_for(lambda: len(reporter.terminal()) == 2)
    assert reporter.of(attempt("p")) == reporter.of(attempt("s")) == [*RUNNING, "FINISHED"]
    assert [line for line in JOURNAL if line.startswith("z.got")] == [
        *(f"z.got {n}" for n in range(100)),
        "z.got last of a",
    ]
    runner.stop()
    assert runner.statistics() == NOTHING


def test_a_running_source_is_cancelled_promptly(runner: SlotTaskRunner) -> None:
    reporter = Reporter()
    runner.submit(
        0, descriptor("p", JournalSource("a", [[1]], endless=True), consumers=1), reporter
    )
    runner.submit(0, descriptor("s", JournalOperator("z"), reads=[("p", 0)]), reporter)
    reporter.wait_for(lambda: "RUNNING" in reporter.of(attempt("p")))
    runner.cancel(attempt("p"))
    runner.cancel(attempt("s"))
    runner.cancel(attempt("unknown"))
    reporter.wait_for(lambda: len(reporter.terminal()) == 2)
    assert reporter.of(attempt("p"))[-2:] == ["CANCELING", "CANCELED"]
    runner.stop()
    assert runner.statistics() == NOTHING


def test_stopping_fails_what_still_runs(runner: SlotTaskRunner) -> None:
    reporter = Reporter()
    runner.submit(0, descriptor("p", JournalSource("a", [], endless=True)), reporter)
    reporter.wait_for(lambda: "RUNNING" in reporter.of(attempt("p")))
    runner.stop()
    assert reporter.of(attempt("p")) == [*RUNNING, "FAILED"]
    assert "stopped" in str(reporter.error_of(attempt("p")))
    assert runner.statistics() == NOTHING
    runner.stop()


def test_a_stopped_runner_reports_what_it_is_given_as_failed(runner: SlotTaskRunner) -> None:
    runner.stop()
    reporter = Reporter()
    runner.submit(0, descriptor("p", JournalSource("a", [])), reporter)
    assert reporter.of(attempt("p")) == ["FAILED"]


def test_a_taken_data_port_is_said_at_once_and_nothing_stays_open(runner: SlotTaskRunner) -> None:
    other = SlotTaskRunner(
        NetworkConfig(data_port=runner.data_address[1]), SECRET, ResourceId("other")
    )
    with pytest.raises(
        ResourceUnavailableError,
        match=r"cannot be opened at 127\.0\.0\.1:\d+: Address already in use; see .*data\.port",
    ):
        other.start()
    other.stop()


def test_failing_from_outside_carries_the_error(runner: SlotTaskRunner) -> None:
    reporter = Reporter()
    runner.submit(0, descriptor("p", JournalSource("a", [], endless=True)), reporter)
    runner.fail(attempt("p"), EngineError("the JobMaster is lost"))
    reporter.wait_for(lambda: len(reporter.terminal()) == 1)
    assert "the JobMaster is lost" in str(reporter.error_of(attempt("p")))


def test_operator_events_go_both_ways(runner: SlotTaskRunner) -> None:
    reporter = Reporter()
    runner.submit(
        0, descriptor("p", JournalSource("a", [], endless=True), JournalOperator("b")), reporter
    )
    runner.deliver_message(attempt("p"), OperatorEvent(OperatorId("a"), "split"))
    reporter.wait_for(lambda: bool(reporter.messages))
    assert reporter.messages == [(attempt("p"), OperatorEvent(OperatorId("a"), "answer to split"))]
    runner.cancel(attempt("p"))
    reporter.wait_for(lambda: len(reporter.terminal()) == 1)
    assert "b.got split" in JOURNAL


def test_an_event_for_an_unknown_operator_fails_the_task(runner: SlotTaskRunner) -> None:
    reporter = Reporter()
    runner.submit(0, descriptor("p", JournalSource("a", [], endless=True)), reporter)
    runner.deliver_message(attempt("p"), OperatorEvent(OperatorId("nobody"), "split"))
    reporter.wait_for(lambda: len(reporter.terminal()) == 1)
    assert "has no operator nobody" in str(reporter.error_of(attempt("p")))


SEEN: list[Any] = []
ARRIVED = threading.Event()
CANCELLED = threading.Event()


class Blocking(SourceFunction):
    """Gives 10,000 numbers, then waits until it is cancelled."""

    def run(self, ctx: SourceContext) -> None:
        for number in range(10_000):
            ctx.collect(number)
        if not CANCELLED.wait(10):
            raise TimeoutError

    def cancel(self) -> None:
        CANCELLED.set()


def test_a_blocking_source_has_its_own_thread_and_is_cancelled(runner: SlotTaskRunner) -> None:
    SEEN.clear()
    CANCELLED.clear()
    ARRIVED.clear()
    reporter = Reporter()
    runner.submit(
        0,
        descriptor("p", LegacySourceOperator(Blocking()), MapOperator(int), SinkOperator(note)),
        reporter,
    )
    assert ARRIVED.wait(10)
    assert list(range(10_000)) == SEEN
    [metrics] = runner.metrics()
    assert [pair[1:] for pair in metrics.operators] == [(0, 10_000), (10_000, 10_000), (10_000, 0)]
    runner.cancel(attempt("p"))
    reporter.wait_for(lambda: len(reporter.terminal()) == 1)
    assert CANCELLED.wait(10)


def note(value: Any) -> None:
    SEEN.append(value)
    if value == 9_999:
        ARRIVED.set()


RETURNS = threading.Event()


def stands_still(value: Any) -> Any:
    ARRIVED.set()
    RETURNS.wait(60)
    return value


def test_stopping_does_not_wait_for_a_task_that_its_job_has_given_up(
    runner: SlotTaskRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_runner, "STOP_TIMEOUT_S", 1e6)
    ARRIVED.clear()
    RETURNS.clear()
    values = {"task.own-thread": "always", "task.cancellation.timeout": "1 ms"}
    runner.submit(
        0,
        descriptor("p", JournalSource("a", [[1]]), MapOperator(stands_still), configuration=values),
        Reporter(),
    )
    try:
        assert ARRIVED.wait(10)
        runner.cancel(attempt("p"))
        eventually(lambda: runner.overdue() is not None)
        runner.stop()
        assert not RETURNS.is_set()
    finally:
        RETURNS.set()
