"""Flink's own page shows jobs of ours, and cancels them. Its files come out of Flink's jar: `make
test-flink` brings it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.embedded import stop_embedded
from tests.ports import free_port
from tests.waiting import eventually
from tests.web.flinks_page_server import FlinksPage, flinks_page
from tests.web.page.browser import chromium, visit
from tests.web.rest import Rest, waiting_job
from tests.web.test_flinks_command_line import JARS

OPTIONS = {
    "rest.enabled": "true",
    "rest.authentication": "NONE",
    "execution.checkpointing.interval": "1 h",
}
SKELETON = "nz-skeleton"  # grey bars where an answer is waited for
needs_jar = pytest.mark.skipif(
    JARS is None, reason="needs the jars of the wheel apache-flink-libraries: make test-flink"
)


@pytest.fixture
def rest() -> Iterator[Rest]:
    rest = Rest(free_port())
    try:
        yield rest
    finally:
        stop_embedded()


@pytest.fixture
def job(rest: Rest) -> Iterator[str]:
    with waiting_job({**OPTIONS, "rest.port": str(rest.port)}) as client:
        job_id = str(client.get_job_id())
        eventually(lambda: rest.get(f"/jobs/{job_id}")["status-counts"]["RUNNING"] == 1)
        yield job_id


@pytest.fixture
def page(rest: Rest) -> Iterator[FlinksPage]:
    assert JARS is not None
    [jar] = Path(JARS).glob("flink-dist-*.jar")
    with flinks_page(jar, rest.port) as page:
        yield page


@needs_jar
@pytest.mark.finding("faults 10")
def test_flinks_page_shows_a_running_job_and_cancels_it(
    page: FlinksPage, rest: Rest, job: str
) -> None:
    vertex = rest.get(f"/jobs/{job}")["vertices"][0]["id"]
    [worker] = [each["id"] for each in rest.get("/taskmanagers")["taskmanagers"]]
    views = {
        "/overview": "waiting",
        "/application/running": "waiting",
        f"/job/running/{job}/overview": "Source: numbers",
        f"/job/running/{job}/overview/{vertex}/detail": "Subtasks",
        f"/job/running/{job}/configuration": "Object Reuse Mode",
        f"/job/running/{job}/timeline": "Timeline",
        f"/job/running/{job}/exceptions": "Root Exception",
        f"/job/running/{job}/checkpoints": "Checkpoint Counts",
        "/task-manager": worker,
        f"/task-manager/{worker}/metrics": "JVM Heap",
        "/job-manager/metrics": "JVM Memory",
        "/job-manager/config": "rest.port",
    }
    with chromium() as browser, visit(browser, page.url, token=None) as tab:
        for where, text in views.items():
            tab.go(where)
            tab.see(text)
            eventually(lambda: _count(tab.page, SKELETON) == 0)
        assert "- / -" not in tab.page.inner_text("body")
        tab.go(f"/job/running/{job}/overview")
        tab.page.get_by_text("Cancel Job").first.click()
        tab.page.get_by_role("button", name="Yes").first.click()
        eventually(lambda: rest.get(f"/jobs/{job}/status") == {"status": "CANCELED"})
        assert tab.faults == []
    assert page.refused() == []


def _count(tab: Any, selector: str) -> int:
    return int(tab.locator(selector).count())


def test_the_page_is_told_of_applications_memory_and_tasks(rest: Rest, job: str) -> None:
    [application] = rest.get("/applications/overview")["applications"]
    assert {key: application[key] for key in ("id", "name", "status", "end-time", "jobs")} == {
        "id": job,
        "name": "waiting",
        "status": "RUNNING",
        "end-time": -1,
        "jobs": {"RUNNING": 1},
    }
    assert rest.get(f"/applications/{job}")["jobs"][0]["jid"] == job
    assert rest.get(f"/applications/{job}/exceptions")["exceptionHistory"]["entries"] == []
    assert rest.ask("/applications/nosuch").status == 404
    [worker] = rest.get("/taskmanagers")["taskmanagers"]
    assert (worker["assignedTasks"], worker["jobs"]) == (1, [job])
    names = (
        "Status.JVM.Memory.Heap.Used,Status.JVM.Memory.Heap.Max,Status.Flink.Memory.Managed.Total"
    )
    for process in ("/jobmanager", f"/taskmanagers/{worker['id']}"):
        used, largest, managed = [
            int(each["value"]) for each in rest.get(f"{process}/metrics?get={names}")
        ]
        assert 0 < used < largest
        assert (managed > 0) == (process != "/jobmanager")
    assert rest.get("/taskmanagers/figures")["taskmanagers"][0]["rss"] > 0


@pytest.mark.finding("faults 10")
@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Referer": "http://evil.example/", "User-Agent": "Mozilla/5.0"},
        {"User-Agent": "Mozilla/5.0"},
        {"Referer": "http://[x"},
    ],
)
def test_another_site_does_not_cancel_a_job_though_no_token_is_asked_for(
    rest: Rest, job: str, headers: dict[str, str]
) -> None:
    for route in ("yarn-cancel", "yarn-stop"):
        assert rest.ask(f"/jobs/{job}/{route}", headers=headers).status == 403
    assert rest.get(f"/jobs/{job}/status") == {"status": "RUNNING"}


@pytest.mark.finding("faults 10")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "same-origin"},
        {"Referer": "http://localhost/#/x", "Host": "localhost"},
    ],
)
def test_a_get_cancels_a_job_as_flinks_page_asks_for_it(
    rest: Rest, job: str, headers: dict[str, str]
) -> None:
    assert rest.ask(f"/jobs/{job}/yarn-stop", headers=headers).status == 308
    assert rest.ask(f"/v1/jobs/{job}/yarn-cancel", headers=headers).status == 202
    eventually(lambda: rest.get(f"/jobs/{job}/status") == {"status": "CANCELED"})
