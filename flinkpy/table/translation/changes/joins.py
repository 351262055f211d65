"""Joins that keep all rows of both inputs."""

from __future__ import annotations

from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.joins.kept_rows import JoinInput
from flinkpy.relational.joins.regular_join import RegularJoinOperator
from flinkpy.relational.joins.temporal_rows_join import TemporalRowsJoinOperator, TemporalTimes
from flinkpy.sql.physical.physical_nodes import RegularJoin, TemporalJoin
from flinkpy.sql.rex.relational_terms import JoinKind
from flinkpy.table.translation.families.shared_by_joins import applied_by_keys, join_spec
from flinkpy.table.translation.node_schemas import schema_of
from flinkpy.table.translation.translation_context import Family, TranslationContext


def regular_join(node: RegularJoin, context: TranslationContext) -> ColumnStream:
    """A join without bounds in time."""
    left, right, schema = (schema_of(each.schema) for each in (*node.inputs, node))
    left_unique, right_unique = node.left_unique_keys, node.right_unique_keys
    if _pairs_stay(node):  # no row replaces another one, whatever the tables say of their keys
        left_unique = right_unique = ()
    inputs = (
        JoinInput(left, left_unique, node.left.changes, node.left_ttl_ms),
        JoinInput(right, right_unique, node.right.changes, node.right_ttl_ms),
    )
    operator = RegularJoinOperator(_spec(node, context), *inputs, schema, node.changes)
    return applied_by_keys(node, operator, context)


def _pairs_stay(node: RegularJoin) -> bool:
    """Whether a pair is never taken back: rows are only added, and none is forgotten."""
    is_growing = all(each.changes.is_insert_only for each in node.inputs)
    forever = not node.left_ttl_ms and not node.right_ttl_ms
    return node.kind in (JoinKind.INNER, JoinKind.SEMI) and forever and is_growing


def _spec(node: RegularJoin, context: TranslationContext) -> JoinSpec:
    """Rows of a NOT IN are found by their key and by nulls, as its condition says."""
    if node.unknown_keys is None:
        return join_spec(node, context)
    left, right = node.unknown_keys
    return JoinSpec(node.kind, (left,), (right,), (False,), null_aware=True)


def temporal_join(node: TemporalJoin, context: TranslationContext) -> ColumnStream:
    """A join with the versions of a table."""
    left, right, schema = (schema_of(each.schema) for each in (*node.inputs, node))
    times = TemporalTimes(node.left_time, node.right_time, node.state_ttl_ms)
    operator = TemporalRowsJoinOperator(
        join_spec(node, context), times, left, right, schema, node.changes
    )
    return applied_by_keys(node, operator, context)


TRANSLATIONS: Family = {RegularJoin: regular_join, TemporalJoin: temporal_join}
