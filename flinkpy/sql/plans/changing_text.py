"""Lines of nodes whose rows change, in the words of Flink's ``explain``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flinkpy.sql.physical.aggregate_phases import local_of
from flinkpy.sql.physical.physical_nodes import (
    ChangelogNormalize,
    ChangingLimit,
    ChangingOver,
    ChangingRank,
    DistinctBuckets,
    DropUpdateBefore,
    GroupAggregate,
    LastRow,
    MiniBatchAssigner,
    Phase,
    PhysicalNode,
    RankStrategy,
    RegularJoin,
    TemporalJoin,
)
from flinkpy.sql.plans.phases_text import parts_of
from flinkpy.sql.plans.plan_text import (
    aggregates_text,
    limit_parts,
    names_at,
    names_of,
    over_text,
    where_text,
)
from flinkpy.sql.plans.rex_text import sort_text
from flinkpy.sql.rex.relational_terms import JoinKind

_JOIN_NAMES = {
    JoinKind.INNER: "InnerJoin",
    JoinKind.LEFT: "LeftOuterJoin",
    JoinKind.RIGHT: "RightOuterJoin",
    JoinKind.FULL: "FullOuterJoin",
    JoinKind.SEMI: "LeftSemiJoin",
    JoinKind.ANTI: "LeftAntiJoin",
}


def _aggregate(node: GroupAggregate) -> str:
    select = _SELECTS[node.phase](node)
    names = node.input.schema.names
    group = f"groupBy=[{names_at(node.keys, names)}], " if node.keys else ""
    word = {Phase.LOCAL: "Local", Phase.GLOBAL: "Global"}.get(node.phase, "")
    split = f"partialFinalType=[{node.split}], " if node.split else ""
    return f"{word}GroupAggregate({group}{split}select=[{select}])"


def _whole_select(node: GroupAggregate) -> str:
    return aggregates_text(node.keys, node.calls, node.input.schema.names, node.schema.names)


def _local_select(node: GroupAggregate) -> str:
    names, parts = node.input.schema.names, parts_of(node)
    found = [names[key] for key in node.keys]
    found += [f"{each.local} AS {each.name}" for each in parts.calls]
    if parts.rows is not None:
        found.append(f"COUNT(*) AS {parts.rows}")
    found += [f"DISTINCT({each}) AS distinct${at}" for at, each in enumerate(parts.distinct)]
    return ", ".join(found)


def _global_select(node: GroupAggregate) -> str:
    names = node.schema.names
    calls = parts_of(local_of(node)).calls
    found = [names[key] for key in node.keys]
    found += [f"{each.merged} AS {name}" for each, name in zip(calls, names[len(node.keys) :])]
    return ", ".join(found)


_SELECTS = {Phase.WHOLE: _whole_select, Phase.LOCAL: _local_select, Phase.GLOBAL: _global_select}


def _mini_batch(node: MiniBatchAssigner) -> str:
    return f"MiniBatchAssigner(interval=[{node.latency_ms}ms], mode=[ProcTime])"


def _buckets(node: DistinctBuckets) -> str:
    """Flink computes them in a Calc, over an Expand if there are several."""
    names = node.input.schema.names
    numbers = [
        f"MOD(HASH_CODE({names_at(each, names)}), {node.buckets}) AS {name}"
        for each, name in zip(node.sets, node.schema.names[len(names) :])
    ]
    word = "Calc" if len(node.sets) == 1 else "Expand"
    return f"{word}(select=[{', '.join([*names, *numbers])}])"


def _join(node: RegularJoin) -> str:
    left = _input_spec(node.left_keys, node.left_unique_keys)
    right = _input_spec(node.right_keys, node.right_unique_keys)
    return (
        f"Join(joinType=[{_JOIN_NAMES[node.kind]}], where=[{where_text(node)}], "
        f"select=[{names_of(node)}], leftInputSpec=[{left}], rightInputSpec=[{right}])"
    )


def _input_spec(keys: Sequence[int], unique_keys: Sequence[Sequence[int]]) -> str:
    """How a join keeps the rows of a side."""
    if not unique_keys:
        return "NoUniqueKey"
    if any(set(each) <= set(keys) for each in unique_keys):
        return "JoinKeyContainsUniqueKey"
    return "HasUniqueKey"


def _temporal_join(node: TemporalJoin) -> str:
    left, right = node.left.schema.names, node.right.schema.names
    keys = names_at(node.right_keys, right)
    asked = (
        f"__TEMPORAL_JOIN_CONDITION({left[node.left_time]}, {right[node.right_time]}, "
        f"__TEMPORAL_JOIN_CONDITION_PRIMARY_KEY({keys}), "
        f"__TEMPORAL_JOIN_LEFT_KEY({names_at(node.left_keys, left)}), "
        f"__TEMPORAL_JOIN_RIGHT_KEY({keys}))"
    )
    return (
        f"TemporalJoin(joinType=[{_JOIN_NAMES[node.kind]}], "
        f"where=[{where_text(node)} AND {asked}], select=[{names_of(node)}])"
    )


_STRATEGIES = {RankStrategy.APPEND: "AppendFastStrategy", RankStrategy.RETRACT: "RetractStrategy"}


def _rank(node: ChangingRank) -> str:
    names = node.input.schema.names
    order = f"orderBy=[{sort_text(node.keys, names)}]"
    key = ",".join(map(str, node.upsert_key))
    strategy = _STRATEGIES.get(node.strategy, f"UpdateFastStrategy[{key}]")
    if not node.partition and not node.gives_rank:
        fetch = node.last - node.first + 1
        return (
            f"SortLimit({order}, offset=[{node.first - 1}], fetch=[{fetch}], strategy=[{strategy}])"
        )
    return (
        f"Rank(strategy=[{strategy}], rankType=[{node.function}], "
        f"rankRange=[rankStart={node.first}, rankEnd={node.last}], "
        f"partitionBy=[{names_at(node.partition, names)}], {order}, select=[{names_of(node)}])"
    )


def _over(node: ChangingOver) -> str:
    return f"OverAggregate(select=[*, {over_text([node.group], node.input.schema.names)}])"


def _last_row(node: LastRow) -> str:
    order = "ROWTIME" if node.is_rowtime else "PROCTIME"
    keys = names_at(node.keys, node.input.schema.names)
    return f"Deduplicate(keep=[LastRow], key=[{keys}], order=[{order}])"


def _normalize(node: ChangelogNormalize) -> str:
    return f"ChangelogNormalize(key=[{names_at(node.keys, node.input.schema.names)}])"


def _drop(node: DropUpdateBefore) -> str:
    return "DropUpdateBefore"


def _limit(node: ChangingLimit) -> str:
    return f"Limit({', '.join(limit_parts(node.offset, node.limit))})"


CHANGING_LINES: dict[type[PhysicalNode], Callable[[Any], str]] = {
    GroupAggregate: _aggregate,
    MiniBatchAssigner: _mini_batch,
    DistinctBuckets: _buckets,
    RegularJoin: _join,
    TemporalJoin: _temporal_join,
    ChangingRank: _rank,
    ChangingOver: _over,
    LastRow: _last_row,
    ChangelogNormalize: _normalize,
    DropUpdateBefore: _drop,
    ChangingLimit: _limit,
}
