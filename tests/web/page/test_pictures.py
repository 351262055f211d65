"""The pictures of the tutorial: taken of the programs that it runs, with what its text says of
them. ``make pictures`` puts them into ``docs``."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.embedded import stop_embedded
from tests.ports import free_port
from tests.test_readme import ROOT, blocks
from tests.waiting import eventually
from tests.web.page.browser import Visit, visit

pytestmark = pytest.mark.wide

TUTORIAL = ROOT / "docs" / "tutorial.md"
PICTURES = ROOT / "docs" / "pictures"
SIZE = {"width": 960, "height": 800}
LARGEST = 100_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wanted = os.environ.get("PICTURES")
    return tmp_path_factory.mktemp("pictures") if wanted is None else Path(wanted)


@contextmanager
def opened(browser: Any, address: str) -> Iterator[Visit]:
    """The page of a program that has just been started."""
    eventually(lambda: answers(address))
    with visit(browser, address, size=SIZE) as found:
        yield found


def answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address, timeout=10).close()
    except OSError:
        return False
    return True


def take(found: Visit, picture: Path, height: int) -> None:
    picture.parent.mkdir(parents=True, exist_ok=True)
    found.page.mouse.move(0, 0)  # nothing is pointed at
    found.page.set_viewport_size({**SIZE, "height": height})
    found.page.screenshot(path=str(picture))
    assert found.faults == []
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def after_the_tutorial(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of the page where the tutorial's blocks have run."""
    stop_embedded()
    port = free_port()
    for name, value in (("ENABLED", "true"), ("PORT", str(port)), ("TOKEN", "right")):
        monkeypatch.setenv(f"FLINKPY_REST_{name}", value)
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {"__name__": "__main__"}
    for code, _ in blocks(TUTORIAL):
        exec(compile(code, TUTORIAL.name, "exec"), names)
    yield f"http://localhost:{port}"
    stop_embedded()


@pytest.fixture
def while_nothing_is_lost(tmp_path: Path) -> Iterator[str]:
    """The address of the page while the tutorial's example runs; it is interrupted in the end."""
    port = free_port()
    options = [
        part
        for option in ("rest.enabled=true", f"rest.port={port}", "rest.token=right")
        for part in ("-D", option)
    ]
    command = [
        sys.executable,
        "-m",
        "flinkpy",
        "run",
        "-t",
        "embedded",
        "-p",
        "2",
        *options,
        "examples/nothing_is_lost.py",
        "--numbers",
        "100000000",
        "--folder",
        str(tmp_path),
    ]
    with (tmp_path / "said").open("w") as said:
        program = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said)
    try:
        yield f"http://localhost:{port}"
    finally:
        program.send_signal(signal.SIGINT)
        program.wait(60)


def test_the_tutorials_job_is_seen_when_it_has_ended(
    browser: Any, after_the_tutorial: str, folder: Path
) -> None:
    with visit(browser, after_the_tutorial, size=SIZE) as found:
        found.see_role("link", "delays and weather").click()
        found.page.locator(".head").get_by_text("FINISHED").wait_for()
        cards = found.page.locator(".card")
        cards.nth(3).wait_for()
        assert (cards.count(), found.page.locator(".edge path").count()) == (4, 3)
        assert [card.split("\n")[0] for card in cards.all_inner_texts()].count(
            "Source: Parquet Source"
        ) == 2
        # behind the operators
        assert sorted(text.split("\n").index("FINISHED") for text in cards.all_inner_texts()) == [
            1,
            2,
            3,
            3,
        ]
        assert found.page.locator(".card", has_text="Join").inner_text().split("\n")[:3] == [
            "Join",
            "Select",
            "Sink: Writer",
        ]
        take(found, folder / "graph.png", 480)


@pytest.mark.slow
def test_a_running_job_is_seen_with_its_rates_and_its_checkpoints(
    browser: Any, while_nothing_is_lost: str, folder: Path
) -> None:
    with opened(browser, while_nothing_is_lost) as found:
        found.see_role("link", "nothing is lost").click()
        found.page.locator(".head").get_by_text("RUNNING").wait_for()
        found.see_role("link", "Checkpoints").click()
        found.page.get_by_role("table", name="Checkpoints, the newest first").get_by_text(
            "COMPLETED"
        ).nth(5).wait_for()
        for says in ("How they are taken", "Latest", "In sum"):
            found.see(says)
        take(found, folder / "checkpoints.png", 465)
        found.see_role("link", "Graph").click()
        found.page.locator(".card").first.click()
        found.see("Records per second")
        found.page.evaluate("() => { window.seen = new Set() }")  # then the charts have some points
        found.page.wait_for_function(
            "() => window.seen.add(document.querySelector('.head').innerText).size > 8"
        )
        for card, figure in (
            (0, "out [1-9]"),
            (1, "in [1-9]"),
            (1, "busy [1-9]"),
            (1, "back-pressured [0-9]"),
        ):
            found.page.wait_for_function(
                f"() => document.querySelectorAll('.card')[{card}].innerText.match(/{figure}/)"
            )
        take(found, folder / "running.png", 750)


def test_the_pictures_are_small_and_are_those_that_the_tutorial_shows() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(pictures/([\w-]+\.png)\)", TUTORIAL.read_text())
    assert (
        {path.name for path in PICTURES.iterdir() if path.is_file()}
        == set(shown)
        == {"graph.png", "running.png", "checkpoints.png"}
    )
    assert all((PICTURES / name).stat().st_size < LARGEST for name in shown)
