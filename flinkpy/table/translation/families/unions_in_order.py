"""UNION ALL of rows that change: those of each branch stay in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.graph.partitioning import GLOBAL
from flinkpy.graph.transformations import PartitionTransformation


def with_one_parallelism(branches: Sequence[ColumnStream]) -> list[ColumnStream]:
    """The branches, such that what reads their union takes no rows in turn from a branch of another
    parallelism: then a row could come behind the one that replaces it. A branch of one subtask
    gives all of its rows to the first of several. Where others differ, all rows go to one."""
    several = {each.transformation.parallelism for each in branches} - {1}
    if not several:
        return list(branches)
    to = several.pop() if len(several) == 1 else 1
    return [
        each if each.transformation.parallelism == to else _to_first(each, to) for each in branches
    ]


def _to_first(stream: ColumnStream, parallelism: int | None) -> ColumnStream:
    made = PartitionTransformation(
        id=stream.program.next_id(),
        name="Exchange",
        input=stream.transformation,
        partitioning=GLOBAL,
    )
    made.parallelism = parallelism
    return replace(stream, transformation=made)
