"""The page over a real cluster: jobs that run, are held up, fail, start again, have finished; who
may see it."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.testing.connectors.paced_source import PacedSource
from flinkpy.testing.environment import embedded_environment
from tests.ports import free_port
from tests.web.page.browser import Visit, visit

PAGE = Path(__file__).resolve().parents[3] / "flinkpy" / "web" / "page"


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, Any]]:
    yield {"rest.enabled": "true", "rest.port": str(free_port()), "rest.token": "right"}
    stop_embedded()


@pytest.fixture(scope="module")
def address(options: dict[str, Any]) -> Iterator[str]:
    """Of a cluster with a job that waits for a checkpoint."""
    env = embedded_environment({**options, "execution.checkpointing.interval": "1 h"})
    env.from_source(
        PacedSource([(number, number) for number in range(1000)], 10, 1), source_name="numbers"
    ).sink_to(DiscardingSink())
    client = env.execute_async("held")
    yield f"http://localhost:{options['rest.port']}"
    client.cancel().result(30)


@pytest.fixture
def found(browser: Any, address: str) -> Iterator[Visit]:
    with visit(browser, address) as tab:
        yield tab


def started(options: dict[str, Any], name: str, numbers: list[int], **more: str) -> str:
    env = embedded_environment({**options, **more})
    env.from_collection(numbers).map(lambda number: 10 // number).name("ten over").sink_to(
        DiscardingSink()
    )
    return str(env.execute_async(name).get_job_id())


def test_a_running_job_is_seen_with_its_graph_and_subtasks(found: Visit) -> None:
    found.see_role("link", "held").click()
    found.see("Savepoint …")
    found.page.locator(".card").first.click()
    for view, says in (
        ("Subtasks", "Records in"),
        ("Back-pressure", "Of the last seconds"),
        ("Metrics", "numRecordsIn"),
        ("Timeline", "Failures"),
        ("Configuration", "rest.token"),
        ("Checkpoints", "How they are taken"),
        ("Exceptions", "No failures"),
    ):
        found.page.get_by_role("link", name=view, exact=True).click()
        found.page.locator("main").get_by_text(says).first.wait_for(state="attached")
    assert "right" not in found.page.locator("main").inner_text()
    assert found.faults == []


def test_a_failed_job_names_the_users_line(found: Visit, options: dict[str, Any]) -> None:
    job = started(options, "fails", [1, 0], **{"restart-strategy.type": "none"})
    found.go(f"/jobs/{job}/exceptions")
    found.see("ZeroDivisionError")
    found.see("test_page_in_browser.py")
    found.page.locator("summary", has_text="The scheduler's last").click()
    found.page.get_by_role("table").get_by_text("StartScheduling").wait_for()
    found.page.locator(".head").get_by_text("FAILED").wait_for()
    assert found.faults == []


@pytest.mark.wide
def test_a_job_that_starts_again_is_shown_as_restarting(
    found: Visit, options: dict[str, Any]
) -> None:
    job = started(
        options,
        "again",
        [0],
        **{
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "9",
            "restart-strategy.fixed-delay.delay": "1 h",
        },
    )
    found.go(f"/jobs/{job}/timeline")
    found.page.locator(".head").get_by_text("RESTARTING").wait_for()
    found.page.locator(".mark").first.wait_for(state="attached")
    found.see_role("button", "Cancel …").click()
    found.see_role("button", "Cancel the job").click()
    found.page.locator(".head").get_by_text("CANCELED").wait_for()
    assert found.faults == []


@pytest.mark.wide
def test_a_finished_job_is_among_the_ended(found: Visit, options: dict[str, Any]) -> None:
    job = started(options, "short", [1, 2])
    row = found.page.get_by_role("table", name="Ended jobs").get_by_role("row", name="short")
    row.get_by_text("FINISHED", exact=True).wait_for()
    found.go(f"/jobs/{job}")
    found.page.locator(".card").first.wait_for()
    assert found.page.get_by_role("button", name="Cancel …").count() == 0
    assert found.faults == []


@pytest.mark.wide
def test_the_token_leaves_the_address_and_is_asked_for_where_it_is_missing(
    browser: Any, address: str
) -> None:
    with visit(browser, address) as found:
        found.see("held")
        assert "right" not in found.page.url
    with visit(browser, address, token=None) as found:
        found.page.get_by_label("This cluster is asked with a token").fill("right")
        found.see_role("button", "Show the cluster").click()
        found.see("held")
    with visit(browser, address, token="wrong") as found:
        found.see_role("button", "Show the cluster")


def test_the_pages_files_need_no_token_and_nothing_beside_them_is_given(
    options: dict[str, Any], address: str
) -> None:
    def status(path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("localhost", int(options["rest.port"]), timeout=30)
        connection.request("GET", path)
        response = connection.getresponse()
        found = response.status, response.getheader("content-security-policy") or ""
        connection.close()
        return found

    for path in ("/", "/page/app.js", "/page/vendor/dagre.js"):
        code, policy = status(path)
        assert (code, "default-src 'none'" in policy) == (200, True)
    for path in (
        "/page/../rest_server.py",
        "/page/%2e%2e/guard.py",
        "/page//etc/passwd",
        "/page/../jobs",
        "/page/",
    ):
        assert status(path)[0] == 404, path
    assert status("/jobs")[0] == status("/jobs/a/loads")[0] == 401


def test_what_is_kept_from_others_is_kept_with_its_licence() -> None:
    told = (PAGE / "vendor" / "README.md").read_text()
    kept = {path.name for path in (PAGE / "vendor").iterdir() if path.suffix in (".js", ".css")}
    assert {name for name in kept if f"`{name}`" not in told} == set()
    assert {path.name for path in (PAGE / "vendor").glob("LICENSE-*")} == {
        f"LICENSE-{name}.txt" for name in ("preact", "htm", "dagre", "uplot")
    }
