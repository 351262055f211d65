"""What a table that changes are written to asks of the query: the row before each update, or only
the row after it, and whether rows of one primary key have to be put in order first."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.common.types import RowKind
from flinkpy.sql.changes.update_kinds import with_update_kinds, without_rows_before
from flinkpy.sql.changes.upsert_keys import is_unique, upsert_keys
from flinkpy.sql.physical.physical_nodes import Exchange, PhysicalNode, SinkNode


def with_sink_kinds(node: SinkNode, materialize: str) -> PhysicalNode | None:
    """The sink over its input, which gives what the table takes. ``materialize`` is ``auto``,
    ``force`` or ``none``."""
    for wants_before in _wanted(node):
        input = with_update_kinds(node.input, wants_before)
        if input is None:
            continue
        if wants_before and not _has_use_for_before(node):
            input = without_rows_before(input)
        if not _materialises(node, materialize):
            return replace(node, input=input)
        sent = Exchange(input.schema, input, node.primary_key, changes=input.changes)
        return replace(node, input=sent, materialises=True)
    return None


def _wanted(node: SinkNode) -> tuple[bool, ...]:
    """Whether the row before is asked for; the better choice first."""
    if node.takes.contains(RowKind.UPDATE_BEFORE):
        return (True,)
    if node.primary_key and frozenset(node.primary_key) not in upsert_keys(node.input):
        return (True,)  # an update may move to another key: the row of the one before goes
    return (False, True)


def _has_use_for_before(node: SinkNode) -> bool:
    """A table without UPDATE_BEFORE takes such a row as a delete of its key, if it has one."""
    return node.takes.contains(RowKind.UPDATE_BEFORE) or bool(node.primary_key)


def _materialises(node: SinkNode, materialize: str) -> bool:
    if not node.primary_key or materialize == "none":
        return False
    if materialize == "force":
        return True
    if node.takes.is_insert_only or node.input.changes.is_insert_only:
        return False
    return not is_unique(upsert_keys(node.input), node.primary_key)
