"""The phases of rewriting, in their order."""

from __future__ import annotations

from flinkpy.sql.logical.logical_nodes import LogicalNode
from flinkpy.sql.rules.column_pruning import columns_pruned
from flinkpy.sql.rules.filter_pushing import FILTER_RULES, filter_into_scan, limit_into_scan
from flinkpy.sql.rules.join_order import joins_ordered
from flinkpy.sql.rules.join_rules import (
    keys_as_columns,
    outer_join_simplified,
    semi_join_through_join,
    semi_join_through_project,
    with_implied_filters,
)
from flinkpy.sql.rules.over_variances import variances_of_over
from flinkpy.sql.rules.rank_rules import filter_as_rank
from flinkpy.sql.rules.rule_phases import Phase, RuleContext
from flinkpy.sql.rules.set_operation_rules import SET_RULES
from flinkpy.sql.rules.simplification import SIMPLER
from flinkpy.sql.rules.subquery_rules import SUBQUERY_RULES

EXPAND = Phase("expand", (*SUBQUERY_RULES, *SET_RULES, variances_of_over))
SIMPLIFY = Phase("simplify", SIMPLER)
PUSH = Phase(
    "push",
    (
        *SIMPLER,
        outer_join_simplified,
        *FILTER_RULES,
        filter_as_rank,
        semi_join_through_join,
        semi_join_through_project,
    ),
)
KEYS = Phase("keys", (keys_as_columns,))
SCAN = Phase("scan", (filter_into_scan, limit_into_scan))


def optimized(plan: LogicalNode, context: RuleContext) -> LogicalNode:
    """The plan after all phases."""
    for phase in (EXPAND, SIMPLIFY, PUSH):
        plan = phase.applied(plan, context)
    plan = PUSH.applied(with_implied_filters(plan, context), context)
    plan = joins_ordered(plan, context)
    for phase in (PUSH, KEYS, SCAN):
        plan = phase.applied(plan, context)
    return columns_pruned(plan)
