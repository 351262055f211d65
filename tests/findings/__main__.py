"""``python -m tests.findings [PYTEST OPTION …]``: runs the tests of all findings and prints a line for each finding."""

from __future__ import annotations

import sys

import pytest

from tests.findings.known import KNOWN


class Report:
    """Collects, for each finding, how its tests ended."""

    def __init__(self) -> None:
        self._finding_of: dict[str, list[str]] = {}
        self._outcomes: dict[str, list[bool]] = {name: [] for name in KNOWN}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            self._finding_of[item.nodeid] = [name for mark in item.iter_markers("finding") for name in mark.args]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            for name in self._finding_of[report.nodeid]:
                self._outcomes[name].append(report.passed)

    def lines(self) -> list[str]:
        return [f"{self._verdict(outcomes):8} {name:22} {KNOWN[name]}" for name, outcomes in self._outcomes.items()]

    def all_right(self) -> bool:
        return all(outcomes and all(outcomes) for outcomes in self._outcomes.values())

    @staticmethod
    def _verdict(outcomes: list[bool]) -> str:
        if not outcomes:
            return "no test"
        return "right" if all(outcomes) else "WRONG"


def main() -> int:
    report = Report()
    pytest.main(["-m", "finding", "-q", *sys.argv[1:]], plugins=[report])
    print("\n".join(report.lines()))
    return 0 if report.all_right() else 1


if __name__ == "__main__":
    sys.exit(main())
