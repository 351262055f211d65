"""Schemas of the columns that nodes of a plan give, and keys of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.columns.sql.arrow_of_logical import arrow_of
from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.graph.partitioning import KeySpec
from flinkpy.sql.physical.physical_nodes import Exchange, PhysicalNode

if TYPE_CHECKING:
    import pyarrow as pa


def schema_of(row: RowType) -> pa.Schema:
    """The schema of a node's columns. Equal names, which a join can give, get numbers."""
    import pyarrow as pa

    fields: dict[str, Any] = {}
    for field in row:
        name, number = field.name, 0
        while name in fields:
            name, number = f"{field.name}{number}", number + 1
        fields[name] = arrow_of(field.type)
    return pa.schema(list(fields.items()))


def key_by(row: RowType, keys: Sequence[int]) -> KeySpec | None:
    """These columns as the key of an operator's state."""
    names = schema_of(row).names
    return KeySpec(columns=tuple(names[at] for at in keys)) if keys else None


def keys_of_exchange(node: PhysicalNode) -> tuple[str, ...]:
    """The columns over which the rows of an exchange are distributed."""
    assert isinstance(node, Exchange)
    names = schema_of(node.schema).names
    return tuple(names[at] for at in node.keys)


def key_of_exchange(node: PhysicalNode) -> KeySpec | None:
    """These columns as the key of the state of the operator behind the exchange."""
    keys = keys_of_exchange(node)
    return KeySpec(columns=keys) if keys else None
