"""Filters go down to where the rows come from: each rule moves conditions through one kind of
node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from flinkpy.sql.logical.logical_nodes import (
    LogicalAggregate,
    LogicalCorrelate,
    LogicalFilter,
    LogicalJoin,
    LogicalNode,
    LogicalOver,
    LogicalProject,
    LogicalRank,
    LogicalScan,
    LogicalSetOperation,
    LogicalSort,
    LogicalTemporalJoin,
    LogicalValues,
    LogicalWindow,
    filtered,
    input_of,
)
from flinkpy.sql.rex.relational_terms import JoinKind
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, inputs_of, shifted, walk
from flinkpy.sql.rules.conditions import (
    conjunction,
    conjuncts,
    is_never_true,
    is_over,
    is_plain,
    is_true,
    replaced_inputs,
)
from flinkpy.sql.rules.rule_phases import RuleContext


def trivial_filter(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """A condition that is always true goes, one that never is leaves no rows."""
    if not isinstance(node, LogicalFilter):
        return None
    if is_true(node.condition):
        return node.input
    if is_never_true(node.condition):
        return LogicalValues(node.schema, ())
    return None


def filters_merged(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """A filter over a filter is one."""
    if not isinstance(node, LogicalFilter) or not isinstance(node.input, LogicalFilter):
        return None
    both = [*conjuncts(node.input.condition), *conjuncts(node.condition)]
    return filtered(node.input.input, conjunction(dict.fromkeys(both)))


def filter_through_project(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """A condition over computed columns is one over what they are computed from."""
    if not isinstance(node, LogicalFilter) or not isinstance(node.input, LogicalProject):
        return None
    below = node.input
    read = [below.projections[index] for index in inputs_of(node.condition)]
    if not all(is_plain(each) and _is_deterministic(each, context) for each in read):
        return None
    condition = replaced_inputs(node.condition, below.projections)
    return replace(below, input=filtered(below.input, condition))


def filter_through_join(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """A condition over one side goes to that side, one over both becomes the join's."""
    if not isinstance(node, LogicalFilter) or not isinstance(node.input, LogicalJoin):
        return None
    below = node.input
    width = below.left.width
    to_left: list[Rex] = []
    to_right: list[Rex] = []
    joined: list[Rex] = []
    stays: list[Rex] = []
    gives_left = below.kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
    gives_right = below.kind in (JoinKind.INNER, JoinKind.RIGHT)
    for each in conjuncts(node.condition):
        if not _can_move(each, context):
            stays.append(each)
        elif gives_left and is_over(each, 0, width):
            to_left.append(each)
        elif gives_right and is_over(each, width, below.width):
            to_right.append(shifted(each, -width))
        elif below.kind is JoinKind.INNER:
            joined.append(each)
        else:
            stays.append(each)
    if not (to_left or to_right or joined):
        return None
    made = replace(
        below,
        left=filtered(below.left, conjunction(to_left)),
        right=filtered(below.right, conjunction(to_right)),
        condition=conjunction([*conjuncts(below.condition), *joined]),
    )
    return filtered(made, conjunction(stays))


def filter_through_temporal_join(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """A condition over the left goes there. Any other becomes the join's, where a row without a
    partner does not go out."""
    if not isinstance(node, LogicalFilter) or not isinstance(node.input, LogicalTemporalJoin):
        return None
    below = node.input
    to_left: list[Rex] = []
    joined: list[Rex] = []
    stays: list[Rex] = []
    for each in conjuncts(node.condition):
        if not _can_move(each, context):
            stays.append(each)
        elif is_over(each, 0, below.left.width):
            to_left.append(each)
        else:
            (joined if below.kind is JoinKind.INNER else stays).append(each)
    if not (to_left or joined):
        return None
    made = replace(
        below,
        left=filtered(below.left, conjunction(to_left)),
        condition=conjunction([*conjuncts(below.condition), *joined]),
    )
    return filtered(made, conjunction(stays))


def condition_into_sides(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """A part of ON that is over one side only filters that side, where rows without a partner do
    not go out."""
    if not isinstance(node, LogicalJoin) or node.condition is None or node.null_aware:
        return None
    width = node.left.width
    takes_left = node.kind in (JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI)
    takes_right = node.kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
    to_left: list[Rex] = []
    to_right: list[Rex] = []
    stays: list[Rex] = []
    for each in conjuncts(node.condition):
        if not _can_move(each, context):
            stays.append(each)
        elif takes_left and is_over(each, 0, width):
            to_left.append(each)
        elif takes_right and is_over(each, width, width + node.right.width):
            to_right.append(shifted(each, -width))
        else:
            stays.append(each)
    if not (to_left or to_right):
        return None
    return replace(
        node,
        left=filtered(node.left, conjunction(to_left)),
        right=filtered(node.right, conjunction(to_right)),
        condition=conjunction(stays),
    )


def filter_through_aggregate(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """A condition over keys filters the rows before they are grouped."""
    if not isinstance(node, LogicalFilter) or not isinstance(node.input, LogicalAggregate):
        return None
    below = node.input
    if below.grouping_sets is not None or not below.keys:
        return None
    keys = _inputs_at(below.input, below.keys)
    return _moved(node, range(len(below.keys)), keys, context)


def filter_through_set_operation(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """All branches are filtered."""
    if not isinstance(node, LogicalFilter) or not isinstance(node.input, LogicalSetOperation):
        return None
    if not _can_move(node.condition, context):
        return None
    below = node.input
    return replace(below, branches=tuple(filtered(each, node.condition) for each in below.branches))


def filter_through_sort(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """Rows are filtered before they are sorted, if none is cut off."""
    if not isinstance(node, LogicalFilter) or not isinstance(node.input, LogicalSort):
        return None
    below = node.input
    if below.limit is not None or below.offset:
        return None
    return replace(below, input=filtered(below.input, node.condition))


def filter_through_window(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """A condition over columns that were there before is applied before."""
    if not isinstance(node, LogicalFilter):
        return None
    below = node.input
    if isinstance(below, (LogicalWindow, LogicalCorrelate)):
        if isinstance(below, LogicalWindow) and below.window.kind.value == "SESSION":
            return None  # without a row the session may end earlier
        columns: Iterable[int] = range(below.input.width)
    elif isinstance(below, LogicalOver):
        columns = set(below.groups[0].partition).intersection(
            *(each.partition for each in below.groups)
        )
    elif isinstance(below, LogicalRank):
        columns = below.partition
    else:
        return None
    return _moved(node, columns, _inputs_at(below.input, range(below.input.width)), context)


def filter_into_scan(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """The source is asked to leave out what it can; the filter stays. Of rows that replace others
    each counts, also one that no longer passes."""
    if not isinstance(node, LogicalFilter) or not isinstance(node.input, LogicalScan):
        return None
    scan = node.input
    abilities = scan.abilities
    if scan.filters or not abilities.takes_filters or not abilities.changes.is_insert_only:
        return None
    wanted = tuple(each for each in conjuncts(node.condition) if _can_move(each, context))
    return replace(node, input=replace(scan, filters=wanted)) if wanted else None


def limit_into_scan(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """A source of which only some rows are wanted is asked for no more."""
    if not isinstance(node, LogicalSort) or node.keys or node.limit is None:
        return None
    wanted = node.offset + node.limit
    made = _limited(node.input, wanted)
    return None if made is None else replace(node, input=made)


def _limited(node: LogicalNode, wanted: int) -> LogicalNode | None:
    if isinstance(node, LogicalProject):
        below = _limited(node.input, wanted)
        return None if below is None else replace(node, input=below)
    if not isinstance(node, LogicalScan) or not node.abilities.takes_limit:
        return None
    if not node.abilities.changes.is_insert_only:
        return None  # rows may go, and others are wanted then
    return replace(node, limit=wanted) if node.limit is None else None


def _moved(
    node: LogicalFilter, columns: Iterable[int], values: Sequence[Rex], context: RuleContext
) -> LogicalNode | None:
    """The filter with its conditions over ``columns`` below its input."""
    allowed = frozenset(columns)
    moving: list[Rex] = []
    stays: list[Rex] = []
    for each in conjuncts(node.condition):
        may_move = _can_move(each, context) and inputs_of(each) <= allowed
        (moving if may_move else stays).append(each)
    if not moving:
        return None
    below = node.input
    assert len(below.inputs) == 1
    moved = conjunction([replaced_inputs(each, values) for each in moving])
    made = below.with_inputs((filtered(below.inputs[0], moved),))
    return filtered(made, conjunction(stays))


def _inputs_at(node: LogicalNode, places: Iterable[int]) -> list[Rex]:
    return [input_of(node, place) for place in places]


def _can_move(condition: Rex, context: RuleContext) -> bool:
    return is_plain(condition) and _is_deterministic(condition, context)


def _is_deterministic(rex: Rex, context: RuleContext) -> bool:
    return all(
        context.is_deterministic(each.function) for each in walk(rex) if isinstance(each, RexCall)
    )


FILTER_RULES = (
    trivial_filter,
    filters_merged,
    filter_through_project,
    filter_through_join,
    filter_through_temporal_join,
    condition_into_sides,
    filter_through_aggregate,
    filter_through_set_operation,
    filter_through_sort,
    filter_through_window,
)
