"""What people look for first: why a job failed, who is waited for, which process it is, how to go
on from a savepoint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.testing.environment import embedded_environment
from tests.ports import free_port
from tests.waiting import eventually
from tests.web.page.browser import PHONE, Visit, visit
from tests.web.page.made_up import MadeUp, serving
from tests.web.rest import Rest, held_job, waiting_job

pytestmark = pytest.mark.finding("newcomers page")
TIMES, DASH = "\N{MULTIPLICATION SIGN}", "\N{EN DASH}"
AGAIN = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "1 ms",
}


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Of one cluster for these tests."""
    yield {
        "rest.enabled": "true",
        "rest.port": str(free_port()),
        "rest.token": "right",
        "execution.checkpointing.interval": "1 h",
        "execution.checkpointing.dir": str(tmp_path_factory.mktemp("checkpoints")),
        "taskmanager.network.batch.max-records": "1",
    }
    stop_embedded()


@pytest.fixture(scope="module")
def failed(options: dict[str, Any]) -> str:
    """The id of a job that has started again three times, and has failed."""
    env = embedded_environment({**options, **AGAIN}, parallelism=2)
    env.from_collection([1, 2, 3]).map(lambda number: 1 // (number - 3)).name("one over").sink_to(
        DiscardingSink()
    )
    job = str(env.execute_async("failing").get_job_id())
    eventually(lambda: asked(options).get(f"/jobs/{job}/status")["status"] == "FAILED")
    return job


def asked(options: dict[str, Any]) -> Rest:
    return Rest(int(options["rest.port"]), token="right")


def looking(browser: Any, options: dict[str, Any], where: str = "", **more: Any) -> Any:
    return visit(browser, f"http://localhost:{options['rest.port']}", where=where, **more)


def colour_of(found: Visit, selector: str) -> str:
    return str(
        found.page.locator(selector).first.evaluate(
            "each => getComputedStyle(each).getPropertyValue('--level').trim()"
        )
    )


@pytest.mark.parametrize("size", [None, PHONE], ids=["desk", "phone"])
def test_a_failed_job_opens_with_its_error_and_a_red_vertex(
    browser: Any, options: dict[str, Any], failed: str, size: dict[str, int] | None
) -> None:
    with looking(
        browser, options, f"/jobs/{failed}", **({} if size is None else {"size": size})
    ) as found:
        error = found.page.locator(".why").get_by_text("ZeroDivisionError")
        error.first.wait_for()
        found.page.locator(".why .place").get_by_text("test_what_people_look_for.py").wait_for()
        card = found.page.locator(".card.broken").filter(has_text="one over")
        card.wait_for()
        assert error.first.bounding_box()["y"] < card.bounding_box()["y"]
        # that of failures
        assert card.evaluate("each => getComputedStyle(each).borderLeftColor") == "rgb(176, 28, 28)"
        assert found.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert found.faults == []


@pytest.mark.wide
def test_restarts_and_the_last_failure_are_in_the_head_and_in_the_list(
    browser: Any, options: dict[str, Any], failed: str
) -> None:
    with looking(browser, options, f"/jobs/{failed}") as found:
        found.page.locator(".restarts").get_by_text("3 restarts").wait_for()
        found.page.locator(".restarts").get_by_text(
            "ZeroDivisionError: integer division or modulo by zero"
        ).wait_for()
        found.go("/jobs")
        row = (
            found.page.get_by_role("table", name="Ended jobs")
            .get_by_role("row")
            .filter(has_text="failing")
        )
        row.locator("[data-title=Restarts]").get_by_text("3", exact=True).wait_for()
        row.locator("[data-title='Last failure']").get_by_text("ZeroDivisionError").click()
        found.page.wait_for_function("() => location.hash.endsWith('/exceptions')")
        assert found.faults == []


@pytest.mark.wide
def test_equal_failures_are_one_that_leads_to_its_task_executor(
    browser: Any, options: dict[str, Any], failed: str
) -> None:
    with looking(browser, options, f"/jobs/{failed}/exceptions") as found:
        found.page.locator(".failures > li").get_by_text(f"{TIMES} 4").wait_for()
        assert found.page.locator(".failures > li").count() == 1
        name = found.page.locator(".failures a").first.inner_text()
        assert [name] == [
            each["id"] for each in asked(options).get("/taskmanagers")["taskmanagers"]
        ]
        found.page.locator(".failures a").first.click()
        found.page.get_by_role("heading", name=name).wait_for()


@pytest.mark.wide
def test_the_restart_strategy_in_force_is_named(
    browser: Any, options: dict[str, Any], failed: str
) -> None:
    with looking(browser, options, f"/jobs/{failed}/configuration") as found:
        found.see("fixed-delay: 3 restarts at most, each after 1 ms")


@pytest.mark.wide
def test_a_job_with_a_checkpoint_that_is_held_up(browser: Any, options: dict[str, Any]) -> None:
    """The table of vertices, who has not acknowledged, the processes, charts, a chosen metric: of
    one job, which takes a while to start."""
    with held_job(options) as client:
        rest, job = asked(options), str(client.get_job_id())
        eventually(lambda: rest.get(f"/jobs/{job}")["status-counts"]["RUNNING"] == 2)
        assert rest.ask(f"/jobs/{job}/checkpoints", "POST", {}).status == 202
        eventually(lambda: rest.get(f"/jobs/{job}/checkpoints")["counts"]["in_progress"] == 1)
        with looking(browser, options, f"/jobs/{job}") as found:
            see_all_vertices(found)
            see_who_is_waited_for(found, rest, job)
            see_the_process(found, job)
            see_charts(found, job)
            assert found.faults == []


def see_all_vertices(found: Visit) -> None:
    table = found.page.get_by_role("table", name="All vertices")
    source, last = table.get_by_role("row").nth(1), table.get_by_role("row").nth(2)
    source.get_by_text("Source: Sequence Source → Map").wait_for()
    last.locator("[data-title=Watermark]").get_by_text("none yet").wait_for()
    assert last.locator("[data-title=Parallelism]").inner_text() == "2"
    titles = table.get_by_role("columnheader").all_inner_texts()
    assert titles == [
        "Vertex",
        "State",
        "Parallelism",
        "Records in",
        "Records out",
        "Bytes in",
        "Bytes out",
        "A second",
        "Watermark",
    ]


def see_who_is_waited_for(found: Visit, rest: Rest, job: str) -> None:
    [pending] = rest.get(f"/jobs/{job}/checkpoints")["history"]
    waited = rest.get(f"/jobs/{job}/checkpoints/details/{pending['id']}")["tasks"]
    assert 0 in next(each["missing"] for each in waited.values() if each["num_subtasks"] == 1)
    found.go(f"/jobs/{job}/checkpoints")
    duration = found.page.get_by_role("table", name="Checkpoints, the newest first").locator(
        "[data-title=Duration]"
    )
    duration.get_by_text(re.compile(r"\d (ms|s) so far")).wait_for()
    found.go(f"/jobs/{job}/checkpoints/{pending['id']}")
    waits = found.page.locator(".waits")
    waits.get_by_text("Not acknowledged yet").wait_for()
    assert "Source: Sequence Source → Map: its only subtask" in waits.inner_text()


def see_the_process(found: Visit, job: str) -> None:
    found.go("/taskmanagers")
    row = found.page.get_by_role("table", name="TaskExecutors").get_by_role("row").nth(1)
    row.locator("[data-title=CPU]").get_by_text(re.compile(r"\d+ % of \d+")).wait_for()
    row.locator("[data-title='Memory used']").get_by_text(re.compile(r"\d [MG]B of ")).wait_for()
    assert int(row.locator("[data-title=Process]").inner_text()) > 1
    assert row.locator("[data-title=Host]").inner_text() != DASH
    row.locator("[data-title=Jobs]").get_by_text("held").click()
    found.page.wait_for_function("job => location.hash.endsWith(job)", arg=job)


PIXELS = """canvas => {
  const [width, height] = [canvas.width, canvas.height], data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  let found = 0;
  for (let at = 0; at < data.length; at += 4) if (data[at] < 60 && data[at + 2] > 150 && data[at + 3] > 200) found += 1;
  return found;
}"""


def see_charts(found: Visit, job: str) -> None:
    found.page.locator(".card").last.click()
    found.page.get_by_text("Records per second").wait_for()
    # a line of the colour of "in", at once
    eventually(lambda: found.page.locator(".chart canvas").first.evaluate(PIXELS) > 50)
    assert re.search(
        r"in [\d.]+/s\s+out [\d.]+/s", found.page.locator(".chart .values").first.inner_text()
    )
    found.page.get_by_role("link", name="Subtasks", exact=True).click()
    executor = (
        found.page.get_by_role("table", name="Subtasks")
        .locator("[data-title=TaskExecutor] a")
        .first
    )
    assert executor.inner_text().startswith("taskexecutor-")
    found.page.get_by_role("link", name="Metrics", exact=True).click()
    found.page.get_by_role("searchbox", name="Search metrics").fill("currentInputWatermark")
    found.page.get_by_role("table", name="Metrics").get_by_text("none yet").first.wait_for()
    found.page.get_by_role("searchbox", name="Search metrics").fill("1.numRecordsIn")
    found.page.get_by_role("button", name="Chart of 1.numRecordsIn", exact=True).click()
    found.page.locator(".chart figcaption").get_by_text("1.numRecordsIn").wait_for()
    found.page.locator(".chart .values").get_by_text(re.compile(r"now \d")).wait_for()
    assert "-9223372036854775808" not in found.page.inner_text("main")


@pytest.mark.wide
def test_after_a_savepoint_there_is_the_command_that_goes_on_from_it(
    browser: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    with (
        waiting_job(options) as client,
        looking(browser, options, permissions=["clipboard-read", "clipboard-write"]) as found,
    ):
        found.go(f"/jobs/{client.get_job_id()}")
        found.see_role("button", "Savepoint …").click()
        found.page.get_by_label("Folder").fill(str(tmp_path))
        found.see_role("button", "Take it").click()
        found.see_role("button", "Done")
        found.see_role("button", "Copy the command").click()
        found.see("Copied")
        [savepoint] = tmp_path.iterdir()
        assert (
            found.page.evaluate("navigator.clipboard.readText()")
            == f"flinkpy run -s {savepoint} PROGRAM"
        )
        found.see_role("button", "Copy the savepoint's place").click()
        found.see_role("button", "Done").click()
        assert found.page.locator("dialog[open]").count() == 0
        assert found.faults == []


@pytest.mark.wide
def test_a_savepoint_that_cannot_be_is_told_without_a_command(
    browser: Any, options: dict[str, Any]
) -> None:
    with (
        waiting_job(options) as client,
        looking(browser, options, f"/jobs/{client.get_job_id()}") as found,
    ):
        found.see_role("button", "Savepoint …").click()
        found.page.get_by_label("Folder").fill("/dev/null/no")
        found.see_role("button", "Take it").click()
        found.see("SavepointError: the savepoint cannot be written to /dev/null/no")
        assert found.page.get_by_role("button", name="Copy the command").count() == 0


@pytest.mark.wide
def test_a_wrong_token_is_told_from_none(
    browser: Any, options: dict[str, Any], failed: str
) -> None:
    wrong = "The token is wrong"
    with looking(browser, options, token="wrong") as found:
        found.see(wrong)
    with looking(browser, options, token=None) as found:
        found.see("This cluster is asked with a token")
        assert found.page.get_by_text(wrong).count() == 0


@pytest.mark.wide
def test_metrics_that_are_not_told_yet_and_executors_without_figures_are_dashes(
    browser: Any,
) -> None:
    """As with a cluster that does not have flinkpy's own routes."""
    with serving(MadeUp()) as address, visit(browser, address, where="/taskmanagers") as found:
        row = found.page.get_by_role("table", name="TaskExecutors").get_by_role("row").nth(1)
        row.get_by_text("worker-1").first.wait_for()
        assert (
            row.locator("[data-title=CPU]").inner_text()
            == row.locator("[data-title=Jobs]").inner_text()
            == DASH
        )
