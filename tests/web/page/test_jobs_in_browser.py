"""The page over real jobs: one that is held up by its sink, one that has started again, one over
https, and those of the history."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.common.job_client import JobClient
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.options.history import HistoryConfig
from flinkpy.datastream import MapFunction, RuntimeContext
from flinkpy.testing.environment import embedded_environment
from flinkpy.web.history.history_server import history_server
from tests.ports import free_port
from tests.waiting import PATIENCE_S
from tests.web.certificates import Authority
from tests.web.page.browser import DESK, PHONE, Visit, visit
from tests.web.rest import waiting_job
from tests.web.test_history import divide

AGAIN = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "2",
    "restart-strategy.fixed-delay.delay": "1 ms",
}
NEVER = {"restart-strategy.type": "none"}


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, Any]]:
    """Of one cluster for these tests."""
    yield {"rest.enabled": "true", "rest.port": str(free_port()), "rest.token": "right"}
    stop_embedded()


@contextmanager
def running(
    options: dict[str, Any], build: Callable[[Any], None], name: str
) -> Iterator[JobClient]:
    """A job, cancelled in the end."""
    env = embedded_environment(options)
    build(env)
    client = env.execute_async(name)
    try:
        yield client
    finally:
        client.cancel().result(PATIENCE_S)


def looking(browser: Any, options: dict[str, Any], **more: Any) -> Any:
    return visit(browser, f"http://localhost:{options['rest.port']}", **more)


def squared_in_vain(number: int) -> int:
    """Takes a while."""
    for each in range(20_000):
        number ^= each * each
    return number


def slow_at_the_sink(env: Any) -> None:
    """Two vertices: the source gives what the sink's vertex cannot keep up with."""
    env.from_sequence(0, 10**12).set_parallelism(1).rebalance().map(squared_in_vain).name(
        "slow"
    ).set_parallelism(2).sink_to(DiscardingSink())


def card(found: Visit, name: str) -> Any:
    return found.page.locator(".card").filter(has_text=name)


@pytest.mark.wide
def test_the_vertex_that_holds_up_its_source_is_called_the_bottleneck(
    browser: Any, options: dict[str, Any]
) -> None:
    with (
        running(options, slow_at_the_sink, "held up") as client,
        looking(browser, options) as found,
    ):
        found.go(f"/jobs/{client.get_job_id()}")
        found.page.locator(".card.high").filter(has_text="Source").wait_for()
        card(found, "slow").get_by_text("bottleneck").wait_for()
        assert card(found, "Source").get_by_text("bottleneck").count() == 0
        found.page.locator(".edge.high").wait_for(state="attached")
        card(found, "Source").click()
        found.page.get_by_role("link", name="Back-pressure", exact=True).click()
        found.page.locator(".level.high").first.wait_for()
        assert found.faults == []


GO_ON = threading.Event()


class Picky(MapFunction):
    """Two attempts fail, the third one waits until the test lets it go."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value: int) -> int:
        if self.attempt < 2:
            raise ValueError(f"no good: {value}")
        GO_ON.wait(PATIENCE_S)
        return value


@pytest.mark.wide
def test_a_job_that_has_started_again_shows_its_attempts_and_why_they_failed(
    browser: Any, options: dict[str, Any]
) -> None:
    def build(env: Any) -> None:
        env.from_collection([7]).map(Picky()).name("picky").sink_to(DiscardingSink())

    GO_ON.clear()
    with running({**options, **AGAIN}, build, "twice") as client:
        try:
            with looking(browser, options) as found:
                see_three_attempts(found, f"/jobs/{client.get_job_id()}")
        finally:
            GO_ON.set()


def see_three_attempts(found: Visit, job: str) -> None:
    found.go(job)
    card(found, "picky").get_by_text("RUNNING").wait_for()
    card(found, "picky").click()
    found.see_role("link", "Subtasks").click()
    row = found.page.get_by_role("table", name="Subtasks").get_by_role("row").nth(1)
    row.locator("[data-title=Attempt]").get_by_text("3", exact=True).wait_for()
    found.go(f"{job}/exceptions")
    found.page.locator(".failures > li .times").get_by_text("2").wait_for()  # the same twice
    found.see("ValueError: no good: 7")
    assert "test_jobs_in_browser.py" in found.page.locator(".failures .place").first.inner_text()
    found.go(f"{job}/timeline")
    found.page.locator(".lane button").first.click()
    found.see("subtask 0 attempt 3")
    lane = found.page.locator(".lane.inner .track")
    assert [
        lane.get_by_text(re.compile(f"attempt {number} FAILED .*no good: 7")).count()
        for number in (1, 2, 3)
    ] == [1, 1, 0]
    assert lane.get_by_text("attempt 3 RUNNING").count() == 1
    found.page.locator(".mark").nth(1).wait_for(state="attached")
    assert found.faults == []


@pytest.mark.wide
def test_the_page_is_there_over_https(browser: Any, tmp_path: Path) -> None:
    stop_embedded()  # the cluster of the other tests has no certificate
    signed, port = Authority(tmp_path, "authority").sign("server"), free_port()
    options = {
        "rest.enabled": "true",
        "rest.port": str(port),
        "rest.token": "right",
        "security.ssl.rest.enabled": "true",
        "security.ssl.rest.keystore": str(signed.certificate),
        "security.ssl.rest.key": str(signed.key),
    }
    try:
        # Chromium does not know the tests' authority
        with (
            waiting_job(options),
            visit(browser, f"https://localhost:{port}", ignore_https_errors=True) as found,
        ):
            found.see_role("link", "waiting").click()
            card(found, "numbers").get_by_text("RUNNING").wait_for()
            assert found.page.url.startswith(f"https://localhost:{port}/#/jobs/")
            assert found.page.evaluate("isSecureContext")
            assert found.faults == []
    finally:
        stop_embedded()


@pytest.mark.wide
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_the_history_shows_jobs_whose_cluster_is_gone(
    browser: Any, tmp_path: Path, size: dict[str, int]
) -> None:
    folder = tmp_path / "archives"
    try:
        finished, failed = divide(folder, [1], **NEVER), divide(folder, [0])
    finally:
        stop_embedded()
    options = {
        "historyserver.archive.fs.dir": str(folder),
        "historyserver.web.port": 0,
        "rest.token": "right",
    }
    server = history_server(HistoryConfig.of(options), SYSTEM_CLOCK)
    try:
        with visit(browser, server.url, size=size) as found:
            ended = found.page.get_by_role("table", name="Ended jobs")
            for state in ("FINISHED", "FAILED"):
                ended.get_by_text(state, exact=True).wait_for()
            found.go(f"/jobs/{finished}")
            card(found, "Source").get_by_text("FINISHED").wait_for()
            assert found.page.get_by_role("button", name="Cancel …").count() == 0
            card(found, "Source").click()
            found.see("This vertex had ended before this page looked")
            found.go(f"/jobs/{failed}/exceptions")
            found.see("ZeroDivisionError")
            found.go(f"/jobs/{failed}/timeline")
            found.page.locator(".lane button").first.click()
            found.see("subtask 0 attempt 2")
            found.go(f"/jobs/{failed}/checkpoints")
            found.see("How they are taken")
            places = found.page.get_by_role("navigation", name="Places").get_by_role("link")
            assert places.all_inner_texts() == ["Jobs"]  # there are no processes
            assert found.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert [fault for fault in found.faults if "404" not in fault] == []
    finally:
        server.stop()
