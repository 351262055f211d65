"""What ``flinkpy show`` says of a job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo, VertexInfo
from flinkpy.actors.gateways import JobMetrics
from flinkpy.cli.shown.shown_job import job_report
from flinkpy.core.ids import JobId, JobVertexId
from flinkpy.core.lifecycles import CheckpointState, JobState
from flinkpy.graph.checkpoint_messages import CheckpointMetrics
from flinkpy.scheduler.checkpointing.checkpoint_statistics import (
    CheckpointsReport,
    CheckpointStatistics,
    SubtaskStatistics,
    VertexStatistics,
)

ACKNOWLEDGED = SubtaskStatistics(0, 100_665, 5, 5, CheckpointMetrics())
CHECKPOINT = CheckpointStatistics(
    3, 100_000, vertices=(VertexStatistics(JobVertexId("v"), (0, 1, 2), (ACKNOWLEDGED,)),)
)


def report(checkpoint: CheckpointStatistics) -> str:
    vertex = VertexInfo("v", "Map -> Sink: Writer", 128, "default", (), (), ())
    job = ExecutionGraphInfo(
        JobId("4f"),
        "words",
        JobState.RUNNING,
        0,
        None,
        280_000,
        {JobState.RUNNING: 0},
        {},
        (vertex,),
        checkpoint_history=CheckpointsReport(in_progress=1, history=(checkpoint,)),
    )
    return "\n".join(job_report(job, JobMetrics({}, {})))


@pytest.mark.finding("newcomers 9")
def test_a_checkpoint_that_is_under_way_tells_since_when_and_who_is_waited_for() -> None:
    says = report(CHECKPOINT)
    assert "checkpoint 3: pending for 3 min 0 s, 1 of 3 subtasks acknowledged" in says
    assert (
        "    not yet: subtask 1 of Map -> Sink: Writer\n    not yet: subtask 2 of Map -> "
        "Sink: Writer"
    ) in says


def test_of_many_that_are_waited_for_the_first_are_named() -> None:
    assert "    and 90 further subtasks" in report(
        replace(CHECKPOINT, vertices=(VertexStatistics(JobVertexId("v"), tuple(range(100))),))
    )


def test_a_checkpoint_that_has_ended_tells_how_long_it_took() -> None:
    ended = replace(CHECKPOINT, state=CheckpointState.COMPLETED, ended_ms=100_665)
    assert "checkpoint 3: completed in 0.7 s, 5 bytes" in report(ended)
