"""Columns that nobody reads are not read from tables and not carried on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flinkpy.common.logical_types.logical_type import RowType
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
    LogicalWatermark,
    LogicalWindow,
    input_of,
    join,
    project,
    row_of,
    temporal_schema,
)
from flinkpy.sql.rex.relational_terms import JoinKind, OverGroup
from flinkpy.sql.rex.rex_nodes import AggregateCall, SortKey, inputs_of
from flinkpy.sql.rules.conditions import conjuncts, moved_inputs

_Columns = frozenset[int]


@dataclass(frozen=True)
class _Pruned:
    """A relation with fewer columns: ``places`` says where each that is left stands now."""

    plan: LogicalNode
    places: dict[int, int]


def columns_pruned(root: LogicalNode) -> LogicalNode:
    """The plan in which each node gives what is read; the root gives all of its columns."""
    found = _pruned(root, frozenset(range(root.width)))
    return _exactly(found, range(root.width), root.schema.names)


def _pruned(node: LogicalNode, wanted: _Columns) -> _Pruned:
    handler = _HANDLERS.get(type(node))
    if handler is None:
        inputs = tuple(map(columns_pruned, node.inputs))
        return _Pruned(node.with_inputs(inputs), {i: i for i in range(node.width)})
    pruned: _Pruned = handler(node, wanted)
    return pruned


def _exactly(found: _Pruned, columns: Iterable[int], names: Sequence[str]) -> LogicalNode:
    """Just these columns, in this order."""
    places = [found.places[column] for column in columns]
    if places == list(range(found.plan.width)) and found.plan.schema.names == tuple(names):
        return found.plan
    return project(found.plan, [input_of(found.plan, place) for place in places], names)


def _only(node: LogicalNode, wanted: _Columns) -> _Pruned:
    """The wanted columns and no others: what is sent on costs by the column."""
    found = _pruned(node, wanted)
    if found.plan.width == len(wanted):
        return found
    columns = sorted(wanted)
    if not columns:
        return found
    plan = _exactly(found, columns, [node.schema.names[column] for column in columns])
    return _Pruned(plan, {column: place for place, column in enumerate(columns)})


def _scan(node: LogicalScan, wanted: _Columns) -> _Pruned:
    if not node.abilities.takes_projection:
        return _Pruned(node, {i: i for i in range(node.width)})
    read = wanted.union(_key_of(node), *map(inputs_of, node.filters))
    read = read or frozenset([_cheapest(node.schema)])
    columns = sorted(read)
    places = {column: place for place, column in enumerate(columns)}
    fields = tuple(node.schema.fields[column] for column in columns)
    names = {each.name for each in fields}
    plan = replace(
        node,
        schema=row_of(fields),
        filters=tuple(moved_inputs(each, places) for each in node.filters),
        metadata=tuple(each for each in node.metadata if each[0] in names),
    )
    return _Pruned(plan, places)


def _key_of(node: LogicalScan) -> _Columns:
    """The primary key of a table whose rows replace one another by it."""
    key = node.table.primary_key
    if node.abilities.changes.is_insert_only or key is None:
        return frozenset()
    return frozenset(map(node.schema.names.index, key.columns))


def _cheapest(row: RowType) -> int:
    """A column of which only the number of values matters."""
    order = ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "DATE", "BIGINT", "DOUBLE"]
    ranks = [
        order.index(each.type.text()) if each.type.text() in order else len(order)
        for each in row.fields
    ]
    return ranks.index(min(ranks))


def _values(node: LogicalValues, wanted: _Columns) -> _Pruned:
    columns = sorted(wanted) or [0]
    places = {column: place for place, column in enumerate(columns)}
    rows = tuple(tuple(row[column] for column in columns) for row in node.rows)
    fields = [node.schema.fields[column] for column in columns]
    return _Pruned(LogicalValues(row_of(fields), rows), places)


def _project(node: LogicalProject, wanted: _Columns) -> _Pruned:
    columns = sorted(wanted) or [0]
    kept = [node.projections[column] for column in columns]
    below = _pruned(node.input, frozenset[int]().union(*map(inputs_of, kept)))
    plan = project(
        below.plan,
        [moved_inputs(each, below.places) for each in kept],
        [node.schema.names[column] for column in columns],
    )
    return _Pruned(plan, {column: place for place, column in enumerate(columns)})


def _filter(node: LogicalFilter, wanted: _Columns) -> _Pruned:
    below = _pruned(node.input, wanted | inputs_of(node.condition))
    condition = moved_inputs(node.condition, below.places)
    return _Pruned(LogicalFilter(below.plan.schema, below.plan, condition), below.places)


def _watermark(node: LogicalWatermark, wanted: _Columns) -> _Pruned:
    below = _pruned(node.input, wanted | inputs_of(node.strategy) | {node.rowtime})
    rowtime = below.places[node.rowtime]
    fields = list(below.plan.schema.fields)
    fields[rowtime] = node.schema.fields[node.rowtime]
    strategy = moved_inputs(node.strategy, below.places)
    plan = LogicalWatermark(row_of(fields), below.plan, rowtime, strategy)
    return _Pruned(plan, below.places)


def _window(node: LogicalWindow, wanted: _Columns) -> _Pruned:
    width = node.input.width
    read = frozenset(i for i in wanted if i < width) | {node.window.time} | {*node.window.partition}
    below = _pruned(node.input, read)
    window = replace(
        node.window,
        time=below.places[node.window.time],
        partition=tuple(below.places[each] for each in node.window.partition),
    )
    fields = (*below.plan.schema.fields, *node.schema.fields[width:])
    plan = LogicalWindow(row_of(fields), below.plan, window)
    return _Pruned(plan, _appended(below, width, node.width))


def _correlate(node: LogicalCorrelate, wanted: _Columns) -> _Pruned:
    width = node.input.width
    read_above = frozenset(i for i in wanted if i < width)
    of_condition = frozenset[int]()
    for each in conjuncts(node.condition):
        of_condition |= frozenset(i for i in inputs_of(each) if i < width)
    read = (read_above | of_condition).union(*map(inputs_of, node.arguments))
    below = _only(node.input, read)
    passed = sorted(i for i in read_above | of_condition)
    places = {column: place for place, column in enumerate(passed)}
    places |= {column: len(passed) + column - width for column in range(width, node.width)}
    kept = tuple(below.places[column] for column in passed)
    fields = [*(below.plan.schema.fields[at] for at in kept), *node.schema.fields[width:]]
    plan = replace(
        node,
        schema=row_of(fields),
        input=below.plan,
        arguments=tuple(moved_inputs(each, below.places) for each in node.arguments),
        condition=None if node.condition is None else moved_inputs(node.condition, places),
        kept=None if kept == tuple(range(below.plan.width)) else kept,
    )
    return _Pruned(plan, places)


def _appended(below: _Pruned, width: int, end: int) -> dict[int, int]:
    """Columns behind those of the input keep their order."""
    by = below.plan.width - width
    return below.places | {index: index + by for index in range(width, end)}


def _aggregate(node: LogicalAggregate, wanted: _Columns) -> _Pruned:
    count = len(node.keys)
    kept = [place for place in range(len(node.calls)) if count + place in wanted]
    if not node.keys and not kept and node.calls:
        kept = [0]
    calls = [node.calls[place] for place in kept]
    read = frozenset(node.keys).union(*map(_columns_of, calls))
    below = _pruned(node.input, read)
    columns = [*range(count), *(count + place for place in kept)]
    if node.grouping_sets is not None:
        columns.append(node.width - 1)
    plan = replace(
        node,
        schema=row_of([node.schema.fields[column] for column in columns]),
        input=below.plan,
        keys=tuple(below.places[key] for key in node.keys),
        calls=tuple(moved_call(each, below.places) for each in calls),
    )
    return _Pruned(plan, {column: place for place, column in enumerate(columns)})


def _columns_of(call: AggregateCall) -> _Columns:
    chosen = () if call.filter is None else (call.filter,)
    return frozenset([*call.arguments, *chosen, *(each.index for each in call.order_by)])


def moved_call(call: AggregateCall, places: dict[int, int]) -> AggregateCall:
    """The aggregate over columns that stand elsewhere."""
    return replace(
        call,
        arguments=tuple(places[each] for each in call.arguments),
        filter=None if call.filter is None else places[call.filter],
        order_by=moved_keys(call.order_by, places),
    )


def moved_keys(keys: Sequence[SortKey], places: dict[int, int]) -> tuple[SortKey, ...]:
    """The order by columns that stand elsewhere."""
    return tuple(replace(each, index=places[each.index]) for each in keys)


def _over(node: LogicalOver, wanted: _Columns) -> _Pruned:
    width = node.input.width
    groups: list[OverGroup] = []
    kept: list[int] = []
    place = width
    for group in node.groups:
        chosen = [at for at in range(len(group.calls)) if place + at in wanted]
        if chosen:
            calls = tuple(group.calls[at] for at in chosen)
            groups.append(replace(group, calls=calls))
            kept += [place + at for at in chosen]
        place += len(group.calls)
    if not groups:
        return _pruned(node.input, wanted)
    read = frozenset(i for i in wanted if i < width)
    for group in groups:
        read = read.union(group.partition, (key.index for key in group.keys))
        read = read.union(*map(_columns_of, group.calls))
    below = _only(node.input, read)
    fields = [*below.plan.schema.fields, *(node.schema.fields[column] for column in kept)]
    plan = LogicalOver(
        row_of(fields), below.plan, tuple(_moved_group(each, below.places) for each in groups)
    )
    first = below.plan.width
    places = below.places | {column: first + at for at, column in enumerate(kept)}
    return _Pruned(plan, places)


def _moved_group(group: OverGroup, places: dict[int, int]) -> OverGroup:
    return replace(
        group,
        partition=tuple(places[each] for each in group.partition),
        keys=moved_keys(group.keys, places),
        calls=tuple(moved_call(each, places) for each in group.calls),
    )


def _rank(node: LogicalRank, wanted: _Columns) -> _Pruned:
    width = node.input.width
    read = frozenset(i for i in wanted if i < width) | {*node.partition}
    below = _only(node.input, read | {key.index for key in node.keys})
    gives_rank = node.gives_rank and width in wanted
    fields = [*below.plan.schema.fields]
    if gives_rank:
        fields.append(node.schema.fields[width])
    plan = replace(
        node,
        schema=row_of(fields),
        input=below.plan,
        partition=tuple(below.places[each] for each in node.partition),
        keys=moved_keys(node.keys, below.places),
        gives_rank=gives_rank,
    )
    return _Pruned(plan, below.places | ({width: below.plan.width} if gives_rank else {}))


def _sort(node: LogicalSort, wanted: _Columns) -> _Pruned:
    below = _only(node.input, wanted | {key.index for key in node.keys})
    keys = moved_keys(node.keys, below.places)
    plan = replace(node, schema=below.plan.schema, input=below.plan, keys=keys)
    return _Pruned(plan, below.places)


def _join(node: LogicalJoin, wanted: _Columns) -> _Pruned:
    width = node.left.width
    read = wanted.union(*map(inputs_of, conjuncts(node.condition)))
    left = _only(node.left, frozenset(i for i in read if i < width))
    right = _only(node.right, frozenset(i - width for i in read if i >= width))
    by = left.plan.width
    places = left.places | {width + old: by + new for old, new in right.places.items()}
    condition = None if node.condition is None else moved_inputs(node.condition, places)
    plan = join(left.plan, right.plan, node.kind, condition, node.null_aware)
    return _Pruned(plan, left.places if node.kind in (JoinKind.SEMI, JoinKind.ANTI) else places)


def _temporal_join(node: LogicalTemporalJoin, wanted: _Columns) -> _Pruned:
    width = node.left.width
    read = wanted.union(*map(inputs_of, conjuncts(node.condition)))
    left = _only(node.left, frozenset(i for i in read if i < width) | {node.time})
    since = frozenset[int]() if node.since is None else frozenset([node.since])
    right = _only(node.right, since.union(i - width for i in read if i >= width))
    by = left.plan.width
    places = left.places | {width + old: by + new for old, new in right.places.items()}
    plan = replace(
        node,
        schema=temporal_schema(left.plan.schema, right.plan.schema, node.kind),
        left=left.plan,
        right=right.plan,
        time=left.places[node.time],
        since=None if node.since is None else right.places[node.since],
        condition=None if node.condition is None else moved_inputs(node.condition, places),
    )
    return _Pruned(plan, places)


def _set_operation(node: LogicalSetOperation, wanted: _Columns) -> _Pruned:
    if node.kind != "UNION" or not node.keeps_all:
        wanted = frozenset(range(node.width))
    columns = sorted(wanted) or [0]
    fields = [node.schema.fields[column] for column in columns]
    names = [each.name for each in fields]
    branches = tuple(
        _exactly(_pruned(each, frozenset(columns)), columns, names) for each in node.branches
    )
    plan = replace(node, schema=row_of(fields), branches=branches)
    return _Pruned(plan, {column: place for place, column in enumerate(columns)})


_Handler = Callable[[Any, _Columns], _Pruned]
_HANDLERS: dict[type[LogicalNode], _Handler] = {
    LogicalScan: _scan,
    LogicalValues: _values,
    LogicalProject: _project,
    LogicalFilter: _filter,
    LogicalWatermark: _watermark,
    LogicalWindow: _window,
    LogicalCorrelate: _correlate,
    LogicalAggregate: _aggregate,
    LogicalOver: _over,
    LogicalRank: _rank,
    LogicalSort: _sort,
    LogicalJoin: _join,
    LogicalTemporalJoin: _temporal_join,
    LogicalSetOperation: _set_operation,
}
