"""GROUP BY in BATCH, perhaps in two phases."""

from __future__ import annotations

from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.relational.aggregates.calls_of_groups import partial_schema
from flinkpy.relational.hash_groups.hash_aggregate import HashAggregateOperator
from flinkpy.sql.physical.physical_nodes import Exchange, HashAggregate, Phase, PhysicalNode
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.translation.families.calls_of_users import with_functions
from flinkpy.table.translation.node_schemas import schema_of
from flinkpy.table.translation.operator_names import operator_name
from flinkpy.table.translation.translation_context import Family, TranslationContext


def hash_aggregate(node: HashAggregate, context: TranslationContext) -> ColumnStream:
    """One phase of an aggregate in BATCH."""
    schema = schema_of(node.schema)
    if node.phase is Phase.GLOBAL:
        local = _local_of(node)
        inputs, calls = schema_of(local.input.schema), local.calls
        keys = local.keys
    else:
        inputs, calls, keys = schema_of(node.input.schema), node.calls, node.keys
    if node.phase is Phase.LOCAL:
        parts = partial_schema(node.keys, node.calls, inputs)
        if parts is None:
            raise ValidationError(f"{operator_name(node)} cannot be computed in two phases")
        schema = parts
    if node.phase is Phase.WHOLE:
        calls = with_functions(calls, node.input.schema, context.registry)
    return context.applied(node, HashAggregateOperator(keys, calls, node.phase, inputs, schema))


def _local_of(node: HashAggregate) -> HashAggregate:
    """The LOCAL aggregate whose rows a GLOBAL one merges."""
    below: PhysicalNode = node.input
    while isinstance(below, Exchange):
        below = below.input
    if not isinstance(below, HashAggregate) or below.phase is not Phase.LOCAL:
        raise ValidationError("a GLOBAL aggregate stands over a LOCAL one")
    return below


TRANSLATIONS: Family = {HashAggregate: hash_aggregate}
