"""Which module translates a node. A family of nodes has a module, with the operators they need.
It is imported when a plan has the first of them, so that a small query does not wait for all."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.sql.physical.physical_nodes import (
    Calc,
    ChangelogNormalize,
    ChangingLimit,
    ChangingOver,
    ChangingRank,
    CollectNode,
    Correlate,
    Deduplicate,
    DistinctBuckets,
    DropUpdateBefore,
    Exchange,
    Expand,
    GroupAggregate,
    HashAggregate,
    HashJoin,
    IntervalJoin,
    LastRow,
    Limit,
    LookupJoin,
    MiniBatchAssigner,
    OverAggregate,
    PhysicalNode,
    Rank,
    RegularJoin,
    Sort,
    TableScan,
    TemporalJoin,
    TemporalSort,
    UnionAll,
    ValuesNode,
    WatermarkAssigner,
    WindowAggregate,
    WindowJoin,
    WindowRank,
    WindowTableFunction,
)
from flinkpy.table.translation.translation_context import Family, Translation


def translation_of(node: type[PhysicalNode]) -> Translation | None:
    """The function that translates nodes of this class, behind their inputs."""
    family = _FAMILIES.get(node)
    return None if family is None else family()[node]


def _inputs() -> Family:
    from flinkpy.table.translation.families import scans_and_exchanges

    return scans_and_exchanges.TRANSLATIONS


def _rows() -> Family:
    from flinkpy.table.translation.families import computed_columns

    return computed_columns.TRANSLATIONS


def _correlated() -> Family:
    from flinkpy.table.translation.families import correlated_rows

    return correlated_rows.TRANSLATIONS


def _looked_up() -> Family:
    from flinkpy.table.translation.families import looked_up_rows

    return looked_up_rows.TRANSLATIONS


def _aggregates() -> Family:
    from flinkpy.table.translation.families import batch_aggregates

    return batch_aggregates.TRANSLATIONS


def _joins() -> Family:
    from flinkpy.table.translation.families import bounded_joins

    return bounded_joins.TRANSLATIONS


def _ordered() -> Family:
    from flinkpy.table.translation.families import orders_and_ranks

    return orders_and_ranks.TRANSLATIONS


def _windows() -> Family:
    from flinkpy.table.translation.families import windows_of_time

    return windows_of_time.TRANSLATIONS


def _changing_aggregates() -> Family:
    from flinkpy.table.translation.changes import aggregates

    return aggregates.TRANSLATIONS


def _changing_joins() -> Family:
    from flinkpy.table.translation.changes import joins

    return joins.TRANSLATIONS


def _changing_ranks() -> Family:
    from flinkpy.table.translation.changes import ranks

    return ranks.TRANSLATIONS


def _changing_over() -> Family:
    from flinkpy.table.translation.changes import over_rows

    return over_rows.TRANSLATIONS


_FAMILIES: dict[type[PhysicalNode], Callable[[], Family]] = {
    **dict.fromkeys((TableScan, ValuesNode, UnionAll, Exchange, CollectNode), _inputs),
    **dict.fromkeys((Calc, Expand, Limit), _rows),
    Correlate: _correlated,
    LookupJoin: _looked_up,
    HashAggregate: _aggregates,
    **dict.fromkeys((GroupAggregate, MiniBatchAssigner, DistinctBuckets), _changing_aggregates),
    **dict.fromkeys((HashJoin, IntervalJoin), _joins),
    **dict.fromkeys((RegularJoin, TemporalJoin), _changing_joins),
    **dict.fromkeys((Sort, Rank, OverAggregate, TemporalSort, Deduplicate), _ordered),
    **dict.fromkeys((WatermarkAssigner, WindowTableFunction, WindowAggregate), _windows),
    **dict.fromkeys((WindowJoin, WindowRank), _windows),
    **dict.fromkeys((LastRow, ChangelogNormalize, ChangingRank), _changing_ranks),
    **dict.fromkeys((ChangingLimit, DropUpdateBefore), _changing_ranks),
    ChangingOver: _changing_over,
}
