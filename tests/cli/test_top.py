"""What `flinkpy top` shows of the jobs of a session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from flinkpy.actors.gateways import (
    ClusterOverview,
    JobDetails,
    JobOverview,
    OperatorDetails,
    VertexDetails,
)
from flinkpy.actors.job_master.subtask_metrics import operator_details
from flinkpy.cli.shown.top import picture, pictures
from flinkpy.cluster.client import ClusterClient
from flinkpy.cluster.display.job_picture import JobPicture
from flinkpy.cluster.embedded import embedded_client, stop_embedded
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId, OperatorId, ResourceId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.graph.deployment import TaskMetrics
from flinkpy.metrics.definitions import ENTRIES, STATE_BYTES
from flinkpy.metrics.readings import OperatorReading, TaskReading
from flinkpy.runtime.memory.memory_report import MemoryReport, OwnedMemory
from tests.waiting import eventually
from tests.web.rest import held_job

RUNNING = ExecutionState.RUNNING
CLUSTER = ClusterOverview(2, 8, 5, 1)


def job(name: str, *vertices: VertexDetails) -> JobPicture:
    details = JobDetails(JobOverview(JobId(name), name, JobState.RUNNING, 0, None), vertices)
    return JobPicture(details, 1.0, {each.vertex_id: (1234, 5) for each in vertices})


def test_the_busiest_vertex_comes_first_whichever_job_it_is_of() -> None:
    quiet, busy = (
        VertexDetails(name, name, 2, {RUNNING: 2}, busy_ms_per_second=share)
        for name, share in (("quiet", 10), ("busy", 900))
    )
    held = VertexDetails(
        "held", "held", 2, {RUNNING: 1}, busy_ms_per_second=10, back_pressured_ms_per_second=800
    )
    one, two = job("a", quiet, held), job("b", busy)
    head, blank, titles, *rows = picture(CLUSTER, [one, two], 0)
    assert "2 TaskExecutors, 5 of 8 slots free, 2 running jobs" in head
    assert blank == ""
    assert titles.split() == [
        "BUSY",
        "BACK-PRESSURED",
        "IDLE",
        "IN/s",
        "OUT/s",
        "TASKS",
        "JOB",
        "VERTEX",
    ]
    assert [row.split()[-1] for row in rows] == ["busy", "held", "quiet"]
    assert rows[0].split() == [
        "90",
        "%",
        "0",
        "%",
        "0",
        "%",
        "1.2",
        "k",
        "5",
        "2/2",
        "b",
        "b",
        "busy",
    ]
    assert {row.index(" % ") for row in rows} == {rows[0].index(" % ")}


def test_below_a_vertex_stand_its_operators_that_have_state_or_rows_that_change() -> None:
    changes = {"numUpdateBeforeRecordsOut": 2, "numUpdateAfterRecordsOut": 2}
    groups = OperatorDetails(
        "GroupAggregate",
        {"numRecordsIn": 9, "numRecordsOut": 7, ENTRIES: 3, STATE_BYTES: 480, **changes},
    )
    vertex = VertexDetails("v", "Calc -> GroupAggregate", 1, {RUNNING: 1}, operators=(groups,))
    *_, row, line = picture(CLUSTER, [job("a", vertex)], 0)
    assert row.endswith("Calc -> GroupAggregate")
    assert line.strip() == (
        "GroupAggregate: state of 3 entries, 480 B; in +I 9; out +I 3, -U 2, +U 2"
    )


def test_what_operators_count_is_summed_over_the_subtasks_of_their_vertex() -> None:
    def counted(index: int, **values: float) -> TaskMetrics:
        attempt = ExecutionAttemptId(JobId("j"), JobVertexId("v"), index, 0)
        every = {"numRecordsIn": 2.0, "numRecordsOut": 1.0}
        operators = (
            OperatorReading(OperatorId("calc"), "Calc", every),
            OperatorReading(OperatorId("join"), "Join", {**every, "watermarkLatency": 3, **values}),
        )
        return TaskMetrics(attempt, reading=TaskReading(attempt, "job", "v", {}, operators))

    first = counted(0, numDeleteRecordsIn=1, **{ENTRIES: 5, STATE_BYTES: 100})
    none_yet = TaskMetrics(ExecutionAttemptId(JobId("j"), JobVertexId("v"), 2, 0))
    [join] = operator_details([first, counted(1, **{ENTRIES: 7, STATE_BYTES: 20}), none_yet])
    assert join == OperatorDetails(
        "Join",
        {
            "numRecordsIn": 4,
            "numRecordsOut": 2,
            "numDeleteRecordsIn": 1,
            ENTRIES: 12,
            STATE_BYTES: 120,
        },
    )


def test_the_fullest_process_is_shown_and_all_that_are_nearly_full() -> None:
    owner = OwnedMemory("count (1/2)", "state in memory", 300 << 20, "state.backend.type: rocksdb")
    told = (
        (ResourceId("worker-1"), MemoryReport(0, 910, 1000, 0, 0, (owner,), sources_rest=True)),
        (ResourceId("worker-2"), MemoryReport(0, 850, 1000, 0, 0)),
        (ResourceId("worker-3"), MemoryReport(0, 400, 1000, 0, 0)),
    )
    one = job("a", VertexDetails("v", "v", 2, {RUNNING: 2}))
    one = replace(one, details=replace(one.details, fullest=told))
    _, first, second, blank, *_ = picture(CLUSTER, [one], 0)
    assert first == (
        "memory of worker-1: 91% of 1000 bytes: count (1/2): state in memory 300 MB; its sources "
        "rest"
    )
    assert second == "memory of worker-2: 85% of 1000 bytes"
    assert blank == ""
    one = replace(one, details=replace(one.details, fullest=told[2:]))
    _, first, blank, *_ = picture(CLUSTER, [one], 0)
    assert (first, blank) == ("memory of worker-3: 40% of 1000 bytes", "")


def test_without_jobs_there_is_the_cluster() -> None:
    assert len(picture(CLUSTER, [], 0)) == 1


@pytest.fixture
def options() -> Iterator[dict[str, Any]]:
    yield {"taskmanager.network.batch.max-records": "1", "heartbeat.interval": "100 ms"}
    stop_embedded()


def test_a_running_job_is_shown_and_one_that_has_ended_is_not(options: dict[str, Any]) -> None:
    session: ClusterClient = embedded_client(options, 1)
    shown = pictures(session)
    with held_job(options):
        eventually(lambda: sum("1/1" in line or "2/2" in line for line in next(shown)) == 2)
        assert any("held" in line for line in next(shown))
    eventually(lambda: len(next(shown)) == 1)
