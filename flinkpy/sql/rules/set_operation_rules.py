"""UNION, INTERSECT and EXCEPT in terms of groups and joins."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.common.logical_types.logical_type import BigIntType, RowField
from flinkpy.sql.logical.logical_nodes import (
    LogicalNode,
    LogicalOver,
    LogicalSetOperation,
    LogicalValues,
    aggregate,
    input_of,
    join,
    project,
    row_of,
)
from flinkpy.sql.rex.relational_terms import Frame, JoinKind, OverGroup
from flinkpy.sql.rex.rex_nodes import AggregateCall, RexInput, SortKey
from flinkpy.sql.rules.conditions import comparison, conjunction
from flinkpy.sql.rules.rule_phases import RuleContext

_BIG = BigIntType(is_nullable=False)


def union_as_groups(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """UNION is UNION ALL with each row once."""
    if not isinstance(node, LogicalSetOperation) or node.kind != "UNION" or node.keeps_all:
        return None
    return _distinct(replace(node, keeps_all=True))


def unions_merged(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """UNION ALL of UNION ALL is one, and branches without rows go."""
    if not _is_union_all(node):
        return None
    assert isinstance(node, LogicalSetOperation)
    branches: list[LogicalNode] = []
    for each in node.branches:
        if isinstance(each, LogicalSetOperation) and _is_union_all(each):
            branches += each.branches
        elif not (isinstance(each, LogicalValues) and not each.rows):
            branches.append(each)
    if len(branches) == len(node.branches):
        return None
    if not branches:
        return LogicalValues(node.schema, ())
    if len(branches) == 1:
        only = branches[0]
        columns = [input_of(only, index) for index in range(only.width)]
        return project(only, columns, node.schema.names)
    return replace(node, branches=tuple(branches))


def _is_union_all(node: LogicalNode) -> bool:
    return isinstance(node, LogicalSetOperation) and node.kind == "UNION" and node.keeps_all


def intersection_as_join(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """INTERSECT keeps rows that are on the other side too, EXCEPT those that are not. With ALL,
    equal rows are numbered, and the number has to be there too."""
    if not isinstance(node, LogicalSetOperation) or node.kind == "UNION":
        return None
    kind = JoinKind.SEMI if node.kind == "INTERSECT" else JoinKind.ANTI
    result, *others = node.branches
    for other in others:
        if node.keeps_all:
            left, right = _numbered(result), _numbered(other)
        else:
            left, right = _distinct(result), other
        equal = [
            comparison(
                input_of(left, index),
                RexInput(right.schema.fields[index].type, index=left.width + index),
                "IS NOT DISTINCT FROM",
            )
            for index in range(left.width)
        ]
        made = join(left, right, kind, conjunction(equal))
        columns = [input_of(made, index) for index in range(node.width)]
        result = project(made, columns, node.schema.names)
    return result


def _distinct(node: LogicalNode) -> LogicalNode:
    return aggregate(node, range(node.width), (), ())


def _numbered(node: LogicalNode) -> LogicalNode:
    columns = tuple(range(node.width))
    group = OverGroup(
        columns,
        tuple(map(SortKey, columns[:1])),
        Frame("ROWS", None, 0),
        (AggregateCall("ROW_NUMBER", (), _BIG),),
    )
    return LogicalOver(row_of([*node.schema.fields, RowField("$n", _BIG)]), node, (group,))


SET_RULES = (union_as_groups, unions_merged, intersection_as_join)
