"""The graph in a notebook's cell, in a real browser: of jobs that run, have ended, have failed, and
of one whose cluster does not answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.common import JobClient
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.core.errors import JobExecutionError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.testing.connectors.paced_source import PacedSource
from flinkpy.testing.environment import embedded_environment
from tests.waiting import eventually

CELL = {"width": 900, "height": 700}

# Texts that leave their card, or are hard to read on it (less than 4.5 to 1, as the guidelines of
# the web ask)
POOR = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = colour => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const linear = value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(value => linear(value / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  for (const card of document.querySelectorAll(".card")) {
    const room = card.querySelector(".ground").getBoundingClientRect(), ground = light(getComputedStyle(card.querySelector(".ground")).fill);
    for (const text of card.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      if (box.left < room.left || box.right > room.right || box.top < room.top || box.bottom > room.bottom) found.push(`cut: ${text.textContent}`);
      const [a, b] = [light(getComputedStyle(text).fill), ground].sort((x, y) => y - x);
      if ((a + 0.05) / (b + 0.05) < 4.5) found.push(`pale: ${text.textContent}`);
    }
  }
  return found;
}"""


@pytest.fixture(scope="module", autouse=True)
def _own_cluster() -> Iterator[None]:
    yield
    stop_embedded()


@pytest.fixture
def cell(browser: Any) -> Iterator[Any]:
    """A page that shows what a cell would: ``cell(html, "dark")``."""
    pages = []

    def shown(html: str, colours: str = "light") -> Any:
        pages.append(
            browser.new_page(viewport=CELL, color_scheme=colours, java_script_enabled=True)
        )
        faults: list[str] = []
        pages[-1].on("request", lambda request: faults.append(request.url))
        pages[-1].set_content(f"<body>{html}</body>")
        assert faults == []
        return pages[-1]

    yield shown
    for page in pages:
        page.close()


def html_of(shown: JobClient | StreamExecutionEnvironment) -> str:
    drawn = shown._repr_html_()
    assert drawn is not None
    return drawn


def program(**options: str) -> StreamExecutionEnvironment:
    """Numbers that wait for a checkpoint, read by two consumers, one of them through a long
    chain."""
    env = embedded_environment(options, parallelism=2)
    numbers = env.from_source(
        PacedSource([(number, number) for number in range(1000)], 10, 1), source_name="numbers"
    )
    evens = (
        numbers.filter(lambda number: number % 2 == 0)
        .name("Evens <i>only</i>")
        .key_by(lambda number: number % 5)
    )
    evens.reduce(lambda a, b: a + b).map(str).name("As Text").filter(bool).name(
        "Not Empty"
    ).sink_to(DiscardingSink()).name("Nowhere")
    numbers.rebalance().map(lambda number: number + 1).name(
        "One More Than Each Number That Was Read"
    ).sink_to(DiscardingSink())
    return env


@pytest.mark.wide
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_a_running_job_is_drawn_whole_and_readable(cell: Any, colours: str) -> None:
    client = program(**{"execution.checkpointing.interval": "1 h"}).execute_async("runs & runs")
    try:
        eventually(lambda: html_of(client).count("RUNNING") > 3)
        page = cell(html_of(client), colours)
        assert page.locator(".card").count() == 3
        assert page.locator("path.edge").count() == 2
        assert page.evaluate(POOR) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert "runs & runs · RUNNING" in page.locator(".flinkpy-graph").inner_text()
        assert "Evens <i>only</i>" in page.locator(".flinkpy-graph").text_content()
    finally:
        client.cancel().result(30)


def test_a_job_that_has_ended_or_failed_is_drawn_with_how_it_ended(cell: Any) -> None:
    env = embedded_environment({"restart-strategy.type": "none"})
    env.from_collection([1, 2]).map(lambda number: 2 // number).sink_to(DiscardingSink())
    client = env.execute_async("ends")
    client.get_job_execution_result().result(60)
    page = cell(html_of(client))
    assert "ends · FINISHED" in page.locator(".flinkpy-graph").inner_text()
    assert page.get_by_text("1 FINISHED").count() == 1
    env.from_collection([0]).map(lambda number: 2 // number).sink_to(DiscardingSink())
    client = env.execute_async("fails")
    with pytest.raises(JobExecutionError):
        client.get_job_execution_result().result(60)
    page = cell(html_of(client))
    assert "fails · FAILED" in page.locator(".flinkpy-graph").inner_text()
    assert "ZeroDivisionError" in page.locator("pre").inner_text()
    assert Path(__file__).name in page.locator("pre").inner_text()


@pytest.mark.wide
def test_a_wide_graph_can_be_scrolled_to_its_end(cell: Any) -> None:
    env = embedded_environment(parallelism=2)
    stream = env.from_sequence(0, 9)
    for number in range(8):
        stream = stream.rebalance().map(lambda number: number).name(f"Step {number}")
    page = cell(html_of(env))
    page.mouse.move(200, 60)
    page.mouse.wheel(10_000, 0)
    page.wait_for_function(
        "() => [...document.querySelectorAll('.card "
        ".ground')].at(-1).getBoundingClientRect().right <= innerWidth"
    )
    assert page.evaluate(POOR) == []


@pytest.mark.wide
def test_a_notebooks_own_theme_counts_before_the_systems(cell: Any) -> None:
    drawn = html_of(program())
    ground = "getComputedStyle(document.querySelector('.flinkpy-graph')).backgroundColor"
    dark, light = (cell(drawn, colours).evaluate(ground) for colours in ("dark", "light"))
    assert dark != light
    assert cell(f"<div data-jp-theme-light=false>{drawn}</div>", "light").evaluate(ground) == dark
    assert cell(f"<div data-jp-theme-light=true>{drawn}</div>", "dark").evaluate(ground) == light
    assert cell(f"<div class=vscode-dark>{drawn}</div>", "light").evaluate(ground) == dark


def test_a_program_that_was_not_executed_is_drawn_as_a_plan_and_an_empty_one_is_not(
    cell: Any,
) -> None:
    env = program()
    page = cell(html_of(env))
    assert "not executed yet" in page.locator(".flinkpy-graph").inner_text()
    assert page.locator(".card.planned").count() == 3
    assert len(repr(env).splitlines()) == 1
    assert embedded_environment()._repr_html_() is None


def test_a_cluster_that_does_not_answer_is_a_sentence() -> None:
    client = program(**{"execution.checkpointing.interval": "1 h"}).execute_async("left alone")
    stop_embedded()
    shown = client._repr_mimebundle_()
    assert list(shown) == ["text/plain"]
    assert shown["text/plain"].startswith("<JobClient 'left alone' ")
    assert "the embedded session has ended" in shown["text/plain"]
    assert client._repr_html_() is None
