from __future__ import annotations

import io

import pytest

from flinkpy.actors.gateways import JobDetails, JobOverview, VertexDetails
from flinkpy.cluster.display.slot_notice import SlotNotice, waiting_for_slots
from flinkpy.core.clock import ManualClock
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import ExecutionState, JobState


def job(*states: dict[ExecutionState, int]) -> JobDetails:
    vertices = tuple(
        VertexDetails(str(number), f"v{number}", 2, each) for number, each in enumerate(states)
    )
    return JobDetails(JobOverview(JobId("j"), "wc", JobState.RUNNING, 0, None), vertices)


WAITING = job(
    {ExecutionState.SCHEDULED: 2}, {ExecutionState.SCHEDULED: 1, ExecutionState.CREATED: 1}
)
RUNNING = job({ExecutionState.RUNNING: 2}, {ExecutionState.RUNNING: 2})


class Watched:
    """What a notice says of a job that is looked at every five seconds."""

    def __init__(self) -> None:
        self.clock, self.stream = ManualClock(), io.StringIO()
        self.notice = SlotNotice(self.stream, "look there", self.clock)

    def after(self, *looks: JobDetails) -> str:
        for details in looks:
            self.notice.update(details)
            self.clock.advance(5.0)
        return self.stream.getvalue()


@pytest.mark.parametrize(
    ("details", "waiting"),
    [
        pytest.param(WAITING, 3, id="scheduled"),
        pytest.param(RUNNING, 0, id="running"),
        pytest.param(
            job({ExecutionState.FINISHED: 2}, {ExecutionState.SCHEDULED: 2}), 2, id="a later stage"
        ),
        pytest.param(
            job({ExecutionState.RUNNING: 1, ExecutionState.SCHEDULED: 1}),
            0,
            id="goes on with what it has",
        ),
        pytest.param(job({ExecutionState.CREATED: 2}), 0, id="not yet scheduled"),
    ],
)
def test_subtasks_wait_for_slots_while_none_of_the_job_runs(
    details: JobDetails, waiting: int
) -> None:
    assert waiting_for_slots(details) == waiting


def test_a_job_that_soon_has_its_slots_says_nothing() -> None:
    assert Watched().after(WAITING, WAITING, RUNNING, RUNNING) == ""


def test_a_job_that_waits_long_says_once_how_many_subtasks_wait_and_where_to_look() -> None:
    said = Watched().after(WAITING, WAITING, WAITING, WAITING, WAITING)
    assert said == (
        "job 'wc' waits for slots: none of its 3 subtasks has one yet; look there (it fails "
        "when slot.request.timeout is over)\n"
    )


def test_a_job_that_said_it_waits_says_when_it_goes_on_and_begins_anew_after_a_restart() -> None:
    said = (
        Watched()
        .after(WAITING, WAITING, WAITING, RUNNING, WAITING, RUNNING, WAITING, WAITING, WAITING)
        .splitlines()
    )
    assert [line.split(":")[0] for line in said] == [
        "job 'wc' waits for slots",
        "job 'wc' has its slots now",
        "job 'wc' waits for slots",
    ]
