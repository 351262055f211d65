"""GROUP BY of STREAMING in two phases: before the rows are sent, and behind the exchange."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.sql.logical.logical_nodes import LogicalAggregate
from flinkpy.sql.physical.physical_nodes import Exchange, GroupAggregate, Phase, PhysicalNode
from flinkpy.sql.physical.physical_planner import IN_PARTS
from flinkpy.sql.rex.rex_nodes import AggregateCall

# FIRST_VALUE and LAST_VALUE go by the order in which rows come, which many senders do not have
_IN_PHASES = IN_PARTS | {"$SUM0", "LISTAGG", "ARRAY_AGG", "COLLECT", "APPROX_COUNT_DISTINCT"}


def is_in_phases(call: AggregateCall) -> bool:
    """Whether its rows may be put together before they are sent, as Flink does it."""
    return call.function in _IN_PHASES and not call.order_by


def in_two_phases(
    node: LogicalAggregate, input: PhysicalNode, ttl_ms: int, split: str = ""
) -> GroupAggregate:
    """The aggregate over rows of this input. The schema of the first phase is that of the second:
    each call has columns of its own in between."""
    local = GroupAggregate(node.schema, input, node.keys, node.calls, Phase.LOCAL, split=split)
    keys = tuple(range(len(node.keys)))
    exchange = Exchange(node.schema, local, keys)
    merged = GroupAggregate(node.schema, exchange, keys, node.calls, Phase.GLOBAL, split=split)
    return replace(merged, state_ttl_ms=ttl_ms)


def local_of(node: GroupAggregate) -> GroupAggregate:
    """The first phase of what this one merges."""
    exchange = node.input
    assert isinstance(exchange, Exchange)
    local = exchange.input
    assert isinstance(local, GroupAggregate)
    assert local.phase is Phase.LOCAL
    return local
