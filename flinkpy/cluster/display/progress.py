"""The live progress display: the job's state, and what every vertex takes in and gives out per second. One line a vertex, drawn over itself.

It costs the job nothing: the counters are those the heartbeats carry anyway, and drawing happens in the thread that waits for the result.
What the program prints meanwhile goes above: while it is drawn, standard output and error are thin wrappers that wipe the display before they write.
(A library for live displays was tried and left out: it renders every line the program prints, at a hundred times the cost of printing it.)
"""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from flinkpy.actors.gateways import JobDetails, VertexDetails
from flinkpy.cluster.display.slot_notice import SlotNotice, waiting_for_slots
from flinkpy.core.clock import SYSTEM_CLOCK, Clock
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.core.options.engine import SHOW_PROGRESS
from flinkpy.core.options.schema import read
from flinkpy.core.program.places import in_notebook

if TYPE_CHECKING:
    from flinkpy.cluster.display.notebook_progress import NotebookProgress

_WIPE = "\r\x1b[J"  # from the cursor's line to the end of the screen
_NAME_WIDTH = 44
_COLUMNS_WIDTH = 61  # of what stands beside the name
_MAX_LINES = 12
_NOTHING = (0.0, 0.0)


def progress_wanted(configuration: Mapping[str, Any], terminal: TextIO) -> bool:
    """Whether to show it: as ``client.progress`` says, else where ``terminal`` is one that can be drawn on."""
    wanted = read(configuration, SHOW_PROGRESS)
    return _is_terminal(terminal) and os.environ.get("TERM") != "dumb" if wanted is None else bool(wanted)


def _is_terminal(stream: Any) -> bool:
    """Whether it says so: a program may have put whatever has a ``write`` in the place of its outputs, or closed them."""
    says = getattr(stream, "isatty", None)
    return says is not None and bool(says())


def make_progress(configuration: Mapping[str, Any], who_holds_slots: str) -> ProgressDisplay | NotebookProgress | SlotNotice | None:
    """The display on standard error, or in the output of a notebook's cell, where it is wanted; where it is merely not drawn, a word about slots that
    do not come. ``who_holds_slots`` tells where to look then."""
    if in_notebook():
        from flinkpy.cluster.display.notebook_progress import NotebookProgress

        return NotebookProgress() if read(configuration, SHOW_PROGRESS) is not False else None
    if sys.stderr is None:  # as Python has it where the descriptor is closed
        return None
    if progress_wanted(configuration, sys.stderr):
        return ProgressDisplay(sys.stderr)
    return SlotNotice(sys.stderr, who_holds_slots) if read(configuration, SHOW_PROGRESS) is None else None


def human(number: float) -> str:
    """Short enough for a column.

    >>> human(1234), human(5_678_000), human(12)
    ('1.2 k', '5.7 M', '12')
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:.0f}"


class Rates:
    """Records per second of every vertex, between one count and the next.

    The time between is that of the counts, not of the looks: counts come with heartbeats, and however long one is under way, or nobody looks, the
    vertex does not stand still.
    """

    apart_ms = 200  # counts that follow one another closer (a beat that was due, and one that was asked for) say nothing of a rate

    def __init__(self) -> None:
        self._before: dict[str, VertexDetails] = {}
        self._rates: dict[str, tuple[float, float]] = {}

    def update(self, vertices: tuple[VertexDetails, ...], averages: Mapping[str, tuple[float, float]] = {}) -> dict[str, tuple[float, float]]:
        """Per vertex id: records in and out per second as of the latest count, none where nothing runs. Before there are two: ``averages``."""
        for vertex in (each for each in vertices if each.counted_ms):
            before = self._before.setdefault(vertex.vertex_id, vertex)
            elapsed_ms = vertex.counted_ms - before.counted_ms
            if elapsed_ms >= self.apart_ms:
                self._before[vertex.vertex_id] = vertex
                self._rates[vertex.vertex_id] = (max(0, vertex.records_in - before.records_in) * 1000 / elapsed_ms,
                                                 max(0, vertex.records_out - before.records_out) * 1000 / elapsed_ms)
        return {vertex.vertex_id: self._rate(vertex, averages) for vertex in vertices}

    def _rate(self, vertex: VertexDetails, averages: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
        if not vertex.states.get(ExecutionState.RUNNING):
            return _NOTHING
        return self._rates.get(vertex.vertex_id) or averages.get(vertex.vertex_id, _NOTHING)


def progress_lines(details: JobDetails, rates: Mapping[str, tuple[float, float]], elapsed_s: float, width: int) -> list[str]:
    """What is drawn: a line for the job, a line for each vertex."""
    waiting = waiting_for_slots(details)
    without = f" · {waiting} subtasks wait for slots" if waiting else ""
    lines = [f"{details.overview.name} · {details.overview.state.value} · {elapsed_s:.0f} s{without}"]
    name_width = max(12, min(_NAME_WIDTH, width - _COLUMNS_WIDTH))
    for vertex in details.vertices[:_MAX_LINES]:
        rate_in, rate_out = rates[vertex.vertex_id]
        name = vertex.name if len(vertex.name) <= name_width else vertex.name[:name_width - 1] + "…"
        running = vertex.states.get(ExecutionState.RUNNING, 0)
        finished = vertex.states.get(ExecutionState.FINISHED, 0)
        state = "finished" if finished == vertex.parallelism else f"{running}/{vertex.parallelism} running"
        rates_text = f"in {human(rate_in):>7}/s  out {human(rate_out):>7}/s"
        lines.append(f"  {name:<{name_width}} {state:>13}  {rates_text}  total {human(vertex.records_out or vertex.records_in)}")
    if len(details.vertices) > _MAX_LINES:
        lines.append(f"  and {len(details.vertices) - _MAX_LINES} more")
    return [one_line(line, width - 1) for line in lines]


def one_line(text: str, width: int) -> str:
    """As much of it as fits into ``width`` columns of one line: wide characters take two, and nobody's names may begin another.

    >>> one_line("数据\\n清洗", 6)
    '数据 '
    """
    shown, taken = [], 0
    for char in text:
        taken += 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if taken > width:
            break
        shown.append(char if char.isprintable() else " ")
    return "".join(shown)


class ProgressDisplay:
    """Draws on ``terminal``; ``close`` leaves nothing behind."""

    interval_s = 0.5

    def __init__(self, terminal: TextIO, clock: Clock = SYSTEM_CLOCK) -> None:
        self._terminal, self._clock = terminal, clock
        self._started = clock.monotonic()
        self._rates = Rates()
        self._drawn = 0
        self._covered: dict[str, TextIO] = {}

    def update(self, details: JobDetails) -> None:
        """Draws anew."""
        now = self._clock.monotonic()
        width, height = shutil.get_terminal_size()
        lines = progress_lines(details, self._rates.update(details.vertices), now - self._started, width)
        lines = lines[:max(1, height - 1)]  # a line that has scrolled away cannot be wiped
        self._cover_outputs()
        self.wipe()
        self._terminal.write("\n".join(lines))
        self._terminal.flush()
        self._drawn = len(lines)

    def wipe(self) -> None:
        """Takes the display away, if it is there."""
        if self._drawn:
            up = f"\x1b[{self._drawn - 1}A" if self._drawn > 1 else ""
            self._drawn = 0
            self._terminal.write(up + _WIPE)
            self._terminal.flush()

    def close(self) -> None:
        self.wipe()
        for name, stream in self._covered.items():
            if isinstance(getattr(sys, name), _Above):
                setattr(sys, name, stream)
        self._covered.clear()

    def _cover_outputs(self) -> None:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if name not in self._covered and _is_terminal(stream):
                self._covered[name] = stream
                setattr(sys, name, _Above(stream, self))


class _Above:
    """Standard output, or error, while the display is drawn: wipes it, then writes."""

    def __init__(self, stdout: TextIO, display: ProgressDisplay) -> None:
        self._under, self._display = stdout, display

    def write(self, text: str) -> int:
        if self._display._drawn:
            self._display.wipe()
        return self._under.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._under, name)
