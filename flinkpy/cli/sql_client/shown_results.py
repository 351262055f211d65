"""How the results of statements are shown: as a tableau while rows come, or as the table that they
make, which at a terminal is drawn anew while it changes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TextIO

from flinkpy.cluster.display.terminal_size import terminal_size
from flinkpy.core.clock import SYSTEM_CLOCK, Clock
from flinkpy.table import ResultKind, TableResult
from flinkpy.table.results.folded_rows import FoldedRows, folded

_DRAWN_EVERY_S = 0.3
_LEAST_LINES = 5


def show_result(result: TableResult, mode: str) -> None:
    """Prints the rows. ``mode`` is tableau, changelog or table: the last shows the rows that are
    left, and at a terminal also those that are there meanwhile."""
    if result.get_result_kind() is ResultKind.SUCCESS:
        print("OK")
        return
    at_once = sys.stdout.isatty()
    if mode == "table" and at_once and result.has_kinds:
        show_changing_table(result, sys.stdout)
        return
    lines = final_lines(result) if mode == "table" else result.lines()
    for line in lines:
        print(line, flush=at_once)


def final_lines(result: TableResult) -> Iterator[str]:
    """The lines of the table that the changes of a query make."""
    with result.collect() as rows:
        return result.lines_of(folded(rows))


def show_changing_table(result: TableResult, screen: TextIO, clock: Clock = SYSTEM_CLOCK) -> None:
    """Draws the last rows of the table while changes come, and the whole table when the query has
    ended, or Ctrl-C ends it."""
    table, drawn, next_s = FoldedRows(), 0, 0.0
    room = max(_LEAST_LINES, terminal_size().lines - _LEAST_LINES)
    with result.collect() as rows:
        try:
            for row in rows:
                table.add(row)
                if clock.monotonic() >= next_s:
                    drawn = _draw(screen, result.lines_of(table.rows()[-room:]), drawn)
                    next_s = clock.monotonic() + _DRAWN_EVERY_S
        finally:
            _draw(screen, result.lines_of(table.rows()), drawn)


def _draw(screen: TextIO, lines: Iterable[str], before: int) -> int:
    """Draws over ``before`` lines; how many there are now."""
    made = list(lines)
    back = f"\x1b[{before}A\r\x1b[J" if before else ""
    screen.write(back + "".join(f"{line}\n" for line in made))
    screen.flush()
    return len(made)
