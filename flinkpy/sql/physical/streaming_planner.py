"""The operators of STREAMING. Where a node has a simpler form for rows that are only added, or may
not take changes at all, ``flinkpy.sql.changes`` decides: here nobody knows yet what changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from flinkpy.common.logical_types.logical_type import TimeAttribute
from flinkpy.common.types import RowKind
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
    row_of,
)
from flinkpy.sql.physical.aggregate_phases import in_two_phases, is_in_phases
from flinkpy.sql.physical.as_of.lookups import lookup_join
from flinkpy.sql.physical.as_of.versioned_joins import versioned_join
from flinkpy.sql.physical.calcs import calc
from flinkpy.sql.physical.grouping_sets import expanded
from flinkpy.sql.physical.interval_bounds import IntervalCondition, interval_condition, time_mark
from flinkpy.sql.physical.join_keys import JoinKeys, keys_of
from flinkpy.sql.physical.physical_nodes import (
    ChangelogNormalize,
    ChangingOver,
    ChangingRank,
    Deduplicate,
    GroupAggregate,
    IntervalJoin,
    LastRow,
    OverAggregate,
    PhysicalNode,
    RegularJoin,
    TemporalSort,
    UnionAll,
    WatermarkAssigner,
    WindowJoin,
    WindowRank,
)
from flinkpy.sql.physical.physical_planner import (
    correlate,
    exchanged,
    limited,
    sink,
    table_scan,
    values,
    window_rows,
)
from flinkpy.sql.physical.split_distinct import is_split, split_distinct
from flinkpy.sql.physical.streaming_options import StreamingOptions
from flinkpy.sql.physical.streaming_windows import (
    BATCH,
    are_alike,
    attached_window,
    check_rowtime_kept,
    check_time,
    is_rowtime,
    is_rowtime_kept,
    refuse_processing_time,
    told_by_end,
    window_aggregate,
    window_grouping_sets,
)
from flinkpy.sql.physical.window_columns import window_columns_of
from flinkpy.sql.rex.relational_terms import OverGroup
from flinkpy.sql.rex.rex_nodes import SortKey
from flinkpy.sql.rules.conditions import conjunction, conjuncts, disjunction, test_of
from flinkpy.sql.rules.rank_rules import MOST
from flinkpy.sql.sql_errors import ValidationError

_NEED_LATER_ROWS = frozenset(["LEAD", "NTILE", "PERCENT_RANK", "CUME_DIST"])


class StreamingPlanner:
    """Plans relations whose inputs may never end."""

    def __init__(self, options: StreamingOptions) -> None:
        self._options = options

    def plan(self, node: LogicalNode) -> PhysicalNode:
        """The operators for a relation."""
        planned = _PLANNERS.get(type(node))
        if planned is None:
            raise ValidationError(f"{type(node).__name__} cannot be planned in STREAMING")
        result: PhysicalNode = planned(self, node)
        return result

    # -- row by row --------------------------------------------------------------------------------

    def _scan(self, node: LogicalScan) -> PhysicalNode:
        scan = table_scan(node)
        changes = node.abilities.changes
        has_before, has_after = map(changes.contains, (RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER))
        is_upsert = has_after and not has_before
        key = node.table.primary_key
        if is_upsert and key is None:
            raise ValidationError(
                f"Table '{node.path}' produces a changelog stream contains UPDATE_AFTER, no "
                "UPDATE_BEFORE. This requires to define primary key constraint on the table; "
                "declare PRIMARY KEY (...) NOT ENFORCED"
            )
        has_twice = self._options.has_duplicates and not changes.is_insert_only
        if key is None or not (is_upsert or has_twice):
            return scan
        places = tuple(node.schema.names.index(each) for each in key.columns)
        ttl = self._options.state_ttl_ms
        return ChangelogNormalize(node.schema, exchanged(scan, places), places, ttl)

    def _values(self, node: LogicalValues) -> PhysicalNode:
        return values(node)

    def _project(self, node: LogicalProject) -> PhysicalNode:
        return calc(self.plan(node.input), node.projections, None, node.schema)

    def _filter(self, node: LogicalFilter) -> PhysicalNode:
        return calc(self.plan(node.input), None, node.condition, node.schema)

    def _correlate(self, node: LogicalCorrelate) -> PhysicalNode:
        return correlate(node, self.plan(node.input))

    def _watermark(self, node: LogicalWatermark) -> PhysicalNode:
        return WatermarkAssigner(node.schema, self.plan(node.input), node.rowtime, node.strategy)

    def _set_operation(self, node: LogicalSetOperation) -> PhysicalNode:
        return UnionAll(node.schema, tuple(map(self.plan, node.branches)))

    # -- windows -----------------------------------------------------------------------------------

    def _window(self, node: LogicalWindow) -> PhysicalNode:
        check_time(node)
        return window_rows(node, self.plan(node.input))

    def _aggregate(self, node: LogicalAggregate) -> PhysicalNode:
        columns = window_columns_of(node.input)
        bounds = None if columns is None else columns.bounds
        if columns is None or bounds is None or not {*bounds} <= {*node.keys}:
            return self._group_aggregate(node)
        form = window_aggregate if node.grouping_sets is None else window_grouping_sets
        return form(self.plan, node, columns, bounds) or self._group_aggregate(node)

    def _group_aggregate(self, node: LogicalAggregate) -> PhysicalNode:
        ttl = self._ttl_of(node.input)

        def grouped(plain: LogicalAggregate, input: PhysicalNode) -> PhysicalNode:
            if self._options.in_phases and all(map(is_in_phases, plain.calls)):
                if self._options.buckets and is_split(plain):
                    return split_distinct(plain, input, ttl, self._options.buckets)
                return in_two_phases(plain, input, ttl)
            exchange = exchanged(input, plain.keys)
            return GroupAggregate(plain.schema, exchange, plain.keys, plain.calls, state_ttl_ms=ttl)

        if node.grouping_sets is not None:
            return expanded(node, grouped, self.plan)
        return grouped(node, self.plan(node.input))

    def _ttl_of(self, node: LogicalNode) -> int:
        """When joins and groups drop these rows: as the hint of their table says, or the
        session."""
        while isinstance(node, (LogicalProject, LogicalFilter, LogicalWatermark, LogicalCorrelate)):
            node = node.input
        hinted = node.state_ttl_ms if isinstance(node, LogicalScan) else None
        return self._options.state_ttl_ms if hinted is None else hinted

    def _rank(self, node: LogicalRank) -> PhysicalNode:
        columns = window_columns_of(node.input)
        bounds = None if columns is None else columns.bounds
        is_windowed = bounds is not None and {*bounds} <= {*node.partition}
        if columns is not None and is_windowed:
            is_by_time = _order_of(node) is TimeAttribute.PROCTIME and node.last == 1
            refuse_processing_time(columns.window, "Deduplication" if is_by_time else "TopN")
        one_row = self._one_row(node)
        if isinstance(one_row, Deduplicate):
            return one_row
        if columns is None or bounds is None or not is_windowed:
            return one_row or self._changing_rank(node)
        told = told_by_end(columns.window, bounds)
        partition = tuple(each for each in node.partition if each not in told)
        return WindowRank(
            node.schema,
            exchanged(self.plan(node.input), partition or bounds),
            attached_window(columns.window, bounds, "TopN"),
            node.function,
            partition,
            node.keys,
            node.first,
            node.last,
            node.gives_rank,
        )

    def _changing_rank(self, node: LogicalRank) -> PhysicalNode:
        if node.function != "ROW_NUMBER":
            raise ValidationError(
                f"{node.function}() on streaming table is not supported currently; take "
                f"ROW_NUMBER(), rank the rows of windows, or {BATCH}"
            )
        return ChangingRank(
            node.schema,
            exchanged(self.plan(node.input), node.partition),
            node.function,
            node.partition,
            node.keys,
            node.first,
            node.last,
            node.gives_rank,
            state_ttl_ms=self._options.state_ttl_ms,
        )

    def _one_row(self, node: LogicalRank) -> PhysicalNode | None:
        """ROW_NUMBER() = 1 by a time: the first row of each key, which no later one replaces, or
        the last one."""
        if node.function != "ROW_NUMBER" or (node.first, node.last) != (1, 1):
            return None
        mark = _order_of(node)
        is_rowtime = mark is TimeAttribute.ROWTIME
        if mark is None or (is_rowtime and not is_rowtime_kept(node.input)):
            return None
        [key] = node.keys
        input = exchanged(self.plan(node.input), node.partition)
        partition, ranked, ttl = node.partition, node.gives_rank, self._options.state_ttl_ms
        if not key.descending:
            return Deduplicate(node.schema, input, partition, key.index, is_rowtime, ranked, ttl)
        return LastRow(node.schema, input, partition, key.index, is_rowtime, ranked, ttl)

    @staticmethod
    def _time_of(node: LogicalNode, keys: Sequence[SortKey]) -> TimeAttribute | None:
        """Which time rows are ordered by, if it is one and nothing else."""
        if len(keys) != 1 or keys[0].descending:
            return None
        return time_mark(node.schema.fields[keys[0].index].type)

    # -- order -------------------------------------------------------------------------------------

    def _sort(self, node: LogicalSort) -> PhysicalNode:
        if not node.keys:
            return limited(node, self.plan(node.input))
        names = ", ".join(node.input.schema.names[key.index] for key in node.keys)
        if node.limit is not None:
            return self._first_sorted(node, node.limit)
        if node.offset:
            raise ValidationError(
                f"FETCH is missed, which on streaming table is not supported currently (ORDER BY "
                f"{names} OFFSET {node.offset}); add LIMIT, or {BATCH}"
            )
        first = node.keys[0]
        if first.descending or not is_rowtime(node.input.schema.fields[first.index].type):
            raise ValidationError(
                f"Sort on a non-time-attribute field is not supported (ORDER BY {names}); sort by "
                f"the rowtime column first, ascending, or {BATCH}"
            )
        check_rowtime_kept(node.input, f"ORDER BY {names}")
        return TemporalSort(node.schema, exchanged(self.plan(node.input)), node.keys)

    def _first_sorted(self, node: LogicalSort, limit: int) -> PhysicalNode:
        if not limit:
            return limited(node, self.plan(node.input))
        first, last = node.offset + 1, node.offset + limit
        input = exchanged(self.plan(node.input))
        ttl = self._options.state_ttl_ms
        return ChangingRank(
            node.schema, input, "ROW_NUMBER", (), node.keys, first, last, state_ttl_ms=ttl
        )

    def _over(self, node: LogicalOver) -> PhysicalNode:
        """A node for each window, each in the order of the same time or of another."""
        if _numbers_equal_rows(node):
            return self._numbered(node)
        plan = self.plan(node.input)
        width = node.input.width
        partition: tuple[int, ...] | None = None
        for group in node.groups:
            mark = self._checked_over(node, group)
            if group.partition != partition:
                plan, partition = exchanged(plan, group.partition), group.partition
            width += len(group.calls)
            schema = row_of(node.schema.fields[:width])
            if mark is None:
                plan = ChangingOver(schema, plan, group, self._options.state_ttl_ms)
            else:
                plan = OverAggregate(schema, plan, (group,), mark is TimeAttribute.ROWTIME)
        return plan

    def _numbered(self, node: LogicalOver) -> PhysicalNode:
        [group] = node.groups
        return ChangingRank(
            node.schema,
            exchanged(self.plan(node.input), group.partition),
            "ROW_NUMBER",
            group.partition,
            group.keys,
            1,
            MOST,
            gives_rank=True,
            state_ttl_ms=self._options.state_ttl_ms,
        )

    def _checked_over(self, node: LogicalOver, group: OverGroup) -> TimeAttribute | None:
        """The time that rows are ordered by; None if it is another column."""
        shown = ", ".join(node.input.schema.names[key.index] for key in group.keys)
        if len(group.keys) > 1:
            raise ValidationError(
                "The window can only be ordered by a single time column in STREAMING (ORDER BY "
                f"{shown}); leave the others out, or {BATCH}"
            )
        if not group.keys:
            raise ValidationError(
                "The window can only be ordered by a single time column in STREAMING, and it has "
                f"no order; write ORDER BY, group the rows instead, or {BATCH}"
            )
        if group.keys[0].descending:
            raise ValidationError(
                f"The window can only be ordered in ASCENDING mode in STREAMING (ORDER BY {shown} "
                f"DESC); order by a column that is computed with the other sign, or {BATCH}"
            )
        mark = self._time_of(node.input, group.keys)
        if mark is None and group.frame.lower is not None:
            raise ValidationError(
                "Non-time attribute sort is not supported for bounded OVER window in STREAMING "
                f"(ORDER BY {shown}); begin the frame at UNBOUNDED PRECEDING, declare a WATERMARK "
                f"for the column, or {BATCH}"
            )
        if group.frame.upper != 0:
            raise ValidationError(
                f"OVER {group.frame.unit} FOLLOWING windows are not supported in STREAMING: rows "
                f"that follow are not there yet; end the frame at CURRENT ROW, or {BATCH}"
            )
        for call in group.calls:
            if call.function in _NEED_LATER_ROWS:
                raise ValidationError(
                    f"{call.function} is not supported in STREAMING: it needs rows that are not "
                    f"there yet; {BATCH}"
                )
        if mark is TimeAttribute.ROWTIME:
            check_rowtime_kept(node.input, "OVER")
        return mark

    # -- joins -------------------------------------------------------------------------------------

    def _join(self, node: LogicalJoin) -> PhysicalNode:
        unknown = None
        if node.null_aware:
            unknown = _unknown_keys(node)
            node = _as_unknown(node)
        keys = keys_of(node)
        joined = self._window_join(node, keys)
        if joined is not None:
            return joined
        near = interval_condition(node)
        if near is not None:
            return self._interval_join(node, keys, near)
        return RegularJoin(
            node.schema,
            exchanged(self.plan(node.left), keys.left),
            exchanged(self.plan(node.right), keys.right),
            node.kind,
            keys.left,
            keys.right,
            keys.null_safe,
            keys.rest,
            left_ttl_ms=self._ttl_of(node.left),
            right_ttl_ms=self._ttl_of(node.right),
            unknown_keys=unknown,
        )

    def _temporal_join(self, node: LogicalTemporalJoin) -> PhysicalNode:
        time = node.left.schema.fields[node.time]
        if time_mark(time.type) is TimeAttribute.PROCTIME:
            return lookup_join(node, self.plan(node.left))
        return versioned_join(node, self.plan, self._options.state_ttl_ms)

    def _interval_join(
        self, node: LogicalJoin, keys: JoinKeys, near: IntervalCondition
    ) -> PhysicalNode:
        check_rowtime_kept(node.left, "a join of an interval")
        check_rowtime_kept(node.right, "a join of an interval")
        return IntervalJoin(
            node.schema,
            exchanged(self.plan(node.left), keys.left),
            exchanged(self.plan(node.right), keys.right),
            node.kind,
            near.interval,
            keys.left,
            keys.right,
            keys.null_safe,
            near.rest,
        )

    def _window_join(self, node: LogicalJoin, keys: JoinKeys) -> PhysicalNode | None:
        left, right = window_columns_of(node.left), window_columns_of(node.right)
        if left is None or right is None or not are_alike(left.window, right.window):
            return None
        if left.bounds is None or right.bounds is None or node.null_aware:
            return None
        pairs = list(zip(keys.left, keys.right, keys.null_safe))
        windows = set(zip(left.bounds, right.bounds))
        if not windows <= {(one, other) for one, other, _ in pairs}:
            return None
        told = told_by_end(left.window, left.bounds)
        rest = [each for each in pairs if each[0] not in told or each[:2] not in windows]
        left_keys = tuple(one for one, _, _ in rest)
        right_keys = tuple(other for _, other, _ in rest)
        return WindowJoin(
            node.schema,
            exchanged(self.plan(node.left), left_keys or left.bounds),
            exchanged(self.plan(node.right), right_keys or right.bounds),
            node.kind,
            attached_window(left.window, left.bounds, "Join"),
            attached_window(right.window, right.bounds, "Join"),
            left_keys,
            right_keys,
            tuple(safe for _, _, safe in rest),
            keys.rest,
        )

    def _sink(self, node: LogicalSink) -> PhysicalNode:
        return sink(node, self.plan(node.input))


def _order_of(node: LogicalRank) -> TimeAttribute | None:
    """Which time rows are ranked by, if it is one and nothing else."""
    if len(node.keys) != 1:
        return None
    return time_mark(node.input.schema.fields[node.keys[0].index].type)


def _unknown_keys(node: LogicalJoin) -> tuple[int, int] | None:
    """The two columns of a NOT IN."""
    keys = keys_of(node)
    if keys.rest is not None or len(keys.left) != 1:
        return None
    return keys.left[0], keys.right[0]


def _as_unknown(node: LogicalJoin) -> LogicalJoin:
    """NOT IN, where a null may be equal to anything, as a join without keys: one null of the other
    side changes the answer for all rows, and goes again."""
    conditions = []
    for each in conjuncts(node.condition):
        nulls = [test_of("IS NULL", side) for side in each.operands if side.type.is_nullable]
        conditions.append(disjunction([each, *nulls]) or each)
    return replace(node, condition=conjunction(conditions), null_aware=False)


def _numbers_equal_rows(node: LogicalOver) -> bool:
    """Whether rows that are equal in all columns get numbers, as INTERSECT ALL asks: which of them
    has which does not matter."""
    if len(node.groups) != 1 or set(node.groups[0].partition) != set(range(node.input.width)):
        return False
    return [each.function for each in node.groups[0].calls] == ["ROW_NUMBER"]


_Planner = Callable[[StreamingPlanner, Any], PhysicalNode]
_PLANNERS: dict[type[LogicalNode], _Planner] = {
    LogicalScan: StreamingPlanner._scan,
    LogicalValues: StreamingPlanner._values,
    LogicalProject: StreamingPlanner._project,
    LogicalFilter: StreamingPlanner._filter,
    LogicalCorrelate: StreamingPlanner._correlate,
    LogicalWatermark: StreamingPlanner._watermark,
    LogicalSetOperation: StreamingPlanner._set_operation,
    LogicalWindow: StreamingPlanner._window,
    LogicalAggregate: StreamingPlanner._aggregate,
    LogicalRank: StreamingPlanner._rank,
    LogicalSort: StreamingPlanner._sort,
    LogicalOver: StreamingPlanner._over,
    LogicalJoin: StreamingPlanner._join,
    LogicalTemporalJoin: StreamingPlanner._temporal_join,
    LogicalSink: StreamingPlanner._sink,
}
