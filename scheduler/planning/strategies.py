"""Scheduling strategies: which subtasks are scheduled when. Each answer is a list of bulks; a bulk
is deployed once all its slots are there.

A strategy only looks at the execution graph, and has no state: a subtask is scheduled when it is
schedulable and its inputs are consumable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from flinkpy.core.options.engine import SchedulingStrategyKind
from flinkpy.scheduler.execution_graph import ExecutionGraph
from flinkpy.scheduler.execution_model import ExecutionVertex, PartitionGroup, PipelinedRegion
from flinkpy.scheduler.planning.regions import regions_of

Bulks = list[list[ExecutionVertex]]


class SchedulingStrategy(Protocol):
    """Asked at the start, when results become consumable, and when subtasks restart (their new
    attempts are CREATED)."""

    def on_start(self) -> Bulks: ...

    def on_consumable(self, groups: Iterable[PartitionGroup]) -> Bulks: ...

    def on_restart(self, vertices: Iterable[ExecutionVertex]) -> Bulks: ...


class PipelinedRegionStrategy:
    """A region is scheduled when all blocking results it reads are there. The default: right for
    streams and for batches."""

    def __init__(self, regions: list[PipelinedRegion]) -> None:
        self._regions = regions

    def on_start(self) -> Bulks:
        return self._ready(self._regions)

    def on_consumable(self, groups: Iterable[PartitionGroup]) -> Bulks:
        return self._ready(
            dict.fromkeys(
                region
                for group in groups
                if group.is_blocking
                for region in regions_of(group.consumer_vertices())
            )
        )

    def on_restart(self, vertices: Iterable[ExecutionVertex]) -> Bulks:
        return self._ready(dict.fromkeys(vertex.region for vertex in vertices))

    def _ready(self, regions: Iterable[PipelinedRegion]) -> Bulks:
        return [
            region.vertices
            for region in regions
            if region.vertices[0].is_schedulable and region.is_ready
        ]


class EagerStrategy:
    """Everything at once, whatever the results' types: the whole job gets its slots, or none of it
    starts."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self._graph = graph

    def on_start(self) -> Bulks:
        return _bulk(self._graph.vertices)

    def on_consumable(self, groups: Iterable[PartitionGroup]) -> Bulks:
        return []

    def on_restart(self, vertices: Iterable[ExecutionVertex]) -> Bulks:
        return _bulk(vertices)


class LazyFromSourcesStrategy:
    """Sources first; a consumer when its inputs are there to read: blocking ones finished,
    pipelined ones running.

    Holds the fewest slots at a time. Meant for bounded work: in a stream the consumers only start
    later."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self._graph = graph

    def on_start(self) -> Bulks:
        return self._ready(self._graph.vertices)

    def on_consumable(self, groups: Iterable[PartitionGroup]) -> Bulks:
        return self._ready(
            dict.fromkeys(consumer for group in groups for consumer in group.consumer_vertices())
        )

    def on_restart(self, vertices: Iterable[ExecutionVertex]) -> Bulks:
        return self._ready(vertices)

    def _ready(self, vertices: Iterable[ExecutionVertex]) -> Bulks:
        return [
            [vertex]
            for vertex in vertices
            if vertex.is_schedulable and all(group.is_consumable for group in vertex.input_groups)
        ]


def scheduling_strategy(
    kind: SchedulingStrategyKind, graph: ExecutionGraph, regions: list[PipelinedRegion]
) -> SchedulingStrategy:
    """The strategy the configuration names."""
    if kind is SchedulingStrategyKind.EAGER:
        return EagerStrategy(graph)
    if kind is SchedulingStrategyKind.LAZY_FROM_SOURCES:
        return LazyFromSourcesStrategy(graph)
    return PipelinedRegionStrategy(regions)


def _bulk(vertices: Iterable[ExecutionVertex]) -> Bulks:
    found = [vertex for vertex in vertices if vertex.is_schedulable]
    return [found] if found else []
