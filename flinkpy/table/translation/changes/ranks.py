"""Nodes that keep the last row of a key, or the best rows of a partition."""

from __future__ import annotations

from flinkpy.datastream.streams.recorded import ColumnStream
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
    RankStrategy,
)
from flinkpy.table.translation.node_schemas import key_by, schema_of
from flinkpy.table.translation.translation_context import Family, TranslationContext

_ALL = (1 << 63) - 1  # rows


def last_row(node: LastRow, context: TranslationContext) -> ColumnStream:
    """The last row of each key."""
    operator = LastRowsOperator(
        schema_of(node.input.schema),
        node.time if node.is_rowtime else None,
        node.keys,
        schema_of(node.schema),
        node.changes,
        node.state_ttl_ms,
        every_change=node.every_change,
    )
    return context.applied(node, operator, key_by(node.input.schema, node.keys))


def changelog_normalize(node: ChangelogNormalize, context: TranslationContext) -> ColumnStream:
    """Upserts, completed with the rows before them."""
    inputs, schema = schema_of(node.input.schema), schema_of(node.schema)
    ttl_ms, every_change = node.state_ttl_ms, node.every_change
    operator = NormalizedRowsOperator(
        inputs, node.keys, schema, node.changes, ttl_ms, every_change=every_change
    )
    return context.applied(node, operator, key_by(node.input.schema, node.keys))


def changing_rank(node: ChangingRank, context: TranslationContext) -> ColumnStream:
    """The best rows of each partition."""
    rank = RankSpec(
        node.function, node.partition, node.keys, node.first, node.last, node.gives_rank
    )
    spec = ChangingRankSpec(
        rank, node.strategy, node.changes, node.upsert_key, every_change=node.every_change
    )
    return _ranked(node, spec, context, node.state_ttl_ms)


def changing_limit(node: ChangingLimit, context: TranslationContext) -> ColumnStream:
    """As in Flink, the rank by an order in which all rows are equal: the first to come are the
    best."""
    last = _ALL if node.limit is None else node.offset + node.limit
    rank = RankSpec("ROW_NUMBER", (), (), node.offset + 1, last)
    return _ranked(node, ChangingRankSpec(rank, RankStrategy.RETRACT, node.changes), context)


def _ranked(
    node: ChangingRank | ChangingLimit,
    spec: ChangingRankSpec,
    context: TranslationContext,
    ttl_ms: int = 0,
) -> ColumnStream:
    inputs, schema = schema_of(node.input.schema), schema_of(node.schema)
    operator = ChangingRankOperator(spec, inputs, schema, ttl_ms)
    return context.applied(node, operator, key_by(node.input.schema, spec.rank.partition))


def drop_update_before(node: DropUpdateBefore, context: TranslationContext) -> ColumnStream:
    """Changes without the row before an update."""
    return context.applied(node, DropUpdateBeforeOperator(schema_of(node.schema)))


TRANSLATIONS: Family = {
    LastRow: last_row,
    ChangelogNormalize: changelog_normalize,
    ChangingRank: changing_rank,
    ChangingLimit: changing_limit,
    DropUpdateBefore: drop_update_before,
}
