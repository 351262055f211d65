"""A filter on ROW_NUMBER, RANK or DENSE_RANK wants the first rows of each partition: a Rank."""

from __future__ import annotations

from flinkpy.sql.logical.logical_nodes import (
    LogicalFilter,
    LogicalNode,
    LogicalOver,
    LogicalRank,
    filtered,
)
from flinkpy.sql.rex.rex_nodes import Rex, RexInput, RexLiteral
from flinkpy.sql.rules.conditions import MIRRORED, conjunction, conjuncts, is_call
from flinkpy.sql.rules.rule_phases import RuleContext

_RANKS = ("ROW_NUMBER", "RANK", "DENSE_RANK")
MOST = 2**63 - 1


def filter_as_rank(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """``WHERE rn <= 3`` over ``ROW_NUMBER() ... AS rn``."""
    if not isinstance(node, LogicalFilter) or not isinstance(node.input, LogicalOver):
        return None
    over = node.input
    if len(over.groups) != 1 or len(over.groups[0].calls) != 1:
        return None
    group = over.groups[0]
    call = group.calls[0]
    if call.function not in _RANKS:
        return None
    place = over.width - 1
    first, last = 1, MOST
    rest: list[Rex] = []
    for each in conjuncts(node.condition):
        bounds = _bounds(each, place)
        if bounds is None:
            rest.append(each)
        else:
            first, last = max(first, bounds[0]), min(last, bounds[1])
    if last == MOST:
        return None
    rank = LogicalRank(
        over.schema, over.input, call.function, group.partition, group.keys, first, last, True
    )
    return filtered(rank, conjunction(rest))


def _bounds(condition: Rex, place: int) -> tuple[int, int] | None:
    if not is_call(condition, *MIRRORED):
        return None
    function = getattr(condition, "function", "")
    one, other = condition.operands
    if isinstance(one, RexLiteral):
        one, other, function = other, one, MIRRORED[function]
    if not (isinstance(one, RexInput) and one.index == place and isinstance(other, RexLiteral)):
        return None
    bound = other.value
    if not isinstance(bound, int):
        return None
    return {
        "=": (bound, bound),
        "<": (1, bound - 1),
        "<=": (1, bound),
        ">": (bound + 1, MOST),
        ">=": (bound, MOST),
    }.get(function)
