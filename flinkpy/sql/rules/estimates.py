"""How many rows a relation may have: from sizes of tables and rough shares. Only comparisons of two
estimates mean something."""

from __future__ import annotations

from flinkpy.common.logical_types.logical_type import BigIntType, IntType
from flinkpy.sql.logical.logical_nodes import (
    LogicalAggregate,
    LogicalCorrelate,
    LogicalFilter,
    LogicalJoin,
    LogicalNode,
    LogicalProject,
    LogicalRank,
    LogicalScan,
    LogicalSetOperation,
    LogicalSort,
    LogicalValues,
)
from flinkpy.sql.rex.relational_terms import JoinKind
from flinkpy.sql.rex.rex_nodes import Rex, RexInput
from flinkpy.sql.rules.conditions import conjuncts, disjuncts, is_call

UNKNOWN_ROWS = 1_000_000.0
FEW_VALUES = 1_000.0


def rows_of(node: LogicalNode) -> float:
    """An estimate."""
    if isinstance(node, LogicalScan):
        rows = UNKNOWN_ROWS if node.abilities.rows is None else float(node.abilities.rows)
        return max(1.0, rows)
    if isinstance(node, LogicalValues):
        return float(len(node.rows))
    if isinstance(node, LogicalFilter):
        return max(1.0, rows_of(node.input) * share(node.condition))
    if isinstance(node, LogicalAggregate):
        return rows_of(node.input) ** 0.8 if node.keys else 1.0
    if isinstance(node, LogicalSort) and node.limit is not None:
        return min(float(node.limit), rows_of(node.input))
    if isinstance(node, LogicalSetOperation):
        return sum(map(rows_of, node.branches))
    if isinstance(node, LogicalRank):
        return rows_of(node.input) / 2
    if isinstance(node, LogicalCorrelate):
        return rows_of(node.input) * 3
    if isinstance(node, LogicalJoin):
        return _rows_of_join(node)
    return rows_of(node.inputs[0]) if node.inputs else UNKNOWN_ROWS


def _rows_of_join(node: LogicalJoin) -> float:
    left, right = rows_of(node.left), rows_of(node.right)
    if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return max(1.0, left / 2)
    if node.condition is None:
        return left * right
    return max(left, right)


def groups_of(node: LogicalAggregate) -> float:
    """How many groups there may be: as many as the key with the most values has."""
    return max([1.0, *(_values_of(node.input, key) for key in node.keys)])


def _values_of(node: LogicalNode, column: int) -> float:
    """How many values a column may have. A whole number that is stored is taken for the number of
    a thing, of which a table has one row each; texts and what is computed for a few kinds."""
    while not isinstance(node, LogicalScan):
        if isinstance(node, LogicalProject):
            value = node.projections[column]
            if not isinstance(value, RexInput):
                return FEW_VALUES
            node, column = node.input, value.index
        elif isinstance(node, LogicalAggregate):
            if column >= len(node.keys):
                return rows_of(node)
            column = node.keys[column]
            node = node.input
        elif isinstance(node, LogicalJoin):
            width = node.left.width
            node, column = (node.left, column) if column < width else (node.right, column - width)
        elif node.inputs and column < node.inputs[0].width:
            node = node.inputs[0]
        else:
            return FEW_VALUES
    type = node.schema.fields[column].type
    return rows_of(node) if isinstance(type, (IntType, BigIntType)) else FEW_VALUES


def share(condition: Rex) -> float:
    """The part of the rows for which the condition is true."""
    result = 1.0
    for each in conjuncts(condition):
        result *= _share_of(each)
    return result


def _share_of(condition: Rex) -> float:
    if is_call(condition, "OR"):
        return min(1.0, sum(map(share, disjuncts(condition))))
    if is_call(condition, "="):
        return 0.05
    if is_call(condition, "<", "<=", ">", ">="):
        return 0.4
    if is_call(condition, "IN"):
        return min(0.5, 0.05 * (len(condition.operands) - 1))
    if is_call(condition, "LIKE"):
        return 0.1
    if is_call(condition, "NOT"):
        return max(0.1, 1 - _share_of(condition.operands[0]))
    if is_call(condition, "IS NOT NULL", "<>"):
        return 0.9
    return 0.3
