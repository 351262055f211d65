"""Operators of aggregates whose results change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flinkpy.relational.groups.changing_groups import GroupAggregateOperator, GroupSpec
from flinkpy.sql.physical.physical_nodes import GroupAggregate, Phase
from flinkpy.sql.rex.rex_nodes import AggregateCall
from flinkpy.sql.sql_errors import ValidationError

if TYPE_CHECKING:
    import pyarrow as pa


def group_aggregate(
    node: GroupAggregate, calls: Sequence[AggregateCall], inputs: pa.Schema, schema: pa.Schema
) -> GroupAggregateOperator:
    """The operator of a node; ``calls`` are those of the node with the functions of the program."""
    if node.phase is not Phase.WHOLE:
        raise ValidationError("a GroupAggregate in two phases cannot run yet")
    spec = GroupSpec(node.keys, tuple(calls), node.changes, node.takes_changes, node.state_ttl_ms)
    return GroupAggregateOperator(spec, inputs, schema)
