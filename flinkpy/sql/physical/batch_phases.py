"""Whether aggregates of BATCH run in two phases: as their sizes suggest, or as a session says."""

from __future__ import annotations

from flinkpy.sql.physical.physical_nodes import (
    Exchange,
    HashAggregate,
    Phase,
    PhysicalNode,
    with_inputs,
)
from flinkpy.sql.physical.physical_planner import exchanged, is_in_parts


def with_phases(node: PhysicalNode, strategy: str) -> PhysicalNode:
    """The plan with all aggregates in the phases of ``table.optimizer.agg-phase-strategy``; those
    that cannot be computed in parts have one."""
    if strategy not in ("one_phase", "two_phase"):
        return node
    node = with_inputs(node, tuple(with_phases(each, strategy) for each in node.inputs))
    if not isinstance(node, HashAggregate) or not isinstance(node.input, Exchange):
        return node
    if strategy == "one_phase" and node.phase is Phase.GLOBAL:
        local = node.input.input
        assert isinstance(local, HashAggregate)
        input = exchanged(local.input, local.keys)
        return HashAggregate(node.schema, input, local.keys, local.calls)
    if strategy == "two_phase" and node.phase is Phase.WHOLE and all(map(is_in_parts, node.calls)):
        local = HashAggregate(node.schema, node.input.input, node.keys, node.calls, Phase.LOCAL)
        keys = tuple(range(len(node.keys)))
        return HashAggregate(node.schema, exchanged(local, keys), keys, node.calls, Phase.GLOBAL)
    return node
