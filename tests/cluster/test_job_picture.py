"""A job as a prompt and a notebook show it: once, and true at that moment."""

from __future__ import annotations

import doctest
import html.parser
import re
from dataclasses import replace
from typing import Any

import pytest

from flinkpy.actors.execution_graph_info import InputInfo
from flinkpy.actors.gateways import JobDetails, JobOverview, VertexDetails
from flinkpy.cluster.display import graph_drawing, job_picture
from flinkpy.cluster.display.display_choice import make_progress
from flinkpy.cluster.display.job_picture import JobPicture, JobPictures
from flinkpy.cluster.display.notebook_progress import NotebookProgress
from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import UserCodeError
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import ExecutionState, JobState

START_MS = 1_000_000


def vertex(
    records_out: int,
    name: str = "Source: words -> Map",
    vertex_id: str = "v1",
    records_in: int = 0,
    counted_ms: int = 0,
) -> VertexDetails:
    states = {ExecutionState.RUNNING: 1, ExecutionState.FINISHED: 1, ExecutionState.FAILED: 0}
    return VertexDetails(
        vertex_id, name, 2, states, records_in, records_out, counted_ms, 876, 123, 1
    )


def details(
    *vertices: VertexDetails,
    state: JobState = JobState.RUNNING,
    end_ms: int | None = None,
    error: BaseException | None = None,
    name: str = "word count",
) -> JobDetails:
    return JobDetails(JobOverview(JobId("ab12"), name, state, START_MS, end_ms), vertices, error)


def picture(*vertices: VertexDetails, **named: Any) -> JobPicture:
    return JobPicture(
        details(*vertices, **named), 12.4, {each.vertex_id: (0.0, 1500.0) for each in vertices}
    )


def test_a_job_is_a_line_and_each_vertex_another_in_columns() -> None:
    drawn = str(picture(vertex(5_000_000), vertex(7, "Sink", "v2", records_in=9)))
    assert drawn.splitlines() == [
        "word count · RUNNING · 12 s · ab12",
        (
            "  Source: words -> Map  1 RUNNING, 1 FINISHED  in 0/s  out 1.5 k/s  total 5.0 M  "
            "busy 87 %  back-pressured 12 %"
        ),
        (
            "  Sink                  1 RUNNING, 1 FINISHED  in 0/s  out 1.5 k/s  total     7  "
            "busy 87 %  back-pressured 12 %"
        ),
    ]


def test_a_vertex_that_gives_nothing_out_counts_what_it_takes_in() -> None:
    assert str(picture(vertex(0, records_in=9))).endswith("total 9  busy 87 %  back-pressured 12 %")


def test_a_job_without_vertices_yet_has_its_line() -> None:
    assert str(picture(state=JobState.CREATED)) == "word count · CREATED · 12 s · ab12"


def test_long_names_are_cut() -> None:
    line = str(picture(vertex(1, "x" * 200))).splitlines()[1]
    assert "x" * 59 + "… " in line
    assert "x" * 60 not in line


def test_a_failed_job_shows_why() -> None:
    failed = picture(
        vertex(1),
        state=JobState.FAILED,
        error=UserCodeError("ZeroDivisionError: division by zero", operator="Map"),
    )
    assert str(failed).splitlines()[2:] == [
        "ZeroDivisionError: division by zero",
        "  in operator 'Map'",
    ]
    assert (
        "<pre>ZeroDivisionError: division by zero\n  in operator &#x27;Map&#x27;</pre>"
        in failed.html()
    )


class Texts(html.parser.HTMLParser):
    """The text of each element, in order; whether every element was closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.opened: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.found.append(data)


def test_the_graph_says_the_same_as_the_lines() -> None:
    source = vertex(5_000_000)
    sink = replace(
        vertex(7, "Sink", "v2", records_in=9), inputs=(InputInfo("v1", "HASH", "PIPELINED"),)
    )
    texts = Texts(picture(source, sink).html())
    assert texts.opened == []
    shown = [text for text in texts.found if "{" not in text]
    assert shown == [
        "word count",
        " · RUNNING · 12 s · ",
        "ab12",
        "HASH",
        "Source: words -> Map",
        "Source: words",
        "Map",
        "1 RUNNING, 1 FINISHED",
        "busy 88% · back-pressured 12%",
        "in 0 · 0/s",
        "out 5.0 M · 1.5 k/s",
        "Sink",
        "Sink",
        "1 RUNNING, 1 FINISHED",
        "busy 88% · back-pressured 12%",
        "in 9 · 0/s",
        "out 7 · 1.5 k/s",
    ]


@pytest.mark.parametrize(
    ("held", "level"), [(100, "ok"), (101, "low"), (500, "low"), (501, "high")]
)
def test_back_pressure_has_the_pages_levels(held: int, level: str) -> None:
    drawn = picture(replace(vertex(1), back_pressured_ms_per_second=held)).html()
    assert f'class="card {level}"' in drawn


def test_an_edge_is_coloured_where_its_producer_is_held_up_by_a_busy_consumer() -> None:
    held = replace(vertex(1), back_pressured_ms_per_second=900)
    reads = (InputInfo("v1", "HASH", "PIPELINED"),)
    busy = replace(vertex(1, "Sink", "v2"), inputs=reads)
    idle = replace(busy, busy_ms_per_second=0, back_pressured_ms_per_second=0)
    assert 'class="edge high"' in picture(held, busy).html()
    assert 'class="edge "' in picture(held, idle).html()


def test_a_long_chain_names_its_first_operators_and_how_many_more_there_are() -> None:
    found = Texts(
        picture(vertex(1, " -> ".join(f"Map {number}" for number in range(9)))).html()
    ).found
    assert [text for text in found if text.startswith(("Map", "…"))][1:] == [
        "Map 0",
        "Map 1",
        "Map 2",
        "… 6 more",
    ]


def test_the_drawing_has_no_script_and_no_id_and_asks_for_nothing() -> None:
    drawn = picture(vertex(1), vertex(2, "Sink", "v2")).html()
    assert not re.search(r"<script|\bid=|\bon\w+=|url\(|https?:|@import|href", drawn)


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "a & b", "</svg>x", '" onload="x'])
def test_names_and_errors_cannot_become_html(text: str) -> None:
    drawn = picture(vertex(1, text), name=text, error=ValueError(text)).html()
    assert text not in drawn
    # the job, the vertex with and without its full name, the error
    assert Texts(drawn).found.count(text) == 4


def test_the_first_look_shows_the_average_since_the_start_and_the_next_what_happened_since() -> (
    None
):
    pictures = JobPictures()
    assert pictures.picture(
        details(vertex(2000, counted_ms=START_MS + 2000)), START_MS + 2000
    ).rates == {"v1": (0.0, 1000.0)}
    assert pictures.picture(
        details(vertex(2500, counted_ms=START_MS + 3000)), START_MS + 3000
    ).rates == {"v1": (0.0, 500.0)}


def test_a_look_after_a_long_time_shows_the_rate_between_its_two_counts() -> None:
    pictures = JobPictures()
    pictures.picture(details(vertex(2000, counted_ms=START_MS + 2000)), START_MS + 2000)
    late = pictures.picture(details(vertex(3000, counted_ms=START_MS + 3000)), START_MS + 60_000)
    assert late.rates == {"v1": (0.0, 1000.0)}


def test_pictures_at_one_count_show_the_same_rates() -> None:
    pictures = JobPictures()
    pictures.picture(details(vertex(2000, counted_ms=START_MS + 2000)), START_MS + 2000)
    pictures.picture(details(vertex(2500, counted_ms=START_MS + 3000)), START_MS + 3000)
    again = pictures.picture(details(vertex(2500, counted_ms=START_MS + 3000)), START_MS + 9000)
    assert again.rates == {"v1": (0.0, 500.0)}
    assert "total 2.5 k" in str(again)


def test_a_job_that_has_ended_shows_its_average_and_its_own_length() -> None:
    ended = details(vertex(8000), state=JobState.FINISHED, end_ms=START_MS + 4000)
    seen = JobPictures().picture(ended, START_MS + 1_000_000)
    assert (seen.elapsed_s, seen.rates) == (4.0, {"v1": (0.0, 2000.0)})


def test_a_job_looked_at_in_the_moment_it_starts_has_no_rate_yet() -> None:
    seen = JobPictures().picture(details(vertex(0)), START_MS - 5)
    assert (seen.elapsed_s, seen.rates) == (0.0, {"v1": (0.0, 0.0)})


def test_examples_in_docstrings_run() -> None:
    assert doctest.testmod(job_picture).failed == doctest.testmod(graph_drawing).failed == 0


# -- drawn over itself, in a notebook --------------------------------------------------------------


class Handle:
    """IPython's, as far as it is used."""

    def __init__(self) -> None:
        self.drawn: list[tuple[str, dict[str, str]]] = []

    def display(self, forms: dict[str, str], raw: bool) -> None:
        self.drawn.append(("display", forms))

    def update(self, forms: dict[str, str], raw: bool) -> None:
        self.drawn.append(("update", forms))


def test_progress_in_a_notebook_is_one_output_that_ends_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    display = pytest.importorskip("IPython.display")
    handle = Handle()
    monkeypatch.setattr(display, "DisplayHandle", lambda: handle)
    progress = NotebookProgress(ManualClock())
    progress.update(details(vertex(1)))
    progress.update(details(vertex(2)))
    progress.close()
    assert [how for how, _ in handle.drawn] == ["display", "update", "update"]
    assert handle.drawn[0][1]["text/plain"].startswith("word count · RUNNING")
    assert handle.drawn[2][1] == {"text/plain": "", "text/html": ""}


def test_a_job_that_ends_before_the_first_look_draws_nothing() -> None:
    NotebookProgress(ManualClock()).close()


def test_progress_in_a_notebook_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flinkpy.cluster.display.display_choice.in_notebook", lambda: True)
    assert isinstance(make_progress({}, "").display, NotebookProgress)
    assert make_progress({"client.progress": False}, "").display is None
    assert make_progress({"client.progress": "false"}, "").display is None
