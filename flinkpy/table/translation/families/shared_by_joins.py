"""What the translations of all joins share."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.table.translation.node_schemas import key_of_exchange
from flinkpy.table.translation.translation_context import TranslationContext

if TYPE_CHECKING:
    from flinkpy.graph.operator_port import ColumnarJoin
    from flinkpy.sql.physical.physical_nodes import (
        HashJoin,
        IntervalJoin,
        RegularJoin,
        TemporalJoin,
        WindowJoin,
    )

    KeyedJoin: TypeAlias = WindowJoin | RegularJoin | IntervalJoin | TemporalJoin


def join_spec(node: HashJoin | KeyedJoin, context: TranslationContext) -> JoinSpec:
    """The kind of a join, its keys and its condition."""
    names = (*node.left.schema.names, *node.right.schema.names)
    condition = node.condition
    return JoinSpec(
        node.kind,
        node.left_keys,
        node.right_keys,
        node.null_safe,
        None if condition is None else context.program((), condition, names),
    )


def applied_by_keys(
    node: KeyedJoin, operator: ColumnarJoin, context: TranslationContext
) -> ColumnStream:
    """The operator of a join; its state is by the columns over which its inputs are distributed."""
    left, right = (key_of_exchange(each) for each in node.inputs)
    return context.applied_to_two(node, operator, left, right)
