"""The order of inner joins: always the pair of relations next whose join is smallest. Sizes come
from tables and filters; how many values a key has is the size of the smallest table it is equal to
a column of. Relations without a condition between them are joined last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flinkpy.sql.logical.logical_nodes import (
    LogicalFilter,
    LogicalJoin,
    LogicalNode,
    LogicalProject,
    input_of,
    join,
    project,
)
from flinkpy.sql.rex.relational_terms import JoinKind
from flinkpy.sql.rex.rex_nodes import Rex, RexInput, inputs_of
from flinkpy.sql.rules.conditions import conjunction, conjuncts, is_call, moved_inputs
from flinkpy.sql.rules.estimates import rows_of, share
from flinkpy.sql.rules.rule_phases import RuleContext


def joins_ordered(node: LogicalNode, context: RuleContext) -> LogicalNode:
    """The plan with each tree of inner joins in a better order."""
    if isinstance(node, LogicalJoin) and node.kind is JoinKind.INNER:
        found = _Tree.of(node)
        relations = [joins_ordered(each, context) for each in found.relations]
        if len(relations) > 2 and (context.is_batch or _has_cross_product(node)):
            return _ordered(relations, found.conditions, node)
    inputs = tuple(joins_ordered(each, context) for each in node.inputs)
    if any(new is not old for new, old in zip(inputs, node.inputs)):
        return node.with_inputs(inputs)
    return node


def _has_cross_product(node: LogicalNode) -> bool:
    if not isinstance(node, LogicalJoin) or node.kind is not JoinKind.INNER:
        return False
    return node.condition is None or any(map(_has_cross_product, node.inputs))


@dataclass(frozen=True)
class _Tree:
    """Relations that are joined, and conditions over the columns of all of them in order."""

    relations: tuple[LogicalNode, ...]
    conditions: tuple[Rex, ...]

    @staticmethod
    def of(node: LogicalNode) -> _Tree:
        if not isinstance(node, LogicalJoin) or node.kind is not JoinKind.INNER:
            return _Tree((node,), ())
        left, right = _Tree.of(node.left), _Tree.of(node.right)
        width = node.left.width
        places = {index: index + width for index in range(node.right.width)}
        moved = tuple(moved_inputs(each, places) for each in right.conditions)
        return _Tree(
            left.relations + right.relations, (*left.conditions, *moved, *conjuncts(node.condition))
        )


@dataclass(frozen=True)
class _Part:
    """Some of the relations, joined: ``columns`` says which column of all stands where."""

    plan: LogicalNode
    columns: tuple[int, ...]
    rows: float
    first: int  # the place of its first relation in the text


def _ordered(
    relations: Sequence[LogicalNode], conditions: Sequence[Rex], node: LogicalJoin
) -> LogicalNode:
    parts: list[_Part] = []
    start = 0
    for place, each in enumerate(relations):
        columns = tuple(range(start, start + each.width))
        parts.append(_Part(each, columns, rows_of(each), place))
        start += each.width
    values = _distinct_values(relations, conditions)
    pending = list(dict.fromkeys(conditions))
    while len(parts) > 1:
        one, other = _best_pair(parts, pending, values)
        made, used = _joined(one, other, pending, values)
        pending = [each for each in pending if each not in used]
        parts = [each for each in parts if each is not one and each is not other] + [made]
    whole = parts[0]
    at = {column: place for place, column in enumerate(whole.columns)}
    columns_in_order = [input_of(whole.plan, at[column]) for column in range(start)]
    return project(whole.plan, columns_in_order, node.schema.names)


def _best_pair(
    parts: Sequence[_Part], conditions: Sequence[Rex], values: dict[int, float]
) -> tuple[_Part, _Part]:
    best: tuple[tuple[bool, float, int, int], _Part, _Part] | None = None
    for place, one in enumerate(parts):
        for other in parts[place + 1 :]:
            between = _between(one, other, conditions)
            has_key = any(is_call(each, "=") for each in between)
            rows = _rows(one, other, between, values)
            order = (not has_key, rows, min(one.first, other.first), max(one.first, other.first))
            if best is None or order < best[0]:
                best = (order, one, other)
    assert best is not None
    _, one, other = best
    return (one, other) if one.rows >= other.rows else (other, one)


def _between(one: _Part, other: _Part, conditions: Sequence[Rex]) -> list[Rex]:
    both = frozenset(one.columns) | frozenset(other.columns)
    return [each for each in conditions if inputs_of(each) <= both]


def _rows(one: _Part, other: _Part, between: Sequence[Rex], values: dict[int, float]) -> float:
    shares = [1.0]
    rest = 1.0
    for each in between:
        if is_call(each, "=") and all(isinstance(side, RexInput) for side in each.operands):
            values_of_one = min(values[index] for index in inputs_of(each))
            shares.append(1.0 / max(1.0, values_of_one))  # a table without rows has none
        else:
            rest *= share(each)
    return max(1.0, one.rows * other.rows * min(shares) * rest)


def _joined(
    one: _Part, other: _Part, conditions: Sequence[Rex], values: dict[int, float]
) -> tuple[_Part, list[Rex]]:
    used = _between(one, other, conditions)
    columns = one.columns + other.columns
    places = {column: place for place, column in enumerate(columns)}
    condition = conjunction([moved_inputs(each, places) for each in used])
    plan = join(one.plan, other.plan, JoinKind.INNER, condition)
    rows = _rows(one, other, used, values)
    return _Part(plan, columns, rows, min(one.first, other.first)), used


def _distinct_values(
    relations: Sequence[LogicalNode], conditions: Sequence[Rex]
) -> dict[int, float]:
    """For each column how many values it may have: as many rows as the smallest table has whose
    column it is equal to, directly or by others."""
    values: dict[int, float] = {}
    start = 0
    for each in relations:
        rows = _unfiltered_rows(each)
        for column in range(start, start + each.width):
            values[column] = rows
        start += each.width
    pairs = [
        tuple(inputs_of(each))
        for each in conditions
        if is_call(each, "=") and all(isinstance(side, RexInput) for side in each.operands)
    ]
    changed = True
    while changed:
        changed = False
        for pair in pairs:
            least = min(values[column] for column in pair)
            for column in pair:
                if values[column] > least:
                    values[column] = least
                    changed = True
    return values


def _unfiltered_rows(node: LogicalNode) -> float:
    while isinstance(node, (LogicalFilter, LogicalProject)):
        node = node.input
    if isinstance(node, LogicalJoin) and node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return _unfiltered_rows(node.left)
    return rows_of(node)
