"""What stands between a plan and the sink of a table: no nulls where the table has none, and one
row for each primary key."""

from __future__ import annotations

from dataclasses import dataclass

from flinkpy.common.types import RowKind
from flinkpy.datastream.streams.recorded import ColumnStream, copy_place
from flinkpy.sql.physical.physical_nodes import SinkNode
from flinkpy.table.translation.node_schemas import key_by, schema_of


@dataclass(frozen=True)
class SinkRules:
    """``drops_nulls``: instead of failing, where a table's column is NOT NULL. ``ttl_ms``: of the
    rows that stand in front of a sink that upserts; 0: none."""

    drops_nulls: bool = False
    ttl_ms: int = 0


def rows_for_sink(
    rows: ColumnStream, node: SinkNode, rules: SinkRules, *, gives_uids: bool = False
) -> ColumnStream:
    """The rows as the table of the sink takes them. ``gives_uids``: operators with state have the
    uid of the node."""
    found = _upserted(_enforced(rows, node, rules), node, rules)
    if node.materialises and gives_uids:
        found.transformation.uid = f"{node.id}_SinkMaterializer"
    return found


def _enforced(rows: ColumnStream, node: SinkNode, rules: SinkRules) -> ColumnStream:
    """Without nulls where the table has none."""
    wanted = [at for at, field in enumerate(node.schema) if not field.type.is_nullable]
    if not wanted:
        return rows
    from flinkpy.relational.row_by_row.not_null_rows import NotNullEnforcer

    schema = schema_of(node.input.schema)
    enforcer = NotNullEnforcer(wanted, schema, drops=rules.drops_nulls)
    fields = ", ".join(node.schema.names[at] for at in wanted)
    stream = rows.apply_columns(f"NotNullEnforcer(fields=[{fields}])", enforcer)
    copy_place(stream.transformation.inputs[0], stream.transformation)
    return stream


def _upserted(rows: ColumnStream, node: SinkNode, rules: SinkRules) -> ColumnStream:
    """One row for each primary key, if the table takes changes by it."""
    names = ", ".join(node.schema.names[at] for at in node.primary_key)
    schema = schema_of(node.input.schema)
    if node.materialises:
        from flinkpy.relational.sinks.materialiser import MaterialiserOperator

        materialiser = MaterialiserOperator(schema, node.primary_key, rules.ttl_ms)
        key = key_by(node.input.schema, node.primary_key)
        stream = rows.apply_columns(f"SinkMaterializer(pk=[{names}])", materialiser, key=key)
    elif node.primary_key and _are_upserts(node):
        from flinkpy.relational.sinks.net_changes import NetChangesOperator

        net = NetChangesOperator(schema, node.primary_key)
        stream = rows.apply_columns(f"NetChanges(pk=[{names}])", net)
    else:
        return rows
    copy_place(stream.transformation.inputs[0], stream.transformation)
    return stream


def _are_upserts(node: SinkNode) -> bool:
    """Also where the row before an update comes, because the table has another one under its
    key: that one goes."""
    takes_before = node.takes.contains(RowKind.UPDATE_BEFORE)
    return not node.input.changes.is_insert_only and not takes_before
