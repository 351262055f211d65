"""A subquery that reads the query around it becomes one that does not: the conditions that compare
its columns with outer ones are pulled up, out of the subquery, and become those of a join."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from flinkpy.sql.logical.logical_nodes import (
    LogicalAggregate,
    LogicalFilter,
    LogicalJoin,
    LogicalNode,
    LogicalProject,
    LogicalRank,
    LogicalSort,
    aggregate,
    filtered,
    input_of,
    join,
    project,
    walk_plan,
)
from flinkpy.sql.logical.logical_rex import RexOuter
from flinkpy.sql.rex.relational_terms import JoinKind
from flinkpy.sql.rex.rex_nodes import Rex, RexInput, inputs_of, rewritten, walk
from flinkpy.sql.rules.conditions import conjunction, conjuncts, is_call, moved_inputs
from flinkpy.sql.sql_errors import ValidationError

_WAY_OUT = (
    "compare columns of the subquery with those of the query around it by '=' in its WHERE, or "
    "write a join"
)


@dataclass(frozen=True)
class Pulled:
    """A relation that reads nothing from outside, and what has to be true of it and of the outer
    slots. Its first columns are those that it had; some may have been added."""

    plan: LogicalNode
    conditions: tuple[Rex, ...] = ()


def reads_outside(rex: Rex) -> bool:
    """Whether an outer slot stands in it."""
    return any(isinstance(each, RexOuter) for each in walk(rex))


def is_correlated(plan: LogicalNode) -> bool:
    """Whether any expression in the plan reads an outer slot."""
    return any(reads_outside(rex) for node in walk_plan(plan) for rex in node.expressions)


def pulled(node: LogicalNode, only_whether: bool = False) -> Pulled:
    """The relation without its outer conditions. ``only_whether``: it matters whether there are
    rows, not how often a row is there."""
    if not is_correlated(node):
        return Pulled(node)
    if isinstance(node, LogicalFilter):
        return _filter(node, only_whether)
    if isinstance(node, LogicalProject):
        return _project(node, only_whether)
    if isinstance(node, LogicalAggregate):
        return _aggregate(node)
    if isinstance(node, LogicalJoin):
        return _join(node, only_whether)
    if isinstance(node, LogicalSort):
        return _sort(node)
    raise _refused(node)


def _refused(node: LogicalNode) -> ValidationError:
    name = type(node).__name__.removeprefix("Logical")
    return ValidationError(
        f"This correlated subquery is not supported (its {name} depends on the outer query); "
        f"{_WAY_OUT}"
    )


def _filter(node: LogicalFilter, only_whether: bool) -> Pulled:
    below = pulled(node.input, only_whether)
    own = [each for each in conjuncts(node.condition) if not reads_outside(each)]
    outer = [each for each in conjuncts(node.condition) if reads_outside(each)]
    return Pulled(filtered(below.plan, conjunction(own)), (*below.conditions, *outer))


def _project(node: LogicalProject, only_whether: bool) -> Pulled:
    below = pulled(node.input, only_whether)
    known = _equal_columns(below)
    columns = [_without_outer(each, known) for each in node.projections]
    places: dict[int, int] = {}
    for index in _inputs(below.conditions):
        reference = input_of(below.plan, index)
        if reference not in columns:
            columns.append(reference)
        places[index] = columns.index(reference)
    names = [*node.schema.names, *(f"$c{place}" for place in range(node.width, len(columns)))]
    plan = project(below.plan, columns, names)
    return Pulled(plan, tuple(moved_inputs(each, places) for each in below.conditions))


def _equal_columns(found: Pulled) -> dict[int, RexInput]:
    """The columns that are equal to outer slots."""
    known: dict[int, RexInput] = {}
    for each in found.conditions:
        if is_call(each, "="):
            one, other = each.operands
            if isinstance(one, RexOuter) and isinstance(other, RexInput):
                known[one.slot] = other
            if isinstance(other, RexOuter) and isinstance(one, RexInput):
                known[other.slot] = one
    return known


def _without_outer(rex: Rex, known: dict[int, RexInput]) -> Rex:
    """The expression with outer slots replaced by columns that are equal to them."""

    def change(each: Rex) -> Rex:
        if not isinstance(each, RexOuter):
            return each
        if each.slot not in known:
            raise ValidationError(
                "This correlated subquery is not supported (it computes with an outer column); "
                f"{_WAY_OUT}",
                span=rex.span,
            )
        return known[each.slot]

    return rewritten(rex, change)


def _aggregate(node: LogicalAggregate) -> Pulled:
    """Values that are compared with outer ones become keys, so that each outer row meets its own
    group."""
    if node.grouping_sets is not None:
        raise _refused(node)
    below = pulled(node.input)
    plan = below.plan
    columns: list[Rex] = [input_of(plan, index) for index in range(plan.width)]
    compared: list[tuple[Rex, Rex]] = []  # an expression over the input, and the outer condition
    for each in below.conditions:
        inner = _inner_side(each)
        if inner is None:
            raise ValidationError(
                "This correlated subquery is not supported (it aggregates rows that are compared "
                f"with outer ones otherwise than by '='); {_WAY_OUT}",
                span=each.span,
            )
        compared.append((inner, each))
    for inner, _ in compared:
        if inner not in columns:
            columns.append(inner)
    if len(columns) > plan.width:
        names = [*plan.schema.names, *(f"$c{i}" for i in range(plan.width, len(columns)))]
        plan = project(plan, columns, names)
    added = list(dict.fromkeys(columns.index(inner) for inner, _ in compared))
    keys = [*node.keys, *added]
    count = len(node.keys)
    made = aggregate(plan, keys, node.calls, node.schema.names[count:])
    order = [*range(count), *range(len(keys), made.width), *range(count, len(keys))]
    shown = project(
        made,
        [input_of(made, place) for place in order],
        [made.schema.names[place] for place in order],
    )
    conditions = []
    for inner, condition in compared:
        place = node.width + added.index(columns.index(inner))
        key = input_of(shown, place)
        one, other = condition.operands
        sides = (key, other) if one == inner else (one, key)
        conditions.append(condition.with_operands(sides))
    return Pulled(shown, tuple(conditions))


def _inner_side(condition: Rex) -> Rex | None:
    """What an equality compares with outer values alone."""
    if not is_call(condition, "=", "IS NOT DISTINCT FROM"):
        return None
    one, other = condition.operands
    if not reads_outside(one) and not inputs_of(other):
        return one
    if not reads_outside(other) and not inputs_of(one):
        return other
    return None


def _join(node: LogicalJoin, only_whether: bool) -> Pulled:
    if only_whether and node.kind is JoinKind.SEMI:  # a row that is there twice is there
        inner = join(node.left, node.right, JoinKind.INNER, node.condition)
        columns = [input_of(inner, index) for index in range(node.width)]
        return _project(project(inner, columns, node.schema.names), only_whether)
    left = pulled(node.left, only_whether)
    right = pulled(node.right, only_whether)
    is_inner = node.kind is JoinKind.INNER
    if right.conditions and not is_inner:
        raise _refused(node)
    own = [each for each in conjuncts(node.condition) if not reads_outside(each)]
    outer = [each for each in conjuncts(node.condition) if reads_outside(each)]
    if outer and not is_inner:
        raise _refused(node)
    width, by = node.left.width, left.plan.width
    over = {index: index for index in range(width)}
    over |= {width + index: by + index for index in range(node.right.width)}
    condition = conjunction([moved_inputs(each, over) for each in own])
    made = join(left.plan, right.plan, node.kind, condition, node.null_aware)
    if not is_inner:
        return Pulled(made, left.conditions)
    moved = [moved_inputs(each, over) for each in outer]
    rights = {index: by + index for index in range(right.plan.width)}
    moved += [moved_inputs(each, rights) for each in right.conditions]
    first = [*range(width), *range(by, by + node.right.width)]
    rest = [index for index in range(made.width) if index not in first]
    order = [*first, *rest]
    if order == list(range(made.width)):
        return Pulled(made, (*left.conditions, *moved))
    places = {index: place for place, index in enumerate(order)}
    shown = project(
        made,
        [input_of(made, index) for index in order],
        [made.schema.names[index] for index in order],
    )
    conditions = (*left.conditions, *moved)
    return Pulled(shown, tuple(moved_inputs(each, places) for each in conditions))


def _sort(node: LogicalSort) -> Pulled:
    """The order of a subquery does not matter; its first rows are those of each outer row."""
    below = pulled(node.input)
    if node.limit is None and not node.offset:
        return below
    partition = []
    for each in below.conditions:
        inner = _inner_side(each)
        if not isinstance(inner, RexInput):
            raise _refused(node)
        partition.append(inner.index)
    if node.limit is None:
        raise _refused(node)
    plan = LogicalRank(
        below.plan.schema,
        below.plan,
        "ROW_NUMBER",
        tuple(dict.fromkeys(partition)),
        node.keys,
        node.offset + 1,
        node.offset + node.limit,
    )
    return Pulled(plan, below.conditions)


def _inputs(rexes: Iterable[Rex]) -> list[int]:
    return sorted(frozenset[int]().union(*map(inputs_of, rexes)))


def over_both(condition: Rex, outer: Sequence[Rex], width: int) -> Rex:
    """The condition over the columns of the outer relation, and behind them those of the
    subquery."""

    def change(each: Rex) -> Rex:
        if isinstance(each, RexInput):
            return replace(each, index=each.index + width)
        return outer[each.slot] if isinstance(each, RexOuter) else each

    return rewritten(condition, change)
