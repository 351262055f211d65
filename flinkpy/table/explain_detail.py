"""What an explanation shows beside the plan, at PyFlink's module path."""

from __future__ import annotations

from enum import Enum


class ExplainDetail(Enum):
    """A detail to ask ``explain`` for."""

    ESTIMATED_COST = 0
    CHANGELOG_MODE = 1
    JSON_EXECUTION_PLAN = 2
    PLAN_ADVICE = 3
