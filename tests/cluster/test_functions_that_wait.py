"""Whole embedded jobs whose functions wait: they wait at the same time, hold up no other job, and
end when their job is cancelled."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.cluster.launch import submit
from flinkpy.core.errors import JobCancelledError
from flinkpy.core.lifecycles import JobState
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.functions import MapFunction, RuntimeContext
from flinkpy.runtime.loop import interruption
from tests.cluster.programs import COUNTS, Lines, dropped, graph, mapped, source
from tests.cluster.test_embedded import EMBEDDED, counts
from tests.waiting import PATIENCE_S, eventually

SUBTASKS = 4


@pytest.fixture(autouse=True)
def no_session_is_left() -> Iterator[None]:
    before = {thread.name for thread in threading.enumerate()} | {"calls of the main thread"}
    yield
    stop_embedded()
    eventually(lambda: {thread.name for thread in threading.enumerate()} <= before)


def environment(parallelism: int = 1, **options: Any) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment({**EMBEDDED, **options})
    env.set_parallelism(parallelism)
    return env


MET = threading.Barrier(SUBTASKS)


def meets(value: int) -> int:
    MET.wait(PATIENCE_S)  # breaks, and fails the job, unless all subtasks are here at the same time
    return value


class MeetsInOpen(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        MET.wait(PATIENCE_S)

    def map(self, value: int) -> int:
        return value


@pytest.mark.finding("newcomers 4")
def test_functions_of_several_subtasks_wait_at_the_same_time() -> None:
    MET.reset()
    numbers = list(range(3 * SUBTASKS))
    stream = environment(SUBTASKS).from_collection(numbers).rebalance().map(meets)
    with stream.execute_and_collect() as results:
        assert sorted(results) == numbers


@pytest.mark.finding("newcomers 4")
def test_several_subtasks_wait_in_open_at_the_same_time() -> None:
    MET.reset()
    stream = environment(SUBTASKS).from_collection([1, 2, 3]).rebalance().map(MeetsInOpen())
    with stream.execute_and_collect() as results:
        assert sorted(results) == [1, 2, 3]


IN_FUNCTION, MAY_RETURN, ENDED = threading.Event(), threading.Event(), list[str]()


@pytest.fixture
def blocked() -> Iterator[None]:
    IN_FUNCTION.clear()
    MAY_RETURN.clear()
    ENDED.clear()
    yield
    MAY_RETURN.set()


def waits(value: Any) -> Any:
    IN_FUNCTION.set()
    MAY_RETURN.wait(PATIENCE_S)
    return value


@pytest.mark.finding("newcomers 4")
@pytest.mark.usefixtures("blocked")
def test_a_job_runs_to_its_end_in_the_same_worker_beside_a_function_that_does_not_return() -> None:
    job = submit(graph(dropped(mapped(source(Lines([1])), waits, "Wait")), "waits"), EMBEDDED)
    assert IN_FUNCTION.wait(PATIENCE_S)
    assert counts(1, EMBEDDED) == COUNTS
    assert not MAY_RETURN.is_set()
    MAY_RETURN.set()
    job.result(timeout=PATIENCE_S)


def waits_in_short_sleeps(value: Any) -> Any:
    try:
        IN_FUNCTION.set()
        while True:
            MAY_RETURN.wait(0.001)
    finally:
        ENDED.append("finally")


class ClosesAfterwards(MapFunction):
    def map(self, value: Any) -> Any:
        return waits_in_short_sleeps(value)

    def close(self) -> None:
        ENDED.append("close")


def turns_it_into_its_own_error(value: Any) -> Any:
    try:
        return waits_in_short_sleeps(value)
    except BaseException as error:
        raise ValueError("the connection broke") from error


@pytest.mark.finding("gaps G9")
@pytest.mark.usefixtures("blocked")
@pytest.mark.parametrize(
    ("function", "ended"),
    [
        (waits_in_short_sleeps, ["finally"]),
        (ClosesAfterwards(), ["finally", "close"]),
        (turns_it_into_its_own_error, ["finally"]),
    ],
)
def test_cancelling_a_job_interrupts_its_function_and_is_no_failure(
    function: Any, ended: list[str]
) -> None:
    soon = {**EMBEDDED, "task.cancellation.interval": "20 ms"}
    job = submit(
        graph(dropped(mapped(source(Lines([1])), function, "Wait")), "waits", 1, **soon), soon
    )
    assert IN_FUNCTION.wait(PATIENCE_S)
    job.cancel()
    with pytest.raises(JobCancelledError):
        job.result(timeout=PATIENCE_S)
    assert job.status() is JobState.CANCELED
    assert ended == ENDED


@pytest.mark.finding("gaps G9")
@pytest.mark.usefixtures("blocked")
def test_the_end_of_the_session_interrupts_functions_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruption, "GRACE_S", 0.02)
    submit(
        graph(dropped(mapped(source(Lines([1])), waits_in_short_sleeps, "Wait")), "waits"), EMBEDDED
    )
    assert IN_FUNCTION.wait(PATIENCE_S)
    stop_embedded()
    eventually(lambda: ENDED == ["finally"])


@pytest.mark.usefixtures("blocked")
def test_tasks_that_never_get_a_thread_are_not_interrupted() -> None:
    shared = {**EMBEDDED, "task.own-thread": "never"}
    job = submit(
        graph(dropped(mapped(source(Lines([1])), waits, "Wait")), "waits", 1, **shared), shared
    )
    assert IN_FUNCTION.wait(PATIENCE_S)
    job.cancel()
    MAY_RETURN.set()
    with pytest.raises(JobCancelledError):
        job.result(timeout=PATIENCE_S)


class Counts(MapFunction):
    """Counts in a database that belongs to the thread in which it was opened."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._database = sqlite3.connect(":memory:")
        self._database.execute("create table seen (value)")

    def map(self, value: int) -> int:
        self._database.execute("insert into seen values (?)", (value,))
        [(count,)] = self._database.execute("select count(*) from seen").fetchall()
        return int(count)

    def close(self) -> None:
        self._database.close()


@pytest.mark.parametrize("use", ["auto", "always", "never"])
def test_what_open_acquires_may_belong_to_its_thread(use: str) -> None:
    stream = (
        environment(1, **{"task.own-thread": use})
        .from_collection(list(range(500)))
        .rebalance()
        .map(Counts())
    )
    with stream.execute_and_collect() as results:
        assert list(results) == list(range(1, 501))
