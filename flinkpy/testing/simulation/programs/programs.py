"""The programs that the simulation runs. What each commits does not depend on the order in which
records of different splits come, so that every run commits the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.testing.simulation.programs import (
    changing_programs,
    keyed_programs,
    outside_programs,
    sql_programs,
    windowed_programs,
)


@dataclass(frozen=True)
class Program:
    """``build`` records it in an environment. ``rescales``: it commits the same with any
    parallelism. ``drains``: also if its input ends in between, and another job goes on. One whose
    sink does not write to the world outside says what can be ``seen``, after it has ``cleared``
    that."""

    name: str
    build: Callable[[StreamExecutionEnvironment], None]
    rescales: bool = True
    drains: bool = False
    seen: Callable[[], list[Any]] | None = None
    clear: Callable[[], None] = lambda: None


_DRAWN = {
    program.name: program
    for program in (
        Program("running-counts", keyed_programs.running_counts, drains=True),
        Program("timers", keyed_programs.timers),
        Program("operator-counts", keyed_programs.operator_counts, rescales=False, drains=True),
        Program("broadcast-rules", keyed_programs.broadcast_rules, drains=True),
        Program("unions", keyed_programs.unions, drains=True),
        Program("slices", windowed_programs.slices),
        Program("sessions", windowed_programs.sessions),
        Program("count-windows", windowed_programs.count_windows),
        Program("window-join", windowed_programs.window_join),
        Program("interval-join", windowed_programs.interval_join),
        Program("columnar-windows", windowed_programs.columnar_windows),
        Program("columnar-join", windowed_programs.columnar_join),
        Program("unordered-calls", outside_programs.unordered_calls, drains=True),
        Program("ordered-calls", outside_programs.ordered_calls, drains=True),
        Program(
            "files",
            outside_programs.files,
            drains=True,
            seen=outside_programs.visible_lines,
            clear=outside_programs.clear_folder,
        ),
    )
}
_NAMED = {
    program.name: program
    for program in (
        Program("global-commits", outside_programs.global_commits, drains=True),
        Program("counted-windows", windowed_programs.counted_windows),
        Program("columnar-changes", keyed_programs.columnar_changes, drains=True),
        Program("patterns", keyed_programs.patterns),
        Program("dynamic-patterns", keyed_programs.dynamic_patterns),
        Program("sql-windows", sql_programs.sql_windows),
        Program("sql-join", sql_programs.sql_join, drains=True),
        Program("sql-over", sql_programs.sql_over),
        Program("sql-held-windows", sql_programs.sql_held_windows),
        Program("sql-sessions", sql_programs.sql_sessions),
        Program("sql-versions", changing_programs.sql_versions),
        Program("sql-q4", changing_programs.q4, drains=True),
        Program("sql-q9", changing_programs.q9, drains=True),
        Program("sql-q18", changing_programs.q18, drains=True),
        Program("sql-q20", changing_programs.q20, drains=True),
    )
}

DRAWN_PROGRAMS = tuple(_DRAWN)
"""Those that a seed draws from if none is named: what a seed means depends on their number."""

PROGRAMS = {**_DRAWN, **_NAMED}
