"""The live progress display of a terminal: the job's state, and the records that every vertex takes
in and emits per second. It has one line for each vertex and redraws itself in place.

It costs the job nothing: heartbeats carry the counters anyway, and the thread that waits for the
result draws. What the program prints meanwhile appears above the display: while it is drawn,
standard output and error are thin wrappers that wipe it before they write. A library for live
displays was rejected: it renders every line that the program prints, at a hundred times the cost of
printing it."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Mapping
from typing import Any, TextIO

from flinkpy.actors.gateways import JobDetails
from flinkpy.cluster.display.slot_notice import waiting_for_slots
from flinkpy.cluster.display.terminal_size import terminal_size
from flinkpy.cluster.display.vertex_rates import Rates, human
from flinkpy.core.clock import SYSTEM_CLOCK, Clock
from flinkpy.core.lifecycles import ExecutionState

_WIPE = "\r\x1b[J"  # from the cursor's line to the end of the screen
_NAME_WIDTH = 44
_COLUMNS_WIDTH = 61  # of the columns beside the name
_MAX_LINES = 12


def is_terminal(stream: object) -> bool:
    """Whether it is a terminal. A program may have closed its outputs, or replaced them with any
    object that has a ``write``."""
    says = getattr(stream, "isatty", None)
    return says is not None and bool(says())


def progress_lines(
    details: JobDetails, rates: Mapping[str, tuple[float, float]], elapsed_s: float, width: int
) -> list[str]:
    """The lines to draw: one for the job, one for each vertex."""
    waiting = waiting_for_slots(details)
    without = f" · {waiting} subtasks wait for slots" if waiting else ""
    lines = [
        (f"{details.overview.name} · {details.overview.state.value} · {elapsed_s:.0f} s{without}")
    ]
    name_width = max(12, min(_NAME_WIDTH, width - _COLUMNS_WIDTH))
    for vertex in details.vertices[:_MAX_LINES]:
        rate_in, rate_out = rates[vertex.vertex_id]
        name = (
            vertex.name if len(vertex.name) <= name_width else vertex.name[: name_width - 1] + "…"
        )
        running = vertex.states.get(ExecutionState.RUNNING, 0)
        finished = vertex.states.get(ExecutionState.FINISHED, 0)
        state = (
            "finished"
            if finished == vertex.parallelism
            else f"{running}/{vertex.parallelism} running"
        )
        rates_text = f"in {human(rate_in):>7}/s  out {human(rate_out):>7}/s"
        lines.append(
            f"  {name:<{name_width}} {state:>13}  {rates_text}  total "
            f"{human(vertex.records_out or vertex.records_in)}"
        )
    if len(details.vertices) > _MAX_LINES:
        lines.append(f"  and {len(details.vertices) - _MAX_LINES} more")
    return [one_line(line, width - 1) for line in lines]


def one_line(text: str, width: int) -> str:
    """The text cut to ``width`` columns of one line. Wide characters take two columns; line breaks
    inside a name become spaces.

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
    """Draws on ``terminal``; ``close`` removes the display."""

    interval_s = 0.5

    def __init__(self, terminal: TextIO, clock: Clock = SYSTEM_CLOCK) -> None:
        self._terminal, self._clock = terminal, clock
        self._started = clock.monotonic()
        self._rates = Rates()
        self._drawn = 0
        self._covered: dict[str, TextIO] = {}

    def update(self, details: JobDetails) -> None:
        """Redraws the display."""
        now = self._clock.monotonic()
        width, height = terminal_size()
        lines = progress_lines(
            details, self._rates.update(details.vertices), now - self._started, width
        )
        lines = lines[: max(1, height - 1)]  # a line that has scrolled away cannot be wiped
        self._cover_outputs()
        self.wipe()
        self._terminal.write("\n".join(lines))
        self._terminal.flush()
        self._drawn = len(lines)

    @property
    def is_drawn(self) -> bool:
        return self._drawn > 0

    def wipe(self) -> None:
        """Removes the display, if it is drawn."""
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
            if name not in self._covered and is_terminal(stream):
                self._covered[name] = stream
                setattr(sys, name, _Above(stream, self))


class _Above:
    """Stands in for standard output or error while the display is drawn: wipes the display, then
    writes."""

    def __init__(self, stdout: TextIO, display: ProgressDisplay) -> None:
        self._under, self._display = stdout, display

    def write(self, text: str) -> int:
        if self._display.is_drawn:
            self._display.wipe()
        return self._under.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._under, name)
