"""All nodes of a statement's tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from flinkpy.sql.syntax.query_tree import SqlNode


def nodes_of(root: SqlNode) -> Iterator[SqlNode]:
    """The node and all below it, in the order of the text where the fields are in it. Without
    recursion, as statements may nest deeply."""
    pending: list[object] = [root]
    while pending:
        each = pending.pop()
        if isinstance(each, SqlNode):
            yield each
            pending.extend(getattr(each, field.name) for field in reversed(fields(each)))
        elif isinstance(each, tuple):
            pending.extend(reversed(each))
