"""The phases of rewriting, in their order."""

from __future__ import annotations

from flinkpy.sql.logical.logical_nodes import LogicalNode
from flinkpy.sql.rules.rule_phases import RuleContext

PHASES = ()


def optimized(plan: LogicalNode, context: RuleContext) -> LogicalNode:
    """The plan after all phases."""
    return plan
