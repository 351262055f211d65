"""A plugin of pytest: ends the run with a line for each finding (``make findings``).

python -m pytest -p tests.findings.report -m finding
"""

from __future__ import annotations

import pytest

from tests.findings.known import KNOWN

_outcomes: dict[str, list[bool]] = {name: [] for name in KNOWN}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.user_properties += [
            ("finding", name) for mark in item.iter_markers("finding") for name in mark.args
        ]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped:
        return
    if report.when == "call" or report.failed:
        # they come with the report from worker processes, too
        for kind, name in report.user_properties:
            if kind == "finding":
                _outcomes[str(name)].append(report.passed)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("findings")
    for name, outcomes in _outcomes.items():
        verdict = "no test ran" if not outcomes else "right" if all(outcomes) else "WRONG"
        terminalreporter.write_line(f"{verdict:12} {name:22} {KNOWN[name]}")
