from __future__ import annotations

import doctest
import io
import sys
import unicodedata

import pytest

from flinkpy.actors.gateways import JobDetails, JobOverview, VertexDetails
from flinkpy.cluster.display import progress
from flinkpy.cluster.display import vertex_rates as rates
from flinkpy.cluster.display.display_choice import make_progress, progress_wanted
from flinkpy.cluster.display.progress import ProgressDisplay, progress_lines
from flinkpy.cluster.display.slot_notice import SlotNotice
from flinkpy.cluster.display.vertex_rates import Rates, human
from flinkpy.core.clock import ManualClock
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import ExecutionState, JobState


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def vertex(
    records_in: int,
    records_out: int,
    name: str = "Map",
    counted_ms: int = 0,
    state: ExecutionState = ExecutionState.RUNNING,
) -> VertexDetails:
    return VertexDetails("v1", name, 2, {state: 2}, records_in, records_out, counted_ms)


def details(*vertices: VertexDetails) -> JobDetails:
    return JobDetails(JobOverview(JobId("j"), "wc", JobState.RUNNING, 0, None), vertices)


def test_rates_are_differences_over_the_time_between_two_counts() -> None:
    rates = Rates()
    assert rates.update((vertex(0, 0, counted_ms=10_000),)) == {"v1": (0.0, 0.0)}
    assert rates.update((vertex(1000, 500, counted_ms=12_000),)) == {"v1": (500.0, 250.0)}


def test_before_the_first_count_there_is_nothing_to_compare_with() -> None:
    rates = Rates()
    rates.update((vertex(0, 0),))
    assert rates.update((vertex(1000, 500, counted_ms=10_000),), {"v1": (1.0, 2.0)}) == {
        "v1": (1.0, 2.0)
    }
    assert rates.update((vertex(3000, 500, counted_ms=12_000),), {"v1": (1.0, 2.0)}) == {
        "v1": (1000.0, 0.0)
    }


def rates_at_a_hundred() -> Rates:
    """Of two counts, the second at 2,000 ms."""
    rates = Rates()
    rates.update((vertex(0, 0, counted_ms=1000),))
    rates.update((vertex(100, 100, counted_ms=2000),))
    return rates


def test_a_vertex_keeps_its_rate_while_its_next_count_is_under_way() -> None:
    rates = rates_at_a_hundred()
    assert rates.update((vertex(100, 100, counted_ms=2000),)) == {"v1": (100.0, 100.0)}


def test_counts_that_follow_at_once_say_nothing_of_the_rate() -> None:
    rates = rates_at_a_hundred()
    assert rates.update((vertex(100, 100, counted_ms=2001),)) == {"v1": (100.0, 100.0)}
    assert rates.update((vertex(400, 400, counted_ms=3000),)) == {"v1": (300.0, 300.0)}


def test_a_counter_that_has_not_moved_between_two_counts_stands_still() -> None:
    rates = rates_at_a_hundred()
    assert rates.update((vertex(100, 100, counted_ms=2500),)) == {"v1": (0.0, 0.0)}


def test_where_nothing_runs_any_more_nothing_flows() -> None:
    rates = rates_at_a_hundred()
    assert rates.update((vertex(100, 100, counted_ms=2000, state=ExecutionState.FINISHED),)) == {
        "v1": (0.0, 0.0)
    }


def test_a_restarted_vertex_never_shows_a_negative_rate() -> None:
    rates = Rates()
    rates.update((vertex(100, 100, counted_ms=1000),))
    assert rates.update((vertex(5, 5, counted_ms=2000),)) == {"v1": (0.0, 0.0)}


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (1000, "1.0 k"), (2_500_000, "2.5 M"), (3e9, "3.0 G")],
)
def test_numbers_are_short(number: float, text: str) -> None:
    assert human(number) == text


def test_every_vertex_has_a_line_that_fits_the_terminal() -> None:
    lines = progress_lines(
        details(vertex(0, 0, "A" * 100), vertex(0, 0)), {"v1": (1e6, 2e6)}, 3.0, 80
    )
    assert len(lines) == 3
    assert lines[0] == "wc · RUNNING · 3 s"
    assert all(len(line) < 80 for line in lines)
    assert "…" in lines[1]
    assert "1.0 M/s" in lines[2]


def test_the_line_of_the_job_says_how_many_subtasks_wait_for_slots() -> None:
    waiting = details(vertex(0, 0, state=ExecutionState.SCHEDULED))
    assert (
        progress_lines(waiting, {"v1": (0.0, 0.0)}, 3.0, 80)[0]
        == "wc · RUNNING · 3 s · 2 subtasks wait for slots"
    )


@pytest.mark.parametrize("name", ["数据清洗" * 20, "first\nsecond", "\x1b[31mred"])
def test_a_name_takes_one_line_of_the_terminal_whatever_it_is_made_of(name: str) -> None:
    for line in progress_lines(details(vertex(0, 0, name)), {"v1": (0.0, 0.0)}, 3.0, 60):
        assert line.isprintable()
        assert sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line) < 60


def test_the_display_is_no_higher_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "4")
    screen = Terminal()
    display = ProgressDisplay(screen, ManualClock())
    display.update(details(*(VertexDetails(str(i), f"v{i}", 1, {}) for i in range(10))))
    assert screen.getvalue().count("\n") < 3
    display.close()


def test_the_columns_a_text_takes_are_counted() -> None:
    assert doctest.testmod(progress).failed == 0
    assert doctest.testmod(rates).failed == 0


def test_many_vertices_are_cut_short() -> None:
    many = tuple(VertexDetails(str(i), f"v{i}", 1, {}) for i in range(40))
    assert (
        progress_lines(details(*many), {str(i): (0.0, 0.0) for i in range(40)}, 0.0, 120)[-1]
        == "  and 28 more"
    )


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_output_of_the_program_wipes_the_display_first(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, name, screen)
    display = ProgressDisplay(screen, ManualClock())
    display.update(details(vertex(0, 0)))
    print("hello", file=getattr(sys, name))
    assert screen.getvalue().endswith("\x1b[1A\r\x1b[Jhello\n")
    display.close()
    assert getattr(sys, name) is screen


def test_a_closed_display_leaves_nothing_behind() -> None:
    screen = Terminal()
    display = ProgressDisplay(screen, ManualClock())
    display.update(details(vertex(0, 0)))
    display.close()
    assert screen.getvalue().endswith("\r\x1b[J")


def test_the_display_is_for_terminals_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert progress_wanted({}, Terminal())
    assert not progress_wanted({}, io.StringIO())
    assert progress_wanted({"client.progress": "true"}, io.StringIO())
    assert not progress_wanted({"client.progress": "false"}, Terminal())
    monkeypatch.setenv("TERM", "dumb")  # an editor's shell: it would show the escapes
    assert not progress_wanted({}, Terminal())
    assert progress_wanted({"client.progress": "true"}, Terminal())


def test_where_nothing_is_drawn_a_word_about_slots_remains_unless_progress_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(make_progress({}, "").display, SlotNotice)
    assert make_progress({"client.progress": False}, "").display is None


class Tee:
    """What programs put in the place of standard output to log it: no more than ``print`` needs."""

    def __init__(self, under: io.StringIO) -> None:
        self.write, self.flush = under.write, under.flush


def test_an_output_that_says_nothing_of_terminals_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Tee(io.StringIO()))
    assert isinstance(make_progress({}, "").display, SlotNotice)


def test_outputs_that_are_closed_or_no_terminals_are_left_alone_while_it_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tee = Tee(io.StringIO())
    monkeypatch.setattr(sys, "stdout", tee)
    monkeypatch.setattr(sys, "stderr", None)
    display = ProgressDisplay(Terminal(), ManualClock())
    display.update(details(vertex(0, 0)))
    assert (sys.stdout, sys.stderr) == (tee, None)
    display.close()


def test_where_standard_error_is_closed_nothing_is_drawn_or_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert make_progress({}, "").display is None
    assert make_progress({"client.progress": True}, "").display is None
