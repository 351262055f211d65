"""What stands in front of a sink that takes changes by its primary key."""

from __future__ import annotations

from flinkpy.common.types import RowKind
from flinkpy.relational.relational_operator import RelationalOperator
from flinkpy.relational.sinks.materialiser import MaterialiserOperator
from flinkpy.relational.sinks.net_changes import NetChangesOperator
from flinkpy.sql.physical.physical_nodes import SinkNode
from flinkpy.table.translation.node_schemas import schema_of


def operator_of_upserts(node: SinkNode, ttl_ms: int) -> tuple[str, RelationalOperator] | None:
    """The operator that makes one row of the rows of a primary key, with its name; None if the sink
    takes them as they come."""
    names = ", ".join(node.schema.names[at] for at in node.primary_key)
    schema, changes = schema_of(node.input.schema), node.input.changes
    if node.materialises:
        name = f"SinkMaterializer(pk=[{names}])"
        return name, MaterialiserOperator(schema, node.primary_key, ttl_ms)
    if not node.primary_key or changes.is_insert_only or changes.contains(RowKind.UPDATE_BEFORE):
        return None
    return f"NetChanges(pk=[{names}])", NetChangesOperator(schema, node.primary_key)
