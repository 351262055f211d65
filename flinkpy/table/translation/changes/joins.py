"""Regular joins as operators."""

from __future__ import annotations

from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.joins.kept_rows import JoinInput
from flinkpy.relational.joins.regular_join import RegularJoinOperator
from flinkpy.sql.physical.physical_nodes import AppendJoin, RegularJoin
from flinkpy.table.translation.node_schemas import schema_of


def regular_join(node: RegularJoin | AppendJoin, spec: JoinSpec) -> RegularJoinOperator:
    """The operator of a join that keeps all rows of both inputs."""
    left, right, schema = (schema_of(each.schema) for each in (*node.inputs, node))
    if isinstance(node, AppendJoin):
        inputs = JoinInput(left, changes=node.changes), JoinInput(right, changes=node.changes)
    else:
        inputs = (
            JoinInput(left, node.left_unique_keys, node.left.changes, node.left_ttl_ms),
            JoinInput(right, node.right_unique_keys, node.right.changes, node.right_ttl_ms),
        )
    return RegularJoinOperator(spec, *inputs, schema, node.changes)
