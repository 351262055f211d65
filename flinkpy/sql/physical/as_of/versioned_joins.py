"""Joins with the versions of a table: each row meets the row that the table had for its key at the
time of the row. The join keeps the versions itself, so it reads every row of a view that keeps the
last row of each key; and what such a view filters is asked of the version that is met, because a
version that does not pass ends the one before it, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from flinkpy.common.logical_types.logical_type import TimeAttribute
from flinkpy.sql.logical.logical_nodes import (
    LogicalFilter,
    LogicalNode,
    LogicalProject,
    LogicalRank,
    LogicalScan,
    LogicalTemporalJoin,
    LogicalWatermark,
    input_of,
    project,
    temporal_schema,
)
from flinkpy.sql.physical.calcs import calc
from flinkpy.sql.physical.interval_bounds import time_mark
from flinkpy.sql.physical.join_keys import equal_columns
from flinkpy.sql.physical.physical_nodes import Exchange, PhysicalNode, TemporalJoin
from flinkpy.sql.physical.streaming_windows import check_rowtime_kept
from flinkpy.sql.rex.rex_nodes import Rex, RexInput, inputs_of
from flinkpy.sql.rules.conditions import conjunction, conjuncts, is_call, moved_inputs
from flinkpy.sql.sql_errors import ValidationError

_EVENT_TIME = "Event-Time Temporal Table Join"


@dataclass(frozen=True)
class _Versions:
    """All versions of the rows of a relation. ``places`` are its columns among those of ``plan``;
    a version is there if the ``conditions`` over ``plan`` are true. ``key``: whose versions they
    are; None if the rows of ``plan`` replace each other as they are."""

    plan: LogicalNode
    places: tuple[int, ...]
    conditions: tuple[Rex, ...] = ()
    key: tuple[int, ...] | None = None


def versioned_join(
    node: LogicalTemporalJoin, planned: Callable[[LogicalNode], PhysicalNode], state_ttl_ms: int
) -> PhysicalNode:
    """The join, by all columns that are equal; which of them are the key of the versions is found
    when it is known what changes. Raises ValidationError, in Flink's words, where the table has no
    event time, and where nothing is asked for."""
    since = _checked_time(node)
    found = _versions_of(node.right) or _Versions(node.right, tuple(range(node.right.width)))
    width = node.left.width
    moved = {at: at for at in range(width)}
    moved |= {width + at: width + place for at, place in enumerate(found.places)}
    keys, rest = _equal_columns(
        [moved_inputs(each, moved) for each in conjuncts(node.condition)], width
    )
    rest += [moved_inputs(each, _shift(found.plan, width)) for each in found.conditions]
    left_keys = tuple(left for left, _, _ in keys)
    right_keys = tuple(right - width for _, right, _ in keys)
    made = TemporalJoin(
        temporal_schema(node.left.schema, found.plan.schema, node.kind),
        Exchange(node.left.schema, planned(node.left), left_keys),
        Exchange(found.plan.schema, planned(found.plan), right_keys),
        node.kind,
        node.time,
        found.places[since],
        left_keys,
        right_keys,
        tuple(is_safe for _, _, is_safe in keys),
        conjunction(rest),
        found.key,
        state_ttl_ms,
    )
    kept = [*range(width), *(width + place for place in found.places)]
    types = made.schema.fields
    return calc(made, [RexInput(types[at].type, index=at) for at in kept], None, node.schema)


def _checked_time(node: LogicalTemporalJoin) -> int:
    """The column of the right that says from when on a row stands."""
    if node.since is None:
        raise ValidationError(
            f"{_EVENT_TIME} requires both primary key and row time attribute in versioned table, "
            "but no row time attribute can be found; declare WATERMARK FOR its time, or join it as "
            "it is now: FOR SYSTEM_TIME AS OF a column of PROCTIME()",
            span=node.span,
        )
    left, right = (
        each.with_nullable(True)
        for each in (
            node.left.schema.fields[node.time].type,
            node.right.schema.fields[node.since].type,
        )
    )
    if type(left) is not type(right):
        raise ValidationError(
            f"{_EVENT_TIME} requires same rowtime type in left table and versioned table, but the "
            f"rowtime types are {left} and {right}; declare both times alike",
            span=node.span,
        )
    for side in (node.left, node.right):
        check_rowtime_kept(side, "FOR SYSTEM_TIME AS OF")
    return node.since


def _equal_columns(
    conditions: Sequence[Rex], width: int
) -> tuple[list[tuple[int, int, bool]], list[Rex]]:
    """Pairs of columns, and whether two nulls are equal; and the conditions that remain."""
    pairs = [equal_columns(each, width) for each in conditions]
    if not any(pairs):
        raise ValidationError(
            "Currently the join key in Temporal Table Join can not be empty; write ON with an "
            "equality for each column of the primary key of the versioned table"
        )
    keys = [
        (*pair, is_call(each, "IS NOT DISTINCT FROM"))
        for each, pair in zip(conditions, pairs)
        if pair is not None
    ]
    return keys, [each for each, pair in zip(conditions, pairs) if pair is None]


# -- what the versions of a relation are ----------------------------------------------------------


def _versions_of(node: LogicalNode) -> _Versions | None:
    """None where rows have to be asked one by one what replaces them."""
    if isinstance(node, LogicalRank):
        return _last_rows(node)
    if isinstance(node, (LogicalScan, LogicalWatermark)):
        return _of_changes(node)
    if not isinstance(node, (LogicalFilter, LogicalProject)):
        return None
    below = _versions_of(node.input)
    if below is None:
        return None
    places = dict(enumerate(below.places))
    if isinstance(node, LogicalFilter):
        passed = tuple(moved_inputs(each, places) for each in conjuncts(node.condition))
        return replace(below, conditions=(*below.conditions, *passed))
    return _projected(node, below, places)


def _last_rows(node: LogicalRank) -> _Versions | None:
    """The rows of a view that keeps the last row of each key by event time."""
    is_one = node.function == "ROW_NUMBER" and (node.first, node.last) == (1, 1)
    if not is_one or node.gives_rank or len(node.keys) != 1 or not node.keys[0].descending:
        return None
    time = node.input.schema.fields[node.keys[0].index].type
    if time_mark(time) is not TimeAttribute.ROWTIME:
        return None
    return _Versions(node.input, tuple(range(node.width)), key=node.partition)


def _of_changes(node: LogicalNode) -> _Versions | None:
    scan = node
    while isinstance(scan, LogicalWatermark):
        scan = scan.input
    if not isinstance(scan, LogicalScan) or scan.abilities.changes.is_insert_only:
        return None
    return _Versions(node, tuple(range(node.width)))


def _projected(node: LogicalProject, below: _Versions, places: dict[int, int]) -> _Versions:
    """The columns of a projection, and behind them what the conditions and the key read."""
    columns = [moved_inputs(each, places) for each in node.projections]
    key = below.key or ()
    read = sorted(frozenset(key).union(*map(inputs_of, below.conditions)))
    extra = [input_of(below.plan, at) for at in read]
    width = len(columns)
    moved = {at: width + place for place, at in enumerate(read)}
    moved |= {
        each.index: place
        for place, each in enumerate(columns)
        if isinstance(each, RexInput) and each.index in key
    }
    names = [*node.schema.names, *(f"{below.plan.schema.names[at]}_of_version" for at in read)]
    return _Versions(
        project(below.plan, [*columns, *extra], names),
        tuple(range(width)),
        tuple(moved_inputs(each, moved) for each in below.conditions),
        None if below.key is None else tuple(moved[at] for at in key),
    )


def _shift(plan: LogicalNode, width: int) -> dict[int, int]:
    return {at: width + at for at in range(plan.width)}
