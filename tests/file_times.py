"""A plugin of pytest: ends a run with the seconds that each file of tests took, the longest first.

``make test`` is to take six minutes on two cores that do nothing else. A file has ``BUDGET_S`` of
them. One that takes more is named: either its long tests are made shorter, or they are marked
``wide``, which leaves them to ``make test-all``."""

from __future__ import annotations

from collections import Counter

import pytest

BUDGET_S = 10.0
SHOWN = 15

_seconds: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # a Counter may count seconds
    _seconds[report.location[0]] += report.duration  # type: ignore[assignment]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    over = [(file, seconds) for file, seconds in _seconds.most_common() if seconds > BUDGET_S]
    if not over:
        return
    terminalreporter.section(
        f"files that take more than {BUDGET_S:.0f} s, of {sum(_seconds.values()):.0f} s in "
        "all files"
    )
    for file, seconds in over[:SHOWN]:
        terminalreporter.write_line(f"{seconds:6.1f} s  {file}")
    if len(over) > SHOWN:
        terminalreporter.write_line(f"and {len(over) - SHOWN} more")
