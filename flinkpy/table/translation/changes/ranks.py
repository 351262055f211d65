"""Operators of nodes that keep the last row of a key, or the best rows of a partition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flinkpy.graph.operator_port import ColumnarOperator
from flinkpy.relational.ordering.rank_rows import RankSpec
from flinkpy.relational.ranks.changing_rank import ChangingRankOperator, ChangingRankSpec
from flinkpy.relational.ranks.deduplicated_rows import LastRowsOperator
from flinkpy.relational.ranks.normalized_rows import NormalizedRowsOperator
from flinkpy.relational.row_by_row.drop_update_before import DropUpdateBeforeOperator
from flinkpy.sql.physical.physical_nodes import (
    ChangelogNormalize,
    ChangingLimit,
    ChangingRank,
    DropUpdateBefore,
    LastRow,
    OneInputNode,
    RankStrategy,
)
from flinkpy.table.translation.node_schemas import schema_of

_ALL = (1 << 63) - 1  # rows


@dataclass(frozen=True)
class ChangingOperator:
    """An operator, and the columns of its input that are the key of its state."""

    operator: ColumnarOperator
    keys: tuple[int, ...] = ()


def _last_row(node: LastRow) -> ChangingOperator:
    operator = LastRowsOperator(
        schema_of(node.input.schema),
        node.time if node.is_rowtime else None,
        node.keys,
        schema_of(node.schema),
        node.changes,
        node.state_ttl_ms,
    )
    return ChangingOperator(operator, node.keys)


def _normalized(node: ChangelogNormalize) -> ChangingOperator:
    inputs, schema = schema_of(node.input.schema), schema_of(node.schema)
    operator = NormalizedRowsOperator(inputs, node.keys, schema, node.changes, node.state_ttl_ms)
    return ChangingOperator(operator, node.keys)


def _changing_rank(node: ChangingRank) -> ChangingOperator:
    rank = RankSpec(
        node.function, node.partition, node.keys, node.first, node.last, node.gives_rank
    )
    spec = ChangingRankSpec(rank, node.strategy, node.changes, node.upsert_key)
    return _rank_operator(node, spec, node.state_ttl_ms)


def _changing_limit(node: ChangingLimit) -> ChangingOperator:
    """As in Flink, the rank by an order in which all rows are equal: the first to come are the
    best."""
    last = _ALL if node.limit is None else node.offset + node.limit
    rank = RankSpec("ROW_NUMBER", (), (), node.offset + 1, last)
    return _rank_operator(node, ChangingRankSpec(rank, RankStrategy.RETRACT, node.changes))


def _rank_operator(
    node: ChangingRank | ChangingLimit, spec: ChangingRankSpec, ttl_ms: int = 0
) -> ChangingOperator:
    inputs, schema = schema_of(node.input.schema), schema_of(node.schema)
    return ChangingOperator(ChangingRankOperator(spec, inputs, schema, ttl_ms), spec.rank.partition)


def _without_update_before(node: DropUpdateBefore) -> ChangingOperator:
    return ChangingOperator(DropUpdateBeforeOperator(schema_of(node.schema)))


OPERATORS_OF_RANKS: dict[type[OneInputNode], Callable[[Any], ChangingOperator]] = {
    LastRow: _last_row,
    ChangelogNormalize: _normalized,
    ChangingRank: _changing_rank,
    ChangingLimit: _changing_limit,
    DropUpdateBefore: _without_update_before,
}
