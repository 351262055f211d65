"""Where rows gather for operators that work by the batch: behind the sources of groups and joins,
as in Flink."""

from __future__ import annotations

from flinkpy.sql.physical.physical_nodes import (
    GroupAggregate,
    MiniBatchAssigner,
    PhysicalNode,
    RegularJoin,
    TableScan,
    WatermarkAssigner,
    with_inputs,
)
from flinkpy.sql.physical.streaming_options import MiniBatch

_WORK_BY_THE_BATCH = (GroupAggregate, RegularJoin)


def with_mini_batches(
    node: PhysicalNode, mini_batch: MiniBatch, *, is_wanted: bool = False
) -> PhysicalNode:
    """The plan in which rows gather. ``is_wanted``: an operator above works by the batch."""
    is_wanted = is_wanted or isinstance(node, _WORK_BY_THE_BATCH)
    if is_wanted and isinstance(node, (TableScan, WatermarkAssigner)):
        latency_ms, most_rows = mini_batch.latency_ms, mini_batch.most_rows
        return MiniBatchAssigner(node.schema, node, latency_ms, most_rows)
    inputs = [with_mini_batches(each, mini_batch, is_wanted=is_wanted) for each in node.inputs]
    return with_inputs(node, tuple(inputs))
