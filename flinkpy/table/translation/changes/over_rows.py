"""OVER whose results change with the rows before."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.relational.ordering.changing_over import ChangingOverOperator
from flinkpy.sql.physical.physical_nodes import ChangingOver
from flinkpy.table.translation.families.calls_of_users import with_functions
from flinkpy.table.translation.node_schemas import key_by, schema_of
from flinkpy.table.translation.translation_context import Family, TranslationContext


def changing_over(node: ChangingOver, context: TranslationContext) -> ColumnStream:
    """Rows with aggregates over those before them in an order that is no time."""
    below = node.input.schema
    group = replace(node.group, calls=with_functions(node.group.calls, below, context.registry))
    inputs, schema = schema_of(below), schema_of(node.schema)
    operator = ChangingOverOperator(group, inputs, schema, node.changes, node.state_ttl_ms)
    return context.applied(node, operator, key_by(below, group.partition))


TRANSLATIONS: Family = {ChangingOver: changing_over}
