"""Where rows come from, and how they meet: tables, rows of a statement, unions and exchanges."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.columns.sql.arrays_of_values import array_of_values
from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.graph.partitioning import BROADCAST, GLOBAL, KeySpec, Partitioning, PartitioningKind
from flinkpy.graph.transformations import PartitionTransformation, UnionTransformation
from flinkpy.sql.physical.physical_nodes import (
    CollectNode,
    Exchange,
    TableScan,
    UnionAll,
    ValuesNode,
)
from flinkpy.table.translation.families.unions_in_order import with_one_parallelism
from flinkpy.table.translation.node_schemas import schema_of
from flinkpy.table.translation.translation_context import Family, TranslationContext


def table_scan(node: TableScan, context: TranslationContext) -> ColumnStream:
    """The rows of a table."""
    before = context.shared_scan(node)
    if before is not None:
        return before
    recorded = context.factories.scan(context.env, node).recorded
    stream = recorded.as_columns(f"the table {node.path}", in_place=True)
    if stream.schema is None:
        stream = replace(stream, schema=schema_of(node.schema))  # the source does not say it
    return stream


def values(node: ValuesNode, context: TranslationContext) -> ColumnStream:
    """The rows of a statement."""
    import pyarrow as pa

    columns = list(zip(*node.rows)) or [()] * len(node.schema.fields)
    arrays = [array_of_values(list(c), f.type) for c, f in zip(columns, node.schema)]
    table = pa.Table.from_arrays(arrays, schema=schema_of(node.schema))
    stream = context.env.from_arrow(table).recorded.as_columns("VALUES")
    stream.make_non_parallel()  # its rows stay in their order
    return stream


def union_all(node: UnionAll, context: TranslationContext) -> ColumnStream:
    """The rows of all branches."""
    branches = [context.stream_of(each) for each in node.branches]
    if not node.changes.is_insert_only:
        branches = with_one_parallelism(branches)
    first = branches[0]
    made = UnionTransformation(
        id=first.program.next_id(), name="Union", union=[each.transformation for each in branches]
    )
    stream = ColumnStream(first.program, made, schema=schema_of(node.schema))
    places = {each.transformation.parallelism for each in branches}
    if places == {1}:
        stream.make_non_parallel()
    elif len(places) == 1:
        made.parallelism = first.transformation.parallelism
    return stream


def exchange(node: Exchange, context: TranslationContext) -> ColumnStream:
    """Rows on their way to the subtasks of their keys, to all, or to one."""
    stream = context.stream_of(node.input)
    if node.is_broadcast:
        partitioning = BROADCAST
    elif node.keys:
        assert stream.schema is not None  # that of a LOCAL aggregate is not its node's
        key = KeySpec(columns=tuple(stream.schema.names[at] for at in node.keys))
        partitioning = Partitioning(PartitioningKind.HASH, key)
    else:
        partitioning = GLOBAL
    made = PartitionTransformation(
        id=stream.program.next_id(),
        name="Exchange",
        input=stream.transformation,
        partitioning=partitioning,
    )
    return ColumnStream(stream.program, made, schema=stream.schema)


def collected(node: CollectNode, context: TranslationContext) -> ColumnStream:
    """The rows that a program collects, as they are."""
    return context.stream_of(node.input)


TRANSLATIONS: Family = {
    TableScan: table_scan,
    ValuesNode: values,
    UnionAll: union_all,
    Exchange: exchange,
    CollectNode: collected,
}
