"""After an internal error pytest prints no summary, and what failed is lost in a long output: here
it is said once more, at the end."""

from __future__ import annotations

from typing import Any

import pytest

LINES = 12  # of each text
_failed: list[str] = []
_internal: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed.append(f"FAILED {report.nodeid} ({report.when})\n{_end_of(report.longreprtext)}")


def pytest_internalerror(excrepr: Any) -> None:
    _internal.append(f"INTERNAL ERROR\n{_end_of(str(excrepr))}")


def pytest_unconfigure() -> None:
    if _internal:
        print("\n".join([*_internal, *_failed]), flush=True)


def _end_of(text: str) -> str:
    return "\n".join(f"    {line[:200]}" for line in text.splitlines()[-LINES:])
