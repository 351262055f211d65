"""Whole jobs in this process: from the job graph through all endpoints, slots, tasks and, with
several TaskExecutors, TCP."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from flinkpy.cluster import embedded
from flinkpy.cluster.client import ClusterJob
from flinkpy.cluster.embedded import stop_embedded
from flinkpy.cluster.launch import submit
from flinkpy.connectors.collect.collect_server import CollectServer
from flinkpy.core.errors import (
    ConfigurationError,
    JobCancelledError,
    JobExecutionError,
    ProgramError,
    UserCodeError,
)
from flinkpy.core.lifecycles import JobState
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.graph.job_graph import JobGraph
from tests.cluster.programs import (
    COUNTS,
    LINES,
    Endless,
    Lines,
    collected,
    dropped,
    graph,
    mapped,
    source,
    word_counts,
)
from tests.ports import free_port
from tests.waiting import PATIENCE_S, eventually

EMBEDDED = {"execution.target": "embedded", "client.progress": False}
TWO_EXECUTORS = {**EMBEDDED, "taskmanager.numberOfTaskSlots": 1}


@pytest.fixture(autouse=True)
def no_session_is_left() -> Iterator[None]:
    # which serves all sessions to come
    before = {thread.name for thread in threading.enumerate()} | {"calls of the main thread"}
    yield
    stop_embedded()
    eventually(lambda: {thread.name for thread in threading.enumerate()} <= before)


def run(end: JobGraph, configuration: dict[str, Any] = EMBEDDED) -> ClusterJob:
    job = submit(end, configuration)
    job.result(timeout=PATIENCE_S)
    return job


def counts(parallelism: int, configuration: dict[str, Any]) -> dict[str, int]:
    with CollectServer() as server:
        run(
            graph(collected(word_counts(source(Lines(LINES))), server), "wc", parallelism),
            configuration,
        )
        server.job_ended()
        found: dict[str, int] = {}
        for word, count in server:
            assert count == found.get(word, 0) + 1
            found[word] = count
    return found


@pytest.mark.parametrize(
    "configuration", [EMBEDDED, TWO_EXECUTORS], ids=["one TaskExecutor", "two TaskExecutors"]
)
@pytest.mark.parametrize("parallelism", [1, 2])
def test_words_are_counted(parallelism: int, configuration: dict[str, Any]) -> None:
    assert counts(parallelism, configuration) == COUNTS


def test_two_jobs_run_one_after_the_other() -> None:
    assert counts(2, EMBEDDED) == COUNTS
    assert counts(1, EMBEDDED) == COUNTS


def test_many_batches_cross_between_two_task_executors() -> None:
    with CollectServer() as server:
        run(
            graph(collected(word_counts(source(Lines(LINES, times=2000))), server), "wc", 2),
            TWO_EXECUTORS,
        )
        server.job_ended()
        last = dict(server)
    assert last == {word: count * 2000 for word, count in COUNTS.items()}


def divide(value: int) -> float:
    return 10 / value


def test_a_failing_function_shows_the_users_frame_the_operator_and_the_record() -> None:
    with pytest.raises(JobExecutionError, match="job 'broken' failed: ZeroDivisionError") as raised:
        run(graph(dropped(mapped(source(Lines([2, 1, 0])), divide, "Divide")), "broken"))
    cause = raised.value.cause
    assert isinstance(cause, UserCodeError)
    assert cause.operator == "Divide"
    assert cause.record == "0"
    assert cause.frames[-1].function == "divide"
    assert cause.frames[-1].file == __file__
    assert cause.frames[-1].text == "return 10 / value"


def test_a_failure_behind_the_network_reaches_the_user() -> None:
    bad = mapped(word_counts(source(Lines(LINES))), lambda pair: pair[2], "Third")
    with pytest.raises(JobExecutionError, match="IndexError") as raised:
        run(graph(dropped(bad), "broken", 2), TWO_EXECUTORS)
    assert isinstance(raised.value.cause, UserCodeError)
    assert raised.value.cause.operator == "Third"


@pytest.mark.parametrize(
    "configuration", [EMBEDDED, TWO_EXECUTORS], ids=["one TaskExecutor", "two TaskExecutors"]
)
def test_an_unbounded_job_runs_until_it_is_cancelled(configuration: dict[str, Any]) -> None:
    counted = word_counts(mapped(source(Endless()), lambda number: f"{number % 10}"))
    job = submit(graph(dropped(counted), "endless", 2), configuration)
    eventually(
        lambda: all(vertex.records_in + vertex.records_out > 0 for vertex in job.details().vertices)
    )
    assert job.status() is JobState.RUNNING
    job.cancel()
    with pytest.raises(JobCancelledError):
        job.result(timeout=PATIENCE_S)
    assert job.status() is JobState.CANCELED
    assert counts(2, configuration) == COUNTS


def test_a_job_without_operators_is_refused() -> None:
    from flinkpy.core.ids import IdFactory

    with pytest.raises(ProgramError, match="no operators"):
        submit(JobGraph(IdFactory().job_id(), "empty", []), EMBEDDED)


def test_the_details_of_an_ended_job_keep_its_counters() -> None:
    job = run(graph(dropped(mapped(source(Lines(range(5000))), lambda value: value)), "count"))
    details = job.details()
    assert details.overview.state is JobState.FINISHED
    assert [vertex.name for vertex in details.vertices] == ["Source: lines -> Map -> Drop"]


@pytest.mark.parametrize(
    "configuration", [EMBEDDED, TWO_EXECUTORS], ids=["one TaskExecutor", "two TaskExecutors"]
)
def test_a_function_may_run_a_job_of_its_own_and_that_ones_functions_too(
    configuration: dict[str, Any],
) -> None:
    def doubled(value: int) -> list[int]:
        return results_of([value, value], lambda each: results_of([each, 1], lambda one: one))

    def results_of(values: list[Any], function: Any) -> list[Any]:
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        with env.from_collection(values).map(function).execute_and_collect() as records:
            return list(records)

    assert results_of([1, 2], doubled) == [[[1, 1], [1, 1]], [[2, 1], [2, 1]]]


def test_a_job_that_a_function_runs_takes_free_ports() -> None:
    configuration = {
        **EMBEDDED,
        "rest.enabled": True,
        "rest.port": free_port(),
        "rest.authentication": "NONE",
        "metrics.reporters": "prom",
        "metrics.reporter.prom.port": free_port(),
    }

    def results_of(values: list[Any], function: Any) -> list[Any]:
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        with env.from_collection(values).map(function).execute_and_collect() as records:
            return list(records)

    assert results_of([1], lambda value: results_of([value, 2], lambda one: one)) == [[1, 2]]


def test_a_port_that_another_cluster_of_the_program_has_is_told_with_the_options_that_differ() -> (
    None
):
    configuration = {
        **EMBEDDED,
        "rest.enabled": True,
        "rest.port": free_port(),
        "rest.authentication": "NONE",
    }
    counts(1, configuration)
    with pytest.raises(
        ConfigurationError,
        match=(
            r"option rest.port: .* another cluster of this program has it.* "
            r"\(taskmanager.*max-records\)"
        ),
    ):
        counts(1, {**configuration, "taskmanager.network.batch.max-records": 1})


def test_options_that_mean_the_same_are_those_of_one_session() -> None:
    for options in ({"rest.enabled": False}, {"rest.enabled": "false"}, {"rest.enabled": "no"}):
        assert counts(1, {**EMBEDDED, **options}) == COUNTS
    assert len(embedded._sessions) == 1


FORKS = """
    import os, sys
    from flinkpy.datastream import StreamExecutionEnvironment

    def count():
        env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "embedded"})
        return len(list(env.from_collection([1, 2, 3]).map(lambda value: value).execute_and_collect()))

    count()
    child = os.fork()
    if child == 0:
        sys.exit(count())
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) * 10 + count())
"""


@pytest.mark.wide
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_has_a_session_of_its_own_and_so_has_its_parent() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(FORKS)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stderr) == (33, "")


IN_FUNCTION, MAY_RETURN = threading.Event(), threading.Event()


def waits(value: Any) -> Any:
    IN_FUNCTION.set()
    MAY_RETURN.wait(20)
    return value


def test_a_cancelled_job_ends_without_its_function_that_does_not_return(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # and not when the next heartbeat comes, after 10 s
    impatient = {**EMBEDDED, "task.cancellation.timeout": "50 ms"}
    IN_FUNCTION.clear()
    MAY_RETURN.clear()
    job = submit(
        graph(dropped(mapped(source(Lines([1])), waits, "Wait")), "stuck", 1, **impatient),
        impatient,
    )
    try:
        assert IN_FUNCTION.wait(10)
        job.cancel()
        with pytest.raises(JobCancelledError):
            job.result(timeout=5)
        assert counts(1, impatient) == COUNTS
        assert len(embedded._sessions) == 1
    finally:
        MAY_RETURN.set()
    assert (
        "a function in this process does not return: its job ends without it "
        "(task.cancellation.timeout)"
    ) in caplog.text


def test_after_a_cancelled_function_that_does_not_return_the_next_job_runs_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedded, "STUCK_AFTER_S", 0.0)
    IN_FUNCTION.clear()
    MAY_RETURN.clear()
    job = submit(graph(dropped(mapped(source(Lines([1])), waits, "Wait")), "stuck"), EMBEDDED)
    try:
        assert IN_FUNCTION.wait(10)
        job.cancel()
        eventually(
            lambda: any(session.driver.is_stuck() for session in embedded._sessions.values())
        )
        assert counts(1, EMBEDDED) == COUNTS
        assert len(embedded._sessions) == 2
    finally:
        MAY_RETURN.set()
    with pytest.raises(JobCancelledError):
        job.result(timeout=10)


def test_high_availability_has_no_effect_here_and_the_program_is_told_so_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flinkpy.cluster.embedded._has_told", False)
    env = StreamExecutionEnvironment.get_execution_environment(
        {"high-availability.type": "filesystem"}
    )
    for _ in range(2):
        assert env.from_collection([1, 2]).take(2) == [1, 2]
    assert capsys.readouterr().err.count("high-availability.type has no effect here") == 1


# -- errors of the engine --------------------------------------------------------------------------


@pytest.mark.finding("gaps G12")
@pytest.mark.parametrize("part", ["dispatcher", "resourcemanager", "task executor"])
def test_an_error_of_the_engine_fails_the_jobs_with_its_place_and_the_next_job_gets_another_session(
    part: str,
) -> None:
    job = submit(graph(dropped(source(Endless())), "endless", 1), EMBEDDED)
    eventually(lambda: job.details().vertices[0].records_out > 0)
    session = embedded._sessions[embedded._key(EMBEDDED)]  # one that is stuck may stand beside it
    workers = list(session.driver._workers.values())  # an earlier job may have left an idle one
    services, name = (
        (workers, "taskexecutor") if part == "task executor" else ([session.service], part)
    )

    def bug() -> None:
        raise KeyError("a bug")

    for service in services:
        service._hosts[name].execute(bug)
    with pytest.raises(JobExecutionError, match=rf"KeyError: 'a bug' \({__name__}:\d+, in bug\)"):
        job.result(timeout=PATIENCE_S)
    assert counts(1, EMBEDDED) == COUNTS
    assert session not in embedded._sessions.values()
    eventually(lambda: not session.driver._workers)
