"""What is computed along an order: sorts, ranks, OVER and first rows."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.relational.in_time.first_rows import FirstRowsOperator
from flinkpy.relational.in_time.over_in_time import OverInTimeOperator
from flinkpy.relational.in_time.temporal_sort import TemporalSortOperator
from flinkpy.relational.ordering.over_aggregate import OverAggregateOperator
from flinkpy.relational.ordering.rank_rows import RankOperator, RankSpec
from flinkpy.relational.ordering.sort_rows import SortOperator
from flinkpy.sql.physical.physical_nodes import Deduplicate, OverAggregate, Rank, Sort, TemporalSort
from flinkpy.table.translation.families.calls_of_users import with_functions
from flinkpy.table.translation.node_schemas import key_by, schema_of
from flinkpy.table.translation.translation_context import Family, TranslationContext


def sort(node: Sort, context: TranslationContext) -> ColumnStream:
    """All rows in an order."""
    operator = SortOperator(node.keys, schema_of(node.schema), node.offset, node.limit)
    return context.applied(node, operator)


def temporal_sort(node: TemporalSort, context: TranslationContext) -> ColumnStream:
    """Rows in the order of their time."""
    return context.applied(node, TemporalSortOperator(node.keys, schema_of(node.schema)))


def first_rows(node: Deduplicate, context: TranslationContext) -> ColumnStream:
    """The first row of each key."""
    operator = FirstRowsOperator(
        schema_of(node.input.schema),
        node.time if node.is_rowtime else None,
        node.keys,
        schema_of(node.schema),
        gives_rank=node.gives_rank,
        ttl_ms=node.state_ttl_ms,
    )
    return context.applied(node, operator, key_by(node.input.schema, node.keys))


def rank(node: Rank, context: TranslationContext) -> ColumnStream:
    """The best rows of each partition, when all have come."""
    spec = RankSpec(
        node.function, node.partition, node.keys, node.first, node.last, node.gives_rank
    )
    operator = RankOperator(spec, schema_of(node.input.schema), schema_of(node.schema))
    return context.applied(node, operator)


def over_aggregate(node: OverAggregate, context: TranslationContext) -> ColumnStream:
    """Calls over frames: in BATCH of sorted partitions, in STREAMING as time goes on."""
    inputs, schema = schema_of(node.input.schema), schema_of(node.schema)
    groups = [
        replace(group, calls=with_functions(group.calls, node.input.schema, context.registry))
        for group in node.groups
    ]
    if context.is_batch:
        return context.applied(node, OverAggregateOperator(groups, inputs, schema))
    [group] = groups
    operator = OverInTimeOperator(group, inputs, schema, is_rowtime=node.is_rowtime)
    return context.applied(node, operator, key_by(node.input.schema, group.partition))


TRANSLATIONS: Family = {
    Sort: sort,
    TemporalSort: temporal_sort,
    Deduplicate: first_rows,
    Rank: rank,
    OverAggregate: over_aggregate,
}
