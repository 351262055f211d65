"""The page of a session on a real Ray: a job in workers, and what these tell of themselves."""

from __future__ import annotations

import re
import signal
from typing import Any

import pytest

from tests.cluster.ray_fixture import RayCluster, finish
from tests.web.page.browser import visit

pytestmark = [pytest.mark.wide, pytest.mark.ray, pytest.mark.timeout(400)]

JOB = """
from flinkpy.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
env.from_sequence(0, 10**15).map(lambda n: n * n).name("squares").add_sink(lambda value: None)
env.execute("squared on Ray")
"""


def test_the_page_of_a_session_shows_its_job_and_its_workers(browser: Any, ray: RayCluster) -> None:
    options = [
        "rest.enabled=true",
        "rest.port=0",
        "rest.token=right",
        "taskmanager.numberOfTaskSlots=1",
    ]
    started = ray.flinkpy(
        "session", "start", *[part for option in options for part in ("-D", option)], "seen"
    )
    address = re.search(r"http://localhost:\d+", started.out)
    assert address is not None, started
    program = ray.start(
        "run", "-t", "ray-session", "-D", "cluster.id=seen", ray.job(JOB, "seen.py")
    )
    try:
        with visit(browser, address[0]) as found:
            found.see_role("link", "squared on Ray").click()
            found.page.locator(".card").filter(has_text="squares").get_by_text("RUNNING").wait_for()
            found.page.get_by_role("link", name="TaskExecutors", exact=True).first.click()
            rows = found.page.get_by_role("table", name="TaskExecutors").locator("tbody tr")
            rows.nth(1).wait_for()
            assert rows.count() == 2
            rows.first.get_by_role("link").first.click()
            found.see("CPU time")
            found.see_role("link", "Logs").click()
            found.page.get_by_role("table", name="Log files").get_by_role("link").first.wait_for()
            assert found.faults == []
    finally:
        program.send_signal(signal.SIGINT)
        finish(program)
        ray.flinkpy("session", "stop", "seen")
