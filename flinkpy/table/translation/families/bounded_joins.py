"""Joins of rows that are only added: of whole tables in BATCH, of rows close in time."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.relational.joins.hash_join import HashJoinOperator
from flinkpy.relational.joins.interval_rows_join import IntervalRowsJoinOperator
from flinkpy.sql.physical.physical_nodes import HashJoin, IntervalJoin
from flinkpy.table.translation.families.shared_by_joins import applied_by_keys, join_spec
from flinkpy.table.translation.node_schemas import schema_of
from flinkpy.table.translation.translation_context import Family, TranslationContext


def hash_join(node: HashJoin, context: TranslationContext) -> ColumnStream:
    """A join in BATCH, which reads one side to its end first."""
    is_aware = node.null_aware
    spec = replace(
        join_spec(node, context), null_aware=is_aware, builds_left=node.builds_left and not is_aware
    )
    left, right = schema_of(node.left.schema), schema_of(node.right.schema)
    operator = HashJoinOperator(spec, left, right, schema_of(node.schema))
    return context.applied_to_two(node, operator)


def interval_join(node: IntervalJoin, context: TranslationContext) -> ColumnStream:
    """A join of rows whose times are close together."""
    left, right = schema_of(node.left.schema), schema_of(node.right.schema)
    operator = IntervalRowsJoinOperator(
        join_spec(node, context), node.interval, left, right, schema_of(node.schema)
    )
    return applied_by_keys(node, operator, context)


TRANSLATIONS: Family = {HashJoin: hash_join, IntervalJoin: interval_join}
