"""Windows in STREAMING: what may go by time, and aggregates of windows, which give a row once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from flinkpy.common.logical_types.logical_type import LogicalType, RowField, TimeAttribute
from flinkpy.sql.logical.logical_nodes import (
    LogicalAggregate,
    LogicalJoin,
    LogicalNode,
    LogicalWindow,
    project,
    row_of,
    walk_plan,
)
from flinkpy.sql.physical.calcs import calc
from flinkpy.sql.physical.grouping_sets import expanded
from flinkpy.sql.physical.interval_bounds import interval_condition, time_mark
from flinkpy.sql.physical.physical_nodes import PhysicalNode, WindowAggregate
from flinkpy.sql.physical.physical_planner import exchanged
from flinkpy.sql.physical.window_columns import (
    Unwindowed,
    WindowColumns,
    below_window,
    window_columns_of,
)
from flinkpy.sql.rex.relational_terms import WindowKind, WindowSpec
from flinkpy.sql.rex.rex_nodes import AggregateCall, Rex, RexInput, RexLiteral
from flinkpy.sql.rules.column_pruning import moved_call
from flinkpy.sql.sql_errors import ValidationError

BATCH = "set 'execution.runtime-mode' to BATCH if all inputs end"
Planned: TypeAlias = Callable[[LogicalNode], PhysicalNode]


def refuse_processing_time(window: WindowSpec, what: str) -> None:
    """In Flink's words."""
    if window.is_processing:
        raise ValidationError(
            f"Processing time Window {what} is not supported yet; window over a column with a "
            "WATERMARK"
        )


def attached_window(window: WindowSpec, bounds: tuple[int, int], what: str) -> WindowSpec:
    refuse_processing_time(window, what)
    return replace(window, bounds=bounds, partition=())


def told_by_end(window: WindowSpec, bounds: tuple[int, int]) -> tuple[int, ...]:
    """Which columns are equal in all rows of windows with one end: sessions may begin whenever."""
    return bounds[1:] if window.kind is WindowKind.SESSION else bounds


def are_alike(one: WindowSpec, other: WindowSpec) -> bool:
    parts = (one.kind, one.size, one.step, one.offset)
    return parts == (other.kind, other.size, other.step, other.offset)


def is_rowtime(type: LogicalType) -> bool:
    """Whether the column is the event time."""
    return time_mark(type) is TimeAttribute.ROWTIME


def check_time(node: LogicalWindow) -> None:
    field = node.input.schema.fields[node.window.time]
    if time_mark(field.type) is None:
        raise ValidationError(
            f"The window function requires the timecol is a time attribute type, but "
            f"'{field.name}' is {field.type}; declare WATERMARK FOR {field.name} in the table, and "
            "window before you join or aggregate"
        )
    check_rowtime_kept(node.input, f"a window over '{field.name}'")


def is_rowtime_kept(node: LogicalNode) -> bool:
    """Whether rows go out in time. Behind a join that keeps rows an old row may go out when
    watermarks are long past it."""
    return not any(
        isinstance(each, LogicalJoin)
        and interval_condition(each) is None
        and window_columns_of(each) is None
        for each in walk_plan(node)
    )


def check_rowtime_kept(node: LogicalNode, what: str) -> None:
    """Refuses to go by time where rows would be dropped as late."""
    if not is_rowtime_kept(node):
        raise ValidationError(
            f"Rowtime attributes must not be in the input rows of a regular join: {what} "
            "stands behind one; window both sides first and join equal window_start and "
            f"window_end, or {BATCH}"
        )


# -- aggregates of windows -------------------------------------------------------------------------


def window_aggregate(
    planned: Planned, node: LogicalAggregate, columns: WindowColumns, bounds: tuple[int, int]
) -> PhysicalNode | None:
    """The window function goes into the aggregate, if nothing between them reads the window; else
    the rows come with their windows. None in processing time, where a row may come when its window
    has closed."""
    below = below_window(node.input)
    read = {index for call in node.calls for index in _read(call)}
    if (
        below is not None
        and read <= {*below.places}
        and _are_its_groups(node, below, {*bounds, columns.time})
    ):
        _check_window(node.input)
        partition = tuple(below.places[each] for each in below.partition or ())
        window = replace(below.window, time=below.time, partition=partition)
        words = _words(columns, bounds)
        return _aggregated(node, planned(below.plan), window, words, below.places)
    if columns.window.is_processing:
        return None
    window = attached_window(columns.window, bounds, "Aggregate")
    words = _words(columns, told_by_end(window, bounds))
    return _aggregated(node, planned(node.input), window, words)


def _are_its_groups(node: LogicalAggregate, below: Unwindowed, of_window: set[int | None]) -> bool:
    """Whether there is one group for each window: sessions are of keys."""
    if below.window.kind is not WindowKind.SESSION:
        return True
    return below.partition is not None and {*node.keys} - of_window == {*below.partition}


def window_grouping_sets(
    planned: Planned, node: LogicalAggregate, columns: WindowColumns, bounds: tuple[int, int]
) -> PhysicalNode | None:
    """The rows come with their windows, once for each set. Every set has the window. In processing
    time rows come once for each set, and the window function goes into the aggregate; None if it
    cannot."""
    sets = node.grouping_sets or ()
    if any(node.keys.index(each) not in places for each in bounds for places in sets):
        if columns.window.is_processing:
            return None
        raise ValidationError(
            "In STREAMING each of GROUPING SETS, CUBE and ROLLUP has the window: write GROUP BY "
            f"window_start, window_end, GROUPING SETS (...), or {BATCH}"
        )
    attached = columns.window
    if attached.is_processing:
        below = below_window(node.input)
        if below is None or below.window.kind is WindowKind.SESSION:
            return None
        _check_window(node.input)
        attached = replace(below.window, time=node.input.width)
        node = replace(node, input=_without_window(node.input, below))

    def aggregated(plain: LogicalAggregate, input: PhysicalNode) -> PhysicalNode:
        places = dict(zip(node.keys, plain.keys))
        start, end = (places[each] for each in bounds)
        moved, window = columns.moved(places), attached
        if not window.is_processing:
            window = attached_window(window, (start, end), "Aggregate with GROUPING SETS")
        return _aggregated(plain, input, window, _words(moved, told_by_end(window, (start, end))))

    return expanded(node, aggregated, planned)


def _without_window(node: LogicalNode, below: Unwindowed) -> LogicalNode:
    """The columns of the relation, those of the window being null, and then the time column."""
    fields = node.schema.fields
    columns: list[Rex] = [
        RexInput(field.type, index=below.places[at])
        if at in below.places
        else RexLiteral(field.type.nullable(), value=None)
        for at, field in enumerate(fields)
    ]
    time = below.plan.schema.fields[below.time]
    columns.append(RexInput(time.type, index=below.time))
    return project(below.plan, columns, [*node.schema.names, time.name])


def _words(columns: WindowColumns, told: Sequence[int]) -> dict[int, str]:
    """The columns that a window says the value of, and what they are: its time, and of its bounds
    those that are ``told``."""
    words = {columns.start: "window_start", columns.end: "window_end"}
    known = {each: words[each] for each in told}
    return known if columns.time is None else {**known, columns.time: "window_time"}


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
    check_time(node)


def _read(call: AggregateCall) -> list[int]:
    chosen = [] if call.filter is None else [call.filter]
    return [*call.arguments, *chosen, *(each.index for each in call.order_by)]
