"""GROUPING SETS: each row goes once for each set, with nulls for the keys that are not in it, and
the number of the set is one more key. Sets that are named several times have groups of their own:
the number says also which of the equal sets it is, above the bits that GROUPING() reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from flinkpy.common.logical_types.logical_type import BigIntType, RowField
from flinkpy.sql.logical.logical_nodes import (
    LogicalAggregate,
    LogicalNode,
    aggregate,
    input_of,
    row_of,
)
from flinkpy.sql.physical.calcs import calc
from flinkpy.sql.physical.physical_nodes import Expand, PhysicalNode
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexInput, RexLiteral

_BIG = BigIntType(is_nullable=False)


def expanded(
    node: LogicalAggregate,
    aggregated: Callable[[LogicalAggregate, PhysicalNode], PhysicalNode],
    planned: Callable[[LogicalNode], PhysicalNode],
) -> PhysicalNode:
    """The aggregate over an Expand. Keys have columns of their own below it, because an aggregate
    of a key takes the value that is there in every set."""
    sets = node.grouping_sets
    assert sets is not None
    below = node.input
    width, count = below.width, len(node.keys)
    everything: list[Rex] = [input_of(below, index) for index in range(width)]
    numbers = _numbers(sets, count)
    keys = [below.schema.fields[key] for key in node.keys]
    fields = [*below.schema.fields]
    fields += [RowField(f"{each.name}_key", each.type.with_nullable(True)) for each in keys]
    fields.append(RowField("$e", _BIG))
    projections = tuple(
        (
            *everything,
            *(
                input_of(below, key)
                if place in each
                else RexLiteral(below.schema.fields[key].type.with_nullable(True), value=None)
                for place, key in enumerate(node.keys)
            ),
            RexLiteral(_BIG, value=number),
        )
        for each, number in zip(sets, numbers)
    )
    expand = Expand(row_of(fields), planned(below), projections)
    over = LogicalNode(expand.schema)
    plain = aggregate(
        over,
        range(width, width + count + 1),
        node.calls,
        [each.name for each in node.schema.fields[count : count + len(node.calls)]],
    )
    made = aggregated(plain, expand)
    places = [*range(count), *range(count + 1, count + 1 + len(node.calls)), count]
    columns: list[Rex] = [RexInput(plain.schema.fields[at].type, index=at) for at in places]
    if max(numbers) >> count:
        size = RexLiteral(_BIG, value=1 << count)
        columns[-1] = RexCall(_BIG, function="MOD", arguments=(columns[-1], size))
    return calc(made, columns, None, replace(node.schema))


def _numbers(sets: Sequence[tuple[int, ...]], count: int) -> list[int]:
    """A bit for each key that is not in the set, and above them how often the set came before."""
    before: Counter[frozenset[int]] = Counter()
    numbers = []
    for each in map(frozenset, sets):
        absent = sum(1 << (count - 1 - place) for place in range(count) if place not in each)
        numbers.append(absent + (before[each] << count))
        before[each] += 1
    return numbers
