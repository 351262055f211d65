"""What a JobMaster tells of its job: the latest attempt counts, and of its readings the latest, in
whatever order they come."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.actors.job_master.graph_report import wall_ms
from flinkpy.actors.job_master.job_report import JobStatusBook
from flinkpy.core.clock import ManualClock
from flinkpy.core.ids import ExecutionAttemptId, JobId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.graph.deployment import TaskExecutionState, TaskMetrics
from flinkpy.graph.job_graph import JobGraph
from flinkpy.metrics.reported import ACCUMULATOR
from flinkpy.scheduler.scheduler_report import SchedulerDetails, VertexSummary
from flinkpy.testing.simulation.simulated_jobs import JobBuilder

JOB = JobId("job")


def graph() -> JobGraph:
    builder = JobBuilder(JOB)
    builder.vertex(2)
    return builder.build()


def attempt(number: int = 0, subtask: int = 0) -> ExecutionAttemptId:
    return ExecutionAttemptId(JOB, graph().vertices[0].id, subtask, number)


def reading(
    read_ms: int,
    number: int = 0,
    subtask: int = 0,
    accumulators: dict[str, Any] | None = None,
    **counters: Any,
) -> TaskMetrics:
    told = pickle.dumps(accumulators) if accumulators is not None else b""
    return TaskMetrics(attempt(number, subtask), read_ms=read_ms, accumulators=told, **counters)


def vertex(book: JobStatusBook) -> Any:
    [summary] = [
        VertexSummary(each.id, each.name, each.parallelism, {ExecutionState.RUNNING: 2})
        for each in graph().vertices
    ]
    [found] = book.details(SchedulerDetails(JobState.RUNNING, None, (summary,), 0, 0, 0)).vertices
    return found


@pytest.fixture
def book() -> JobStatusBook:
    return JobStatusBook(graph(), ManualClock())


EARLIER = reading(1000, records_in=10, accumulators={"n": 1})
# counters may shrink: what counts is when they were read
LATER = reading(2000, records_in=5, accumulators={"n": 2})
# on another machine, with another clock
NEXT_ATTEMPT = reading(500, number=1, records_in=1, accumulators={"n": 3})


@pytest.mark.parametrize("order", list(itertools.permutations((EARLIER, LATER, NEXT_ATTEMPT))))
def test_the_latest_reading_of_the_latest_attempt_counts_whatever_comes_when(
    book: JobStatusBook, order: tuple[TaskMetrics, ...]
) -> None:
    for one in order:
        book.record_metrics((one,), 7)
    assert vertex(book).records_in == 1
    assert book.job_metrics().accumulators == {"n": 3}


@pytest.mark.parametrize("order", [(EARLIER, LATER), (LATER, EARLIER)])
def test_a_late_reading_does_not_overwrite_a_newer_one(
    book: JobStatusBook, order: tuple[TaskMetrics, ...]
) -> None:
    for one in order:
        book.record_metrics((one,), 7)
    assert vertex(book).records_in == 5
    assert book.job_metrics().accumulators == {"n": 2}


def test_nothing_comes_behind_the_end_of_an_attempt_but_the_next_attempt(
    book: JobStatusBook,
) -> None:
    book.record_task_end(
        TaskExecutionState(
            attempt(), ExecutionState.FAILED, None, {"n": 9}, reading(1000, records_in=9)
        ),
        1,
    )
    book.record_metrics((reading(5000, records_in=100, accumulators={"n": 100}),), 2)
    assert (vertex(book).records_in, book.job_metrics().accumulators) == (9, {"n": 9})
    book.record_metrics((reading(3000, number=1, records_in=2, accumulators={"n": 2}),), 3)
    assert (vertex(book).records_in, book.job_metrics().accumulators) == (2, {"n": 2})


def test_the_reason_of_a_restart_is_told_until_the_job_runs_again(book: JobStatusBook) -> None:
    for state, error in (
        (JobState.RUNNING, None),
        (JobState.RESTARTING, ValueError("why")),
        (JobState.RUNNING, None),
    ):
        book.record_state(state, error, 0)
        assert book.error is error


def test_accumulators_of_the_running_and_the_ended_are_merged(book: JobStatusBook) -> None:
    book.record_metrics((reading(1, subtask=0, accumulators={"n": 1, "seen": ["a"]}),), 1)
    book.record_task_end(
        TaskExecutionState(
            attempt(subtask=1), ExecutionState.FINISHED, None, {"n": 2, "seen": ["b"]}
        ),
        1,
    )
    assert book.job_metrics().accumulators == {"n": 3, "seen": ["a", "b"]}


def test_time_is_told_as_milliseconds_of_each_second_between_two_readings(
    book: JobStatusBook,
) -> None:
    book.record_metrics((reading(10_000, busy_ms=600, back_pressured_ms=300, idle_ms=100),), 1)
    assert times(book) == (600, 300, 100)  # since the task began
    book.record_metrics((reading(12_000, busy_ms=800, back_pressured_ms=500, idle_ms=1700),), 2)
    assert times(book) == (100, 100, 800)
    book.record_metrics((reading(12_050, busy_ms=850, back_pressured_ms=500, idle_ms=1700),), 3)
    assert times(book) == (100, 100, 800)  # too soon to say anything new
    book.record_metrics((reading(12_000, number=1, busy_ms=1),), 4)
    assert times(book) == (1000, 0, 0)  # a new attempt begins anew
    book.record_task_end(
        TaskExecutionState(
            attempt(1), ExecutionState.FINISHED, None, {}, reading(12_001, number=1, busy_ms=2)
        ),
        5,
    )
    assert times(book) == (0, 0, 0)


def test_a_vertex_is_as_busy_as_the_busiest_of_its_subtasks(book: JobStatusBook) -> None:
    book.record_metrics(
        (
            reading(1000, busy_ms=900, idle_ms=100),
            reading(1000, subtask=1, busy_ms=100, idle_ms=900),
        ),
        1,
    )
    assert times(book) == (900, 0, 900)


def times(book: JobStatusBook) -> tuple[int, int, int]:
    found = vertex(book)
    return found.busy_ms_per_second, found.back_pressured_ms_per_second, found.idle_ms_per_second


def test_the_engines_metrics_have_flinks_names_behind_task_and_operator(
    book: JobStatusBook,
) -> None:
    [operator] = graph().vertices[0].operators
    counted = reading(
        1000,
        subtask=1,
        records_in=4,
        records_out=3,
        busy_ms=250,
        idle_ms=750,
        operators=((operator.operator_id, 4, 3),),
        accumulators={ACCUMULATOR: [("v0.1.late", 2)]},
    )
    book.record_metrics((counted,), 1)
    told = book.job_metrics()
    assert told.engine == {
        "v0.1.numRecordsIn": 4,
        "v0.1.numRecordsOut": 3,
        "v0.1.busyTimeMsPerSecond": 250,
        "v0.1.backPressuredTimeMsPerSecond": 0,
        "v0.1.idleTimeMsPerSecond": 750,
    }
    assert told.accumulators == {ACCUMULATOR: [("v0.1.late", 2)]}


@given(st.floats(0, 1e6), st.lists(st.floats(0, 1e4), min_size=2, max_size=5), st.floats(1e9, 1e10))
def test_what_happened_before_a_time_that_was_told_is_not_told_to_be_later(
    began_s: float, after_s: list[float], wall_s: float
) -> None:
    happened, *_, ended, asked = sorted([0.0, *after_s])

    def told_ms(at: float) -> int:  # as the machine's clock tells it at once
        return math.floor((wall_s + at) * 1000)

    found = wall_ms(told_ms(asked), began_s + asked, began_s + happened)
    assert told_ms(happened) - 1 <= found <= told_ms(ended)
