"""Joins: outer ones that need not be, semi-joins before joins, keys that are expressions."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.sql.logical.logical_nodes import (
    LogicalFilter,
    LogicalJoin,
    LogicalNode,
    LogicalProject,
    LogicalTemporalJoin,
    filtered,
    input_of,
    joined_schema,
    project,
    temporal_schema,
)
from flinkpy.sql.rex.relational_terms import JoinKind
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexInput, inputs_of, shifted, walk
from flinkpy.sql.rules.conditions import (
    COMPARISONS,
    comparison,
    conjunction,
    conjuncts,
    disjunction,
    disjuncts,
    is_call,
    is_over,
    moved_inputs,
    replaced_inputs,
)
from flinkpy.sql.rules.estimates import rows_of
from flinkpy.sql.rules.rule_phases import RuleContext

_ONE_SIDE = (JoinKind.SEMI, JoinKind.ANTI)
_STRICT = COMPARISONS | {"LIKE", "IN", "+", "-", "*", "/", "CAST"}


def outer_join_simplified(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """An outer join whose filled-up rows a filter throws away is none."""
    if not isinstance(node, LogicalFilter) or not isinstance(node.input, LogicalJoin):
        return None
    below = node.input
    if below.kind not in (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL):
        return None
    width = below.left.width
    parts = conjuncts(node.condition)
    needs_left = any(_is_null_without(each, 0, width) for each in parts)
    needs_right = any(_is_null_without(each, width, below.width) for each in parts)
    kind = _kind(
        keeps_left=below.kind in (JoinKind.LEFT, JoinKind.FULL) and not needs_right,
        keeps_right=below.kind in (JoinKind.RIGHT, JoinKind.FULL) and not needs_left,
    )
    if kind is below.kind:
        return None
    made = replace(
        below, kind=kind, schema=joined_schema(below.left.schema, below.right.schema, kind)
    )
    return replace(node, input=made)


def _kind(keeps_left: bool, keeps_right: bool) -> JoinKind:
    if keeps_left:
        return JoinKind.FULL if keeps_right else JoinKind.LEFT
    return JoinKind.RIGHT if keeps_right else JoinKind.INNER


def _is_null_without(condition: Rex, first: int, end: int) -> bool:
    """Whether the condition is not true where the columns from ``first`` to ``end`` are null."""
    if is_call(condition, "IS NOT NULL"):
        return _is_strict(condition.operands[0], first, end)
    if is_call(condition, *COMPARISONS, "LIKE", "IN"):
        return _is_strict(condition, first, end)
    return False


def _is_strict(rex: Rex, first: int, end: int) -> bool:
    if isinstance(rex, RexInput):
        return first <= rex.index < end
    if is_call(rex, "IN"):
        return _is_strict(rex.operands[0], first, end)
    return is_call(rex, *_STRICT) and any(_is_strict(each, first, end) for each in rex.operands)


def semi_join_through_join(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """Rows are thrown away before they are joined, if what they are looked up in is small: else the
    joins are worth more first."""
    if not isinstance(node, LogicalJoin) or node.kind not in _ONE_SIDE:
        return None
    below = node.left
    if not isinstance(below, LogicalJoin) or below.kind is not JoinKind.INNER:
        return None
    width, inner = node.left.width, below.left.width
    read = frozenset[int]().union(*(inputs_of(each) for each in conjuncts(node.condition)))
    left = {index for index in read if index < width}
    if not left:
        return None
    looked_up = rows_of(node.right)
    if all(index < inner for index in left):
        if looked_up >= rows_of(below.left):
            return None
        places = {index: index for index in left}
        places |= {index: index - width + inner for index in read if index >= width}
        return replace(below, left=_moved_semi(node, below.left, places))
    if all(index >= inner for index in left) and looked_up < rows_of(below.right):
        places = {index: index - inner for index in read}
        return replace(below, right=_moved_semi(node, below.right, places))
    return None


def _moved_semi(node: LogicalJoin, over: LogicalNode, places: dict[int, int]) -> LogicalJoin:
    condition = conjunction([moved_inputs(each, places) for each in conjuncts(node.condition)])
    return replace(node, left=over, schema=over.schema, condition=condition)


def semi_join_through_project(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """A semi-join over renamed columns is one over the columns."""
    if not isinstance(node, LogicalJoin) or node.kind not in _ONE_SIDE:
        return None
    below = node.left
    if not isinstance(below, LogicalProject):
        return None
    if not all(isinstance(each, RexInput) for each in below.projections):
        return None
    inner = below.input.width
    rights = [
        RexInput(each.type, index=inner + place)
        for place, each in enumerate(node.right.schema.fields)
    ]
    columns = [*below.projections, *rights]
    condition = conjunction([replaced_inputs(each, columns) for each in conjuncts(node.condition)])
    made = replace(node, left=below.input, schema=below.input.schema, condition=condition)
    return replace(below, input=made)


def with_implied_filters(node: LogicalNode, context: RuleContext) -> LogicalNode:
    """``(a AND x) OR (b AND y)`` over both sides of a join implies ``a OR b`` over one and
    ``x OR y`` over the other: rows for which that is not so are not joined at all."""
    inputs = tuple(with_implied_filters(each, context) for each in node.inputs)
    if any(new is not old for new, old in zip(inputs, node.inputs)):
        node = node.with_inputs(inputs)
    if not isinstance(node, LogicalJoin) or node.kind is not JoinKind.INNER:
        return node
    width = node.left.width
    lefts: list[Rex] = []
    rights: list[Rex] = []
    for each in conjuncts(node.condition):
        if not _is_deterministic(each, context):
            continue
        lefts += _implied(each, 0, width)
        rights += [shifted(found, -width) for found in _implied(each, width, node.width)]
    if not (lefts or rights):
        return node
    return replace(
        node,
        left=filtered(node.left, conjunction(lefts)),
        right=filtered(node.right, conjunction(rights)),
    )


def _is_deterministic(rex: Rex, context: RuleContext) -> bool:
    calls = (each for each in walk(rex) if isinstance(each, RexCall))
    return all(context.is_deterministic(each.function) for each in calls)


def _implied(condition: Rex, first: int, end: int) -> list[Rex]:
    """What an alternative says of these columns alone: nothing, if one of its parts does not."""
    if not is_call(condition, "OR") or is_over(condition, first, end):
        return []
    parts = []
    for each in disjuncts(condition):
        own = conjunction([part for part in conjuncts(each) if is_over(part, first, end)])
        if own is None:
            return []
        parts.append(own)
    found = disjunction(parts)
    return [] if found is None else [found]


def keys_as_columns(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """``f(a) = g(b)`` is an equality of columns that are computed below the join."""
    if not isinstance(node, (LogicalJoin, LogicalTemporalJoin)) or node.condition is None:
        return None
    width = node.left.width
    end = width + node.right.width
    lefts: list[Rex] = []
    rights: list[Rex] = []
    equal: list[tuple[Rex, Rex, str]] = []
    rest: list[Rex] = []
    for each in conjuncts(node.condition):
        sides = equal_sides(each, width, end)
        if sides is None or all(isinstance(side, RexInput) for side in sides):
            rest.append(each)
            continue
        left, right = sides
        lefts.append(left)
        rights.append(shifted(right, -width))
        assert is_call(each, "=", "IS NOT DISTINCT FROM")
        equal.append((left, right, getattr(each, "function", "=")))
    if not equal:
        return None
    left_input = _with_columns(node.left, lefts)
    right_input = _with_columns(node.right, rights)
    places = {index: index for index in range(width)}
    places |= {index: index + len(lefts) for index in range(width, end)}
    conditions = [moved_inputs(each, places) for each in rest]
    for number, (left, right, function) in enumerate(equal):
        one = RexInput(left.type, index=width + number)
        other = RexInput(right.type, index=end + len(lefts) + number)
        conditions.append(comparison(one, other, function))
    schema_of = temporal_schema if isinstance(node, LogicalTemporalJoin) else joined_schema
    made = replace(
        node,
        schema=schema_of(left_input.schema, right_input.schema, node.kind),
        left=left_input,
        right=right_input,
        condition=conjunction(conditions),
    )
    kept = list(range(width))
    if node.kind not in _ONE_SIDE:
        kept += range(width + len(lefts), end + len(lefts))
    return project(made, [input_of(made, index) for index in kept], node.schema.names)


def equal_sides(condition: Rex, width: int, end: int) -> tuple[Rex, Rex] | None:
    """The two sides of an equality, if one is over the left and one over the right; each in the
    numbers of both."""
    if not is_call(condition, "=", "IS NOT DISTINCT FROM"):
        return None
    one, other = condition.operands
    if not inputs_of(one) or not inputs_of(other):
        return None
    if is_over(one, 0, width) and is_over(other, width, end):
        return one, other
    if is_over(other, 0, width) and is_over(one, width, end):
        return other, one
    return None


def _with_columns(node: LogicalNode, columns: list[Rex]) -> LogicalNode:
    everything: list[Rex] = [input_of(node, index) for index in range(node.width)]
    names = [*node.schema.names, *(f"$k{place}" for place in range(len(columns)))]
    return project(node, [*everything, *columns], names)
