"""The operators of STREAMING, as long as rows are only added. What would have to change rows that
went out already is refused: the message names who would, who could not take it, and the way out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.common.logical_types.logical_type import LogicalType, RowField, TimeAttribute
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
    LogicalValues,
    LogicalWatermark,
    LogicalWindow,
    row_of,
    walk_plan,
)
from flinkpy.sql.physical.calcs import calc
from flinkpy.sql.physical.grouping_sets import expanded
from flinkpy.sql.physical.interval_bounds import IntervalCondition, interval_condition, time_mark
from flinkpy.sql.physical.join_keys import JoinKeys, keys_of
from flinkpy.sql.physical.physical_nodes import (
    AppendJoin,
    Deduplicate,
    IntervalJoin,
    OverAggregate,
    PhysicalNode,
    TemporalSort,
    UnionAll,
    WatermarkAssigner,
    WindowAggregate,
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
from flinkpy.sql.physical.window_columns import WindowColumns, below_window, window_columns_of
from flinkpy.sql.rex.relational_terms import JoinKind, OverGroup, WindowKind, WindowSpec
from flinkpy.sql.rex.rex_nodes import AggregateCall, Rex, RexInput, SortKey
from flinkpy.sql.rules.column_pruning import moved_call
from flinkpy.sql.rules.rank_rules import MOST
from flinkpy.sql.sql_errors import ValidationError

_BATCH = "set 'execution.runtime-mode' to BATCH if all inputs end"
_GROUP_WINDOW = (
    "group by window_start and window_end of TUMBLE, HOP, CUMULATE or SESSION, so that each row "
    f"goes out once, or {_BATCH}"
)
_NEED_LATER_ROWS = frozenset(["LEAD", "NTILE", "PERCENT_RANK", "CUME_DIST"])


class StreamingPlanner:
    """Plans relations whose inputs may never end. ``consumer`` is who takes the rows at last, as
    messages call it."""

    def __init__(self, consumer: str) -> None:
        self._consumer = consumer

    def plan(self, node: LogicalNode) -> PhysicalNode:
        """The operators for a relation."""
        planned = _PLANNERS.get(type(node))
        if planned is None:
            raise ValidationError(f"{type(node).__name__} cannot be planned in STREAMING")
        result: PhysicalNode = planned(self, node)
        return result

    def _updates(self, producer: str, way_out: str) -> ValidationError:
        return ValidationError(
            f"{self._consumer} doesn't support consuming update changes which is produced by node "
            f"{producer}; {way_out}"
        )

    # -- row by row --------------------------------------------------------------------------------

    def _scan(self, node: LogicalScan) -> PhysicalNode:
        if node.abilities.changes != INSERT_ONLY:
            raise self._updates(
                f"TableSourceScan(table=[{node.path}])", "tables that change are not supported yet"
            )
        return table_scan(node)

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
        _check_time(node)
        _refuse_processing_time(node.window, "TableFunction")
        return window_rows(node, self.plan(node.input))

    def _aggregate(self, node: LogicalAggregate) -> PhysicalNode:
        columns = window_columns_of(node.input)
        bounds = None if columns is None else columns.bounds
        if columns is None or bounds is None or not {*bounds} <= {*node.keys}:
            keys = ", ".join(node.input.schema.names[key] for key in node.keys)
            calls = ", ".join(each.function for each in node.calls)
            producer = f"GroupAggregate(groupBy=[{keys}], select=[{calls}])"
            raise self._updates(producer, _GROUP_WINDOW)
        if node.grouping_sets is not None:
            return _window_grouping_sets(self, node, columns, bounds)
        return _window_aggregate(self, node, columns, bounds)

    def _rank(self, node: LogicalRank) -> PhysicalNode:
        first_row = self._first_rows(node)
        if first_row is not None:
            return first_row
        columns = window_columns_of(node.input)
        bounds = None if columns is None else columns.bounds
        is_windowed = bounds is not None and {*bounds} <= {*node.partition}
        if columns is None or bounds is None or not is_windowed or node.last == MOST:
            raise self._updates(
                f"Rank(rankType=[{node.function}], rankRange=[{node.first}, {node.last}])",
                "partition by window_start and window_end of a window function, or " + _BATCH,
            )
        told = _told_by_end(columns.window, bounds)
        partition = tuple(each for each in node.partition if each not in told)
        return WindowRank(
            node.schema,
            exchanged(self.plan(node.input), partition or bounds),
            _attached(columns.window, bounds, "TopN"),
            node.function,
            partition,
            node.keys,
            node.first,
            node.last,
            node.gives_rank,
        )

    def _first_rows(self, node: LogicalRank) -> PhysicalNode | None:
        """ROW_NUMBER() = 1 by a time: the first row of each key, which no later one replaces."""
        if node.function != "ROW_NUMBER" or (node.first, node.last) != (1, 1):
            return None
        mark = self._time_of(node.input, node.keys)
        if mark is None:
            return None
        is_rowtime = mark is TimeAttribute.ROWTIME
        if is_rowtime:
            check_rowtime_kept(node.input, "the first row by event time")
        input = exchanged(self.plan(node.input), node.partition)
        time = node.keys[0].index
        return Deduplicate(node.schema, input, node.partition, time, is_rowtime, node.gives_rank)

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
        if node.limit is not None or node.offset:
            raise self._updates(
                f"SortLimit(orderBy=[{names}])",
                f"number the rows of each window by ROW_NUMBER() instead, or {_BATCH}",
            )
        first = node.keys[0]
        if first.descending or not is_rowtime(node.input.schema.fields[first.index].type):
            raise ValidationError(
                f"Sort on a non-time-attribute field is not supported (ORDER BY {names}); sort by "
                f"the rowtime column first, ascending, or {_BATCH}"
            )
        check_rowtime_kept(node.input, f"ORDER BY {names}")
        return TemporalSort(node.schema, exchanged(self.plan(node.input)), node.keys)

    def _over(self, node: LogicalOver) -> PhysicalNode:
        """A node for each window, each in the order of the same time or of another."""
        plan = self.plan(node.input)
        width = node.input.width
        partition: tuple[int, ...] | None = None
        for group in node.groups:
            mark = self._checked_over(node, group)
            is_rowtime = mark is TimeAttribute.ROWTIME
            if group.partition != partition:
                plan, partition = exchanged(plan, group.partition), group.partition
            width += len(group.calls)
            schema = row_of(node.schema.fields[:width])
            plan = OverAggregate(schema, plan, (group,), is_rowtime)
        return plan

    def _checked_over(self, node: LogicalOver, group: OverGroup) -> TimeAttribute:
        shown = ", ".join(node.input.schema.names[key.index] for key in group.keys)
        if len(group.keys) > 1:
            raise ValidationError(
                "The window can only be ordered by a single time column in STREAMING (ORDER BY "
                f"{shown}); leave the others out, or {_BATCH}"
            )
        mark = self._time_of(node.input, group.keys)
        if mark is None:
            raise ValidationError(
                "OVER windows' ordering in stream mode must be defined on a time attribute, "
                f"ascending (ORDER BY {shown}); declare a WATERMARK for the column, or {_BATCH}"
            )
        if group.frame.upper != 0:
            raise ValidationError(
                f"OVER {group.frame.unit} FOLLOWING windows are not supported in STREAMING: rows "
                f"that follow are not there yet; end the frame at CURRENT ROW, or {_BATCH}"
            )
        for call in group.calls:
            if call.function in _NEED_LATER_ROWS:
                raise ValidationError(
                    f"{call.function} is not supported in STREAMING: it needs rows that are not "
                    f"there yet; {_BATCH}"
                )
        if mark is TimeAttribute.ROWTIME:
            check_rowtime_kept(node.input, "OVER")
        return mark

    # -- joins -------------------------------------------------------------------------------------

    def _join(self, node: LogicalJoin) -> PhysicalNode:
        keys = keys_of(node)
        joined = self._window_join(node, keys)
        if joined is not None:
            return joined
        near = interval_condition(node)
        if near is not None:
            return self._interval_join(node, keys, near)
        if node.kind not in (JoinKind.INNER, JoinKind.SEMI):
            names = (*node.left.schema.names, *node.right.schema.names)
            pairs = zip(keys.left, keys.right)
            where = ", ".join(
                f"{names[one]} = {names[node.left.width + other]}" for one, other in pairs
            )
            raise self._updates(
                f"Join(joinType=[{node.kind.value}], where=[{where}])",
                f"join rows of equal window_start and window_end, or {_BATCH}",
            )
        return AppendJoin(
            node.schema,
            exchanged(self.plan(node.left), keys.left),
            exchanged(self.plan(node.right), keys.right),
            node.kind,
            keys.left,
            keys.right,
            keys.null_safe,
            keys.rest,
        )

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
        if left is None or right is None or not _are_alike(left.window, right.window):
            return None
        if left.bounds is None or right.bounds is None or node.null_aware:
            return None
        pairs = list(zip(keys.left, keys.right, keys.null_safe))
        windows = set(zip(left.bounds, right.bounds))
        if not windows <= {(one, other) for one, other, _ in pairs}:
            return None
        told = _told_by_end(left.window, left.bounds)
        rest = [each for each in pairs if each[0] not in told or each[:2] not in windows]
        left_keys = tuple(one for one, _, _ in rest)
        right_keys = tuple(other for _, other, _ in rest)
        return WindowJoin(
            node.schema,
            exchanged(self.plan(node.left), left_keys or left.bounds),
            exchanged(self.plan(node.right), right_keys or right.bounds),
            node.kind,
            _attached(left.window, left.bounds, "Join"),
            _attached(right.window, right.bounds, "Join"),
            left_keys,
            right_keys,
            tuple(safe for _, _, safe in rest),
            keys.rest,
        )

    def _sink(self, node: LogicalSink) -> PhysicalNode:
        return sink(node, self.plan(node.input))


def _refuse_processing_time(window: WindowSpec, what: str) -> None:
    if window.is_processing:
        raise ValidationError(
            f"Processing time Window {what} is not supported yet; aggregate windows of TUMBLE or "
            "HOP at once, or window over a column with a WATERMARK"
        )


def _attached(window: WindowSpec, bounds: tuple[int, int], what: str) -> WindowSpec:
    _refuse_processing_time(window, what)
    return replace(window, bounds=bounds, partition=())


def _told_by_end(window: WindowSpec, bounds: tuple[int, int]) -> tuple[int, ...]:
    """Which columns are equal in all rows of windows with one end: sessions may begin whenever."""
    return bounds[1:] if window.kind is WindowKind.SESSION else bounds


def _are_alike(one: WindowSpec, other: WindowSpec) -> bool:
    parts = (one.kind, one.size, one.step, one.offset)
    return parts == (other.kind, other.size, other.step, other.offset)


def is_rowtime(type: LogicalType) -> bool:
    """Whether the column is the event time."""
    return time_mark(type) is TimeAttribute.ROWTIME


def _check_time(node: LogicalWindow) -> None:
    field = node.input.schema.fields[node.window.time]
    if time_mark(field.type) is None:
        raise ValidationError(
            f"The window function requires the timecol is a time attribute type, but "
            f"'{field.name}' is {field.type}; declare WATERMARK FOR {field.name} in the table, and "
            "window before you join or aggregate"
        )
    check_rowtime_kept(node.input, f"a window over '{field.name}'")


def check_rowtime_kept(node: LogicalNode, what: str) -> None:
    """Refuses to go by time behind a join that keeps rows: an old row may go out when watermarks
    are long past it, and would be dropped as late."""
    for each in walk_plan(node):
        if not isinstance(each, LogicalJoin) or interval_condition(each) is not None:
            continue
        if window_columns_of(each) is None:
            raise ValidationError(
                f"Rowtime attributes must not be in the input rows of a regular join: {what} "
                "stands behind one; window both sides first and join equal window_start and "
                f"window_end, or {_BATCH}"
            )


# -- aggregates of windows -------------------------------------------------------------------------


def _window_aggregate(
    planner: StreamingPlanner,
    node: LogicalAggregate,
    columns: WindowColumns,
    bounds: tuple[int, int],
) -> PhysicalNode:
    """The window function goes into the aggregate, if nothing between them reads the window; else
    the rows come with their windows."""
    is_session = columns.window.kind is WindowKind.SESSION
    below = None if is_session else below_window(node.input)
    words = _words(columns, bounds)
    if below is None or not {index for call in node.calls for index in _read(call)} <= {
        *below.places
    }:
        window = _attached(columns.window, bounds, "Aggregate of windows")
        return _aggregated(node, planner.plan(node.input), window, words)
    _check_window(node.input)
    window = replace(below.window, time=below.time)
    if window.kind is WindowKind.CUMULATE:
        _refuse_processing_time(window, "Aggregate of CUMULATE")
    return _aggregated(node, planner.plan(below.plan), window, words, below.places)


def _window_grouping_sets(
    planner: StreamingPlanner,
    node: LogicalAggregate,
    columns: WindowColumns,
    bounds: tuple[int, int],
) -> PhysicalNode:
    """The rows come with their windows, once for each set. Every set has the window."""
    sets = node.grouping_sets or ()
    if any(node.keys.index(each) not in places for each in bounds for places in sets):
        raise ValidationError(
            "In STREAMING each of GROUPING SETS, CUBE and ROLLUP has the window: write GROUP BY "
            f"window_start, window_end, GROUPING SETS (...), or {_BATCH}"
        )

    def aggregated(plain: LogicalAggregate, input: PhysicalNode) -> PhysicalNode:
        places = dict(zip(node.keys, plain.keys))
        start, end = (places[each] for each in bounds)
        moved = columns.moved(places)
        window = _attached(columns.window, (start, end), "Aggregate with GROUPING SETS")
        return _aggregated(plain, input, window, _words(moved, (start, end)))

    return expanded(node, aggregated, planner.plan)


def _words(columns: WindowColumns, bounds: tuple[int, int]) -> dict[int, str]:
    """The columns of which a window's end says the value, and what they are."""
    words = {bounds[0]: "window_start", bounds[1]: "window_end"}
    words = {each: words[each] for each in _told_by_end(columns.window, bounds)}
    return words if columns.time is None else {**words, columns.time: "window_time"}


def _aggregated(
    node: LogicalAggregate,
    input: PhysicalNode,
    window: WindowSpec,
    words: dict[int, str],
    places: dict[int, int] | None = None,
) -> PhysicalNode:
    """The aggregate over rows with this window. ``places``: where the columns of the logical input
    are now, if they have moved."""
    window_keys = [key for key in node.keys if key in words]
    plain = [key for key in node.keys if key not in words]
    if places is None:
        places = {index: index for index in range(node.input.width)}
    properties = tuple(dict.fromkeys(words[key] for key in window_keys))
    keys = tuple(places[key] for key in plain)
    count = len(node.keys)
    by_key = dict(zip(node.keys, node.schema.fields))
    fields = [by_key[key] for key in plain]
    fields += node.schema.fields[count : count + len(node.calls)]
    types = {words[key]: by_key[key].type for key in window_keys}
    fields += [RowField(each, types[each]) for each in properties]
    made = WindowAggregate(
        row_of(fields),
        exchanged(input, keys),
        window,
        keys,
        tuple(moved_call(each, places) for each in node.calls),
        properties,
    )
    first = len(plain) + len(node.calls)
    order = [
        plain.index(key) if key in plain else first + properties.index(words[key])
        for key in node.keys
    ]
    order += range(len(plain), first)
    outputs: list[Rex] = [RexInput(made.schema.fields[place].type, index=place) for place in order]
    return calc(made, outputs, None, node.schema)


def _check_window(node: LogicalNode) -> None:
    while not isinstance(node, LogicalWindow):
        node = node.inputs[0]
    _check_time(node)


def _read(call: AggregateCall) -> list[int]:
    chosen = [] if call.filter is None else [call.filter]
    return [*call.arguments, *chosen, *(each.index for each in call.order_by)]


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
    LogicalSink: StreamingPlanner._sink,
}
