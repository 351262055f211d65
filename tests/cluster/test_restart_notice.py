from __future__ import annotations

import pytest

from flinkpy.actors.gateways import JobDetails, JobOverview
from flinkpy.cluster.display.restart_notice import RestartNotice
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import JobState


def job(restarts: int, failure: str = "", checkpoint_id: int | None = None) -> JobDetails:
    return JobDetails(
        JobOverview(JobId("j"), "wc", JobState.RUNNING, 0, None),
        (),
        None,
        restarts,
        failure,
        checkpoint_id,
    )


def test_a_failure_that_comes_again_is_told_in_full_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    notice = RestartNotice()
    told = []
    for details in (
        job(0),
        job(1, "ValueError: no\n  in Map (1/1)#0"),
        job(1, "ValueError: no\n  in Map (1/1)#0"),
        job(3, "ValueError: no\n  in Map (1/1)#2", 7),
        job(4, "KeyError: 5", 8),
    ):
        notice.update(details)
        told.append(capsys.readouterr().err)
    assert told == [
        "",
        ("job 'wc' has restarted once, the last time anew: ValueError: no\n  in Map (1/1)#0\n"),
        "",
        "job 'wc' has restarted 3 times, the last time from checkpoint 7: the same failure again\n",
        "job 'wc' has restarted 4 times, the last time from checkpoint 8: KeyError: 5\n",
    ]


def test_the_display_beside_it_is_drawn_and_closed() -> None:
    class Drawn:
        interval_s = 0.5
        calls: list[str] = []

        def update(self, details: JobDetails) -> None:
            self.calls.append(details.overview.name)

        def close(self) -> None:
            self.calls.append("closed")

    notice = RestartNotice(Drawn())
    assert notice.interval_s == 0.5
    notice.update(job(0))
    notice.close()
    assert Drawn.calls == ["wc", "closed"]
