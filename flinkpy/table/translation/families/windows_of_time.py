"""Watermarks, and what is computed in windows of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.graph.partitioning import KeySpec
from flinkpy.relational.ordering.rank_rows import RankSpec
from flinkpy.relational.windows.changes.changing_aggregates import ChangingAggregatesOperator
from flinkpy.relational.windows.held_aggregates import HeldAggregatesOperator
from flinkpy.relational.windows.held_windows import WindowedInput, slicing_for
from flinkpy.relational.windows.joined_windows import JoinedWindowsOperator
from flinkpy.relational.windows.partial_aggregates import PartialAggregatesOperator
from flinkpy.relational.windows.partial_groups import are_partial
from flinkpy.relational.windows.ranked_windows import RankedWindowsOperator
from flinkpy.relational.windows.sessions.changing_sessions import ChangingSessionsOperator
from flinkpy.relational.windows.sessions.held_sessions import HeldSessionsOperator
from flinkpy.relational.windows.sessions.rows_of_sessions import RowsOfSessionsOperator
from flinkpy.relational.windows.sessions.session_aggregates import SessionAggregatesOperator
from flinkpy.relational.windows.sql_slices import SqlAggregateSlices, are_in_slices
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.relational.windows.watermark_rows import WatermarkRowsOperator
from flinkpy.relational.windows.window_rows import WindowRowsOperator
from flinkpy.sql.physical.physical_nodes import (
    PhysicalNode,
    WatermarkAssigner,
    WindowAggregate,
    WindowJoin,
    WindowRank,
    WindowTableFunction,
)
from flinkpy.sql.rex.relational_terms import SOURCE_WATERMARK, WindowKind, WindowSpec
from flinkpy.sql.rex.rex_nodes import walk
from flinkpy.table.translation.families.calls_of_users import with_functions
from flinkpy.table.translation.families.shared_by_joins import applied_by_keys, join_spec
from flinkpy.table.translation.node_schemas import key_of_exchange, keys_of_exchange, schema_of
from flinkpy.table.translation.translation_context import Family, TranslationContext
from flinkpy.table.translation.watermarks_in_sources import put_into_source
from flinkpy.windowing.slices.operator import SliceOperator

if TYPE_CHECKING:
    from flinkpy.graph.operator_port import ColumnarOperator


def watermarks(node: WatermarkAssigner, context: TranslationContext) -> ColumnStream:
    """Rows with the watermark of a column, in the source if it can have it."""
    if any(getattr(each, "function", "") == SOURCE_WATERMARK for each in walk(node.strategy)):
        return context.stream_of(node.input)
    is_in_source = put_into_source(
        node, context.stream_of, context.program, context.rules.idle_timeout
    )
    names = node.input.schema.names
    strategy = None if is_in_source else context.program((node.strategy,), None, names)
    schema = schema_of(node.schema)
    return context.applied(node, WatermarkRowsOperator(node.rowtime, strategy, schema))


def window_rows(node: WindowTableFunction, context: TranslationContext) -> ColumnStream:
    """Each row with the times of its windows."""
    clock, schema = _clock_of(node.window, context), schema_of(node.schema)
    if node.window.kind is not WindowKind.SESSION:
        return context.applied(node, WindowRowsOperator(node.window, schema, clock))
    operator = RowsOfSessionsOperator(_windowed(node.input, node.window), clock, schema)
    return context.applied(node, operator, key_of_exchange(node.input))


def window_aggregate(node: WindowAggregate, context: TranslationContext) -> ColumnStream:
    """Groups of windows: accumulated in slices or sessions if the calls can be, else over rows that
    are held."""
    inputs, window = schema_of(node.input.schema), node.window
    clock = _clock_of(window, context)
    keys = tuple(inputs.names[at] for at in node.keys)
    calls = with_functions(node.calls, node.input.schema, context.registry)
    words, schema = node.properties, schema_of(node.schema)
    input = WindowedInput(inputs, window, keys)
    kinds = [field.type for field in schema][len(keys) : len(keys) + len(calls)]
    merges = are_partial(calls, inputs, kinds)
    is_session = window.kind is WindowKind.SESSION and window.bounds is None
    operator: ColumnarOperator
    if not node.input.changes.is_insert_only:
        of_changes = ChangingSessionsOperator if is_session else ChangingAggregatesOperator
        operator = of_changes(calls, words, input, clock, schema)
    elif is_session:
        of_sessions = SessionAggregatesOperator if merges else HeldSessionsOperator
        operator = of_sessions(calls, words, input, clock, schema)
    elif are_in_slices(calls, inputs):
        store = SqlAggregateSlices(keys, calls, window, words, schema, clock, inputs)
        operator = SliceOperator(store, slicing_for(window), not window.is_processing)
    else:
        held = PartialAggregatesOperator if merges else HeldAggregatesOperator
        operator = held(calls, words, input, clock, schema)
    key = KeySpec(columns=keys) if keys else None
    return context.applied(node, operator, key)


def window_join(node: WindowJoin, context: TranslationContext) -> ColumnStream:
    """A join of rows of the same window."""
    operator = JoinedWindowsOperator(
        join_spec(node, context),
        _windowed(node.left, node.left_window),
        _windowed(node.right, node.right_window),
        _clock_of(node.left_window, context),
        schema_of(node.schema),
    )
    return applied_by_keys(node, operator, context)


def window_rank(node: WindowRank, context: TranslationContext) -> ColumnStream:
    """The best rows of each partition and window."""
    spec = RankSpec(
        node.function, node.partition, node.keys, node.first, node.last, node.gives_rank
    )
    input, clock = _windowed(node.input, node.window), _clock_of(node.window, context)
    operator = RankedWindowsOperator(spec, input, clock, schema_of(node.schema))
    return context.applied(node, operator, key_of_exchange(node.input))


def _windowed(input: PhysicalNode, window: WindowSpec) -> WindowedInput:
    return WindowedInput(schema_of(input.schema), window, keys_of_exchange(input))


def _clock_of(window: WindowSpec, context: TranslationContext) -> WallClock:
    zone = context.rules.zone
    return WallClock(zone if window.is_local and zone != "UTC" else None)


TRANSLATIONS: Family = {
    WatermarkAssigner: watermarks,
    WindowTableFunction: window_rows,
    WindowAggregate: window_aggregate,
    WindowJoin: window_join,
    WindowRank: window_rank,
}
