"""Aggregates whose results change."""

from __future__ import annotations

from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.relational.groups.changing_groups import GroupAggregateOperator, GroupSpec
from flinkpy.sql.physical.physical_nodes import GroupAggregate, Phase
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.translation.families.calls_of_users import with_functions
from flinkpy.table.translation.node_schemas import key_by, schema_of
from flinkpy.table.translation.translation_context import Family, TranslationContext


def group_aggregate(node: GroupAggregate, context: TranslationContext) -> ColumnStream:
    """Groups whose results change with their rows."""
    if node.phase is not Phase.WHOLE:
        raise ValidationError("a GroupAggregate in two phases cannot run yet")
    calls = with_functions(node.calls, node.input.schema, context.registry)
    inputs, schema = schema_of(node.input.schema), schema_of(node.schema)
    spec = GroupSpec(node.keys, calls, node.changes, node.takes_changes, node.state_ttl_ms)
    operator = GroupAggregateOperator(spec, inputs, schema)
    return context.applied(node, operator, key_by(node.input.schema, node.keys))


TRANSLATIONS: Family = {GroupAggregate: group_aggregate}
