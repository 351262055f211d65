"""From the optimised logical plan to the operators that run it in BATCH, and the exchanges between
them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from flinkpy.common.logical_types.logical_type import RowType, TimeAttribute
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
    LogicalSink,
    LogicalSort,
    LogicalTemporalJoin,
    LogicalValues,
    LogicalWatermark,
    LogicalWindow,
)
from flinkpy.sql.physical.as_of.lookups import lookup_join
from flinkpy.sql.physical.calcs import calc
from flinkpy.sql.physical.grouping_sets import expanded
from flinkpy.sql.physical.interval_bounds import time_mark
from flinkpy.sql.physical.join_keys import JoinKeys, keys_of
from flinkpy.sql.physical.physical_nodes import (
    CollectNode,
    Correlate,
    Exchange,
    HashAggregate,
    HashJoin,
    Limit,
    OverAggregate,
    Phase,
    PhysicalNode,
    Rank,
    SinkNode,
    Sort,
    TableScan,
    UnionAll,
    ValuesNode,
    WindowTableFunction,
)
from flinkpy.sql.rex.relational_terms import JoinKind, WindowKind
from flinkpy.sql.rex.rex_nodes import AggregateCall
from flinkpy.sql.rules.estimates import groups_of, rows_of
from flinkpy.sql.sql_errors import ValidationError

# What can be computed in two phases, first where the rows are.
IN_PARTS = frozenset(
    ["COUNT", "SUM", "SUM0", "MIN", "MAX", "AVG"]
    + ["STDDEV_POP", "STDDEV_SAMP", "STDDEV", "VAR_POP", "VAR_SAMP", "VARIANCE"]
)
GROUPS_IN_PARTS = 10_000  # with more of them, the first phase makes few rows of many no longer


def batch_plan(node: LogicalNode) -> PhysicalNode:
    """The operators for this relation, when all of its inputs end."""
    planned = _PLANNERS.get(type(node))
    if planned is None:
        raise ValidationError(f"{type(node).__name__} cannot be planned in BATCH")
    result: PhysicalNode = planned(node)
    return result


def exchanged(
    input: PhysicalNode, keys: Sequence[int] = (), is_broadcast: bool = False
) -> Exchange:
    """The rows, sent to whom they belong."""
    return Exchange(input.schema, input, tuple(keys), is_broadcast)


# -- sources ---------------------------------------------------------------------------------------


def table_scan(node: LogicalScan) -> PhysicalNode:
    """The scan of a table."""
    if not node.abilities.is_scanned:
        raise ValidationError(
            f"Table '{node.path}' can only be looked up: JOIN it FOR SYSTEM_TIME AS OF a column of "
            "PROCTIME()"
        )
    return TableScan(
        node.schema,
        node.path,
        node.table,
        node.metadata,
        node.filters,
        None,
        node.limit,
        changes=node.abilities.changes,
    )


def _final_scan(node: LogicalScan) -> PhysicalNode:
    """The scan of a table in BATCH, where a row that was read stays."""
    if not node.abilities.changes.is_insert_only:
        raise ValidationError(
            "Querying a table in batch mode is currently only possible for INSERT-only table "
            f"sources. But the source for table '{node.path}' produces other changelog messages "
            "than just INSERT; set 'execution.runtime-mode' to STREAMING"
        )
    return table_scan(node)


def values(node: LogicalValues) -> PhysicalNode:
    """Rows that stand in the statement."""
    return ValuesNode(node.schema, node.rows)


# -- row by row ------------------------------------------------------------------------------------


def _project(node: LogicalProject) -> PhysicalNode:
    return calc(batch_plan(node.input), node.projections, None, node.schema)


def _filter(node: LogicalFilter) -> PhysicalNode:
    return calc(batch_plan(node.input), None, node.condition, node.schema)


def _correlate(node: LogicalCorrelate) -> PhysicalNode:
    return correlate(node, batch_plan(node.input))


def correlate(node: LogicalCorrelate, input: PhysicalNode) -> PhysicalNode:
    """Each row with what a table function makes of it."""
    return Correlate(
        node.schema,
        input,
        node.function,
        node.arguments,
        node.result,
        node.keeps_left,
        node.condition,
        node.options,
        node.kept,
    )


def _watermark(node: LogicalWatermark) -> PhysicalNode:
    input = batch_plan(node.input)  # without watermarks: all rows are there at the end
    return replace(input, schema=node.schema)


# -- groups ----------------------------------------------------------------------------------------


def _window(node: LogicalWindow) -> PhysicalNode:
    return window_rows(node, batch_plan(node.input))


def window_rows(node: LogicalWindow, input: PhysicalNode) -> PhysicalNode:
    """The rows with their windows. Those of one session must meet first."""
    if node.window.kind is WindowKind.SESSION:
        input = exchanged(input, node.window.partition)
    return WindowTableFunction(node.schema, input, node.window)


def _aggregate(node: LogicalAggregate) -> PhysicalNode:
    if node.grouping_sets is not None:
        return expanded(node, lambda plain, input: _hash_aggregate(plain, input), batch_plan)
    return _hash_aggregate(node, batch_plan(node.input))


def _hash_aggregate(node: LogicalAggregate, input: PhysicalNode) -> PhysicalNode:
    count = len(node.keys)
    if groups_of(node) <= GROUPS_IN_PARTS and all(map(is_in_parts, node.calls)):
        local = HashAggregate(
            partial_schema(node, input), input, node.keys, node.calls, Phase.LOCAL
        )
        keys = tuple(range(count))
        return HashAggregate(node.schema, exchanged(local, keys), keys, node.calls, Phase.GLOBAL)
    return HashAggregate(node.schema, exchanged(input, node.keys), node.keys, node.calls)


def is_in_parts(call: AggregateCall) -> bool:
    """Whether it can be computed in two phases."""
    return call.function in IN_PARTS and not call.distinct and not call.order_by


def partial_schema(node: LogicalAggregate, input: PhysicalNode) -> RowType:
    """What the first phase gives, as far as a plan says it: each call has columns of its own."""
    return node.schema


def _over(node: LogicalOver) -> PhysicalNode:
    input = batch_plan(node.input)
    partition = node.groups[0].partition
    if any(set(each.partition) != set(partition) for each in node.groups):
        shared = set(partition).intersection(*(each.partition for each in node.groups))
        partition = tuple(each for each in partition if each in shared)
    return OverAggregate(node.schema, exchanged(input, partition), node.groups)


def _rank(node: LogicalRank) -> PhysicalNode:
    return rank(node, exchanged(batch_plan(node.input), node.partition))


def rank(node: LogicalRank, input: PhysicalNode) -> PhysicalNode:
    """The first rows of each partition."""
    return Rank(
        node.schema,
        input,
        node.function,
        node.partition,
        node.keys,
        node.first,
        node.last,
        node.gives_rank,
    )


# -- order -----------------------------------------------------------------------------------------


def _sort(node: LogicalSort) -> PhysicalNode:
    input = batch_plan(node.input)
    if not node.keys:
        return limited(node, input)
    if node.limit is not None:
        first = Sort(input.schema, input, node.keys, 0, node.offset + node.limit)
        return Sort(node.schema, exchanged(first), node.keys, node.offset, node.limit)
    return Sort(node.schema, exchanged(input), node.keys, node.offset, node.limit)


def limited(node: LogicalSort, input: PhysicalNode) -> PhysicalNode:
    """Some rows: each sender gives no more than are wanted."""
    if node.limit is not None:
        input = Limit(input.schema, input, 0, node.offset + node.limit)
    return Limit(node.schema, exchanged(input), node.offset, node.limit)


# -- how rows meet ---------------------------------------------------------------------------------


def _join(node: LogicalJoin) -> PhysicalNode:
    left, right = batch_plan(node.left), batch_plan(node.right)
    keys = keys_of(node)
    left_rows, right_rows = rows_of(node.left), rows_of(node.right)
    builds_left = bool(keys.left) and not node.null_aware and left_rows < right_rows
    left, right = _distributed(node, left, right, keys, (left_rows, right_rows))
    return HashJoin(
        node.schema,
        left,
        right,
        node.kind,
        keys.left,
        keys.right,
        keys.null_safe,
        keys.rest,
        node.null_aware,
        builds_left,
    )


def _distributed(
    node: LogicalJoin,
    left: PhysicalNode,
    right: PhysicalNode,
    keys: JoinKeys,
    rows: tuple[float, float],
) -> tuple[PhysicalNode, PhysicalNode]:
    """Equal keys go to one subtask; a small side, and one without keys, goes to all of them."""
    if keys.left and not node.null_aware:
        return exchanged(left, keys.left), exchanged(right, keys.right)
    if node.kind in (JoinKind.RIGHT, JoinKind.FULL):
        return exchanged(left), exchanged(right)
    return left, exchanged(right, (), is_broadcast=True)


def _temporal_join(node: LogicalTemporalJoin) -> PhysicalNode:
    if time_mark(node.left.schema.fields[node.time].type) is TimeAttribute.PROCTIME:
        return lookup_join(node, batch_plan(node.left))
    raise ValidationError(
        "Event-time temporal join is not supported in batch mode; set 'execution.runtime-mode' to "
        "STREAMING, or join the version that is valid by a condition between times"
    )


def _set_operation(node: LogicalSetOperation) -> PhysicalNode:
    if node.kind != "UNION" or not node.keeps_all:
        raise ValidationError(f"{node.kind} is still to be rewritten")
    return UnionAll(node.schema, tuple(map(batch_plan, node.branches)))


# -- sinks -----------------------------------------------------------------------------------------


def _sink(node: LogicalSink) -> PhysicalNode:
    return sink(node, batch_plan(node.input))


def sink(node: LogicalSink, input: PhysicalNode) -> PhysicalNode:
    """The rows go into a table."""
    names = node.schema.names
    key = () if node.table.primary_key is None else node.table.primary_key.columns
    return SinkNode(
        node.schema,
        input,
        node.path,
        node.table,
        node.overwrite,
        node.static_partition,
        node.metadata,
        node.changes,
        tuple(names.index(each) for each in key),
    )


def collected(input: PhysicalNode) -> PhysicalNode:
    """The rows go to whoever asked."""
    return CollectNode(input.schema, input)


_Planner = Callable[[Any], PhysicalNode]
_PLANNERS: dict[type[LogicalNode], _Planner] = {
    LogicalScan: _final_scan,
    LogicalValues: values,
    LogicalProject: _project,
    LogicalFilter: _filter,
    LogicalCorrelate: _correlate,
    LogicalWatermark: _watermark,
    LogicalWindow: _window,
    LogicalAggregate: _aggregate,
    LogicalOver: _over,
    LogicalRank: _rank,
    LogicalSort: _sort,
    LogicalJoin: _join,
    LogicalTemporalJoin: _temporal_join,
    LogicalSetOperation: _set_operation,
    LogicalSink: _sink,
}
