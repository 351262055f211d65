"""Joins that keep all rows of both inputs."""

from __future__ import annotations

from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.relational.joins.kept_rows import JoinInput
from flinkpy.relational.joins.regular_join import RegularJoinOperator
from flinkpy.sql.physical.physical_nodes import AppendJoin, RegularJoin
from flinkpy.table.translation.families.shared_by_joins import applied_by_keys, join_spec
from flinkpy.table.translation.node_schemas import schema_of
from flinkpy.table.translation.translation_context import Family, TranslationContext


def regular_join(node: RegularJoin | AppendJoin, context: TranslationContext) -> ColumnStream:
    """A join without bounds in time."""
    left, right, schema = (schema_of(each.schema) for each in (*node.inputs, node))
    if isinstance(node, AppendJoin):
        inputs = JoinInput(left, changes=node.changes), JoinInput(right, changes=node.changes)
    else:
        inputs = (
            JoinInput(left, node.left_unique_keys, node.left.changes, node.left_ttl_ms),
            JoinInput(right, node.right_unique_keys, node.right.changes, node.right_ttl_ms),
        )
    operator = RegularJoinOperator(join_spec(node, context), *inputs, schema, node.changes)
    return applied_by_keys(node, operator, context)


TRANSLATIONS: Family = {AppendJoin: regular_join, RegularJoin: regular_join}
