"""Aggregates of distinct values that are split (``table.optimizer.distinct-agg.split.enabled``):
values of a group are counted in buckets, each in a group of its own, and the buckets' results are
put together. A group with very many values is then the work of several subtasks.

Where Flink gives other aggregates a group without a bucket, ours are counted with the first bucket:
each row has one of those too. AVG is not split: it is more than one column."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.common.logical_types.logical_type import BigIntType, BooleanType, RowField
from flinkpy.sql.logical.logical_nodes import LogicalAggregate, LogicalNode, aggregate, row_of
from flinkpy.sql.physical.aggregate_phases import in_two_phases
from flinkpy.sql.physical.physical_nodes import DistinctBuckets, PhysicalNode
from flinkpy.sql.rex.rex_nodes import AggregateCall

# what makes the result of a group from those of its buckets
_FINAL = {"COUNT": "$SUM0", "SUM": "SUM", "$SUM0": "$SUM0", "MIN": "MIN", "MAX": "MAX"}


def is_split(node: LogicalAggregate) -> bool:
    """Whether it has distinct values, and no call that cannot be split."""
    can = all(call.function in _FINAL and not call.order_by for call in node.calls)
    return can and any(call.distinct for call in node.calls)


def split_distinct(
    node: LogicalAggregate, input: PhysicalNode, ttl_ms: int, buckets: int
) -> PhysicalNode:
    """The aggregate of buckets, and over it that of their results; each of them in two phases."""
    sets = tuple(dict.fromkeys(call.arguments for call in node.calls if call.distinct))
    wanted = [_choice(call, sets) for call in node.calls]
    choices = tuple(dict.fromkeys(wanted)) if len(sets) > 1 else ()
    width, count = len(input.schema.fields), len(node.keys)
    fields = [*input.schema.fields]
    fields += [RowField(f"$f{width + at}", BigIntType()) for at in range(len(sets))]
    fields += [RowField(f"$g_{at}", BooleanType()) for at in range(len(choices))]
    rows = DistinctBuckets(row_of(fields), input, sets, choices, buckets)
    first = width + len(sets)
    calls = [
        replace(call, filter=first + choices.index(choice)) if choices else call
        for call, choice in zip(node.calls, wanted)
    ]
    keys = (*node.keys, *range(width, first))
    names = [field.name for field in node.schema.fields[count:]]
    partial = aggregate(LogicalNode(rows.schema), keys, calls, names)
    final = replace(
        node,
        keys=tuple(range(count)),
        calls=tuple(
            AggregateCall(_FINAL[call.function], (len(keys) + at,), call.type)
            for at, call in enumerate(node.calls)
        ),
    )
    below = in_two_phases(partial, rows, ttl_ms, "PARTIAL")
    return in_two_phases(final, below, ttl_ms, "FINAL")


def _choice(call: AggregateCall, sets: tuple[tuple[int, ...], ...]) -> tuple[int, int | None]:
    return sets.index(call.arguments) if call.distinct else 0, call.filter
