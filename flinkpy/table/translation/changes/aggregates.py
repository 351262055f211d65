"""Operators of aggregates whose results change, and of rows that gather for them."""

from __future__ import annotations

from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.graph.partitioning import KeySpec
from flinkpy.relational.aggregates.aggregate_code import code_of
from flinkpy.relational.groups.changing_groups import GroupAggregateOperator, GroupSpec
from flinkpy.relational.groups.distinct_buckets import DistinctBucketsOperator
from flinkpy.relational.groups.groups_in_phases import GlobalGroupsOperator, LocalGroupsOperator
from flinkpy.relational.row_by_row.gathered_rows import GatherRowsOperator
from flinkpy.sql.physical.aggregate_phases import local_of
from flinkpy.sql.physical.physical_nodes import (
    DistinctBuckets,
    GroupAggregate,
    MiniBatchAssigner,
    Phase,
)
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.translation.families.calls_of_users import with_functions
from flinkpy.table.translation.node_schemas import schema_of
from flinkpy.table.translation.translation_context import Family, TranslationContext


def group_aggregate(node: GroupAggregate, context: TranslationContext) -> ColumnStream:
    """Groups whose results change with their rows."""
    below = local_of(node) if node.phase is Phase.GLOBAL else node
    inputs, schema = schema_of(below.input.schema), schema_of(node.schema)
    calls = with_functions(node.calls, below.input.schema, context.registry)
    if any(code is not None and code.takes_whole_groups for code in map(code_of, calls)):
        raise ValidationError(
            "Pandas UDAFs are not supported in streaming mode currently: a group that never ends "
            "has no last value. Aggregate windows, take an AggregateFunction, or set "
            "'execution.runtime-mode' to BATCH if all inputs end"
        )
    spec = GroupSpec(below.keys, calls, node.changes, node.takes_changes, node.state_ttl_ms)
    if node.phase is Phase.LOCAL:
        results = [field.type for field in schema][len(node.keys) :]
        return context.applied(node, LocalGroupsOperator(spec, inputs, results))
    input = context.stream_of(node.input).schema
    assert input is not None  # that of a first phase is not its node's
    key = KeySpec(columns=tuple(input.names[at] for at in node.keys)) if node.keys else None
    made = GlobalGroupsOperator if node.phase is Phase.GLOBAL else GroupAggregateOperator
    return context.applied(node, made(spec, inputs, schema), key)


def gathered_rows(node: MiniBatchAssigner, context: TranslationContext) -> ColumnStream:
    """The rows in fewer and larger batches."""
    operator = GatherRowsOperator(node.latency_ms, node.most_rows, schema_of(node.schema))
    return context.applied(node, operator)


def distinct_buckets(node: DistinctBuckets, context: TranslationContext) -> ColumnStream:
    """The rows with the buckets of their values."""
    schema = schema_of(node.schema)
    operator = DistinctBucketsOperator(node.sets, node.choices, node.buckets, schema)
    return context.applied(node, operator)


TRANSLATIONS: Family = {
    GroupAggregate: group_aggregate,
    MiniBatchAssigner: gathered_rows,
    DistinctBuckets: distinct_buckets,
}
