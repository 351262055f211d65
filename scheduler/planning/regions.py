"""Pipelined regions: subtasks joined by pipelined results must run at the same time, so they are
deployed, and restarted, together.

Between regions there are only blocking results. Pointwise edges give a region per strand of
subtasks, one all-to-all edge makes one region of both its sides.

A blocking result binds too when its producer cannot finish before its consumer starts: A hands on
to C directly, pipelined, and to B, whose blocking result C also reads. Waiting for B before C may
start would wait forever, as B needs A, and A needs C. Such a cycle is looked for among job
vertices, where there are few; then the regions between the subtasks have none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flinkpy.scheduler.execution_graph import ExecutionGraph
from flinkpy.scheduler.execution_model import (
    ExecutionJobVertex,
    ExecutionVertex,
    IntermediateResult,
    PipelinedRegion,
)


def compute_regions(graph: ExecutionGraph, bind_all: bool = False) -> list[PipelinedRegion]:
    """The regions, in topological order of their first subtasks; sets ``region`` of every vertex.

    ``bind_all`` for a strategy that deploys consumers of blocking results along with their
    producers: then they also restart together."""
    bound = set(graph.results) if bind_all else _binding_results(graph)
    leaders = _join_subtasks(graph, bound)
    regions: dict[int, PipelinedRegion] = {}
    for number, vertex in enumerate(graph.vertices):
        region = regions.setdefault(leaders.find(number), PipelinedRegion())
        region.vertices.append(vertex)
        vertex.region = region
    for result in graph.results:
        if result not in bound:
            for group in result.groups:
                for region in regions_of(group.producer_vertices()):
                    region.outputs.append(group)
                for region in regions_of(group.consumer_vertices()):
                    region.inputs.append(group)
    return list(regions.values())


def regions_of(vertices: list[ExecutionVertex]) -> Iterator[PipelinedRegion]:
    """The regions of the vertices, each once, in order."""
    return iter(dict.fromkeys(vertex.region for vertex in vertices))


class _Sets:
    """Disjoint sets of numbers (union-find)."""

    def __init__(self, size: int) -> None:
        self._parents = list(range(size))

    def find(self, number: int) -> int:
        parents = self._parents
        while parents[number] != number:
            parents[number] = parents[parents[number]]  # halve the path on the way
            number = parents[number]
        return number

    def join(self, numbers: list[int]) -> None:
        leader = self.find(numbers[0])
        for number in numbers:
            self._parents[self.find(number)] = leader


def _join_subtasks(graph: ExecutionGraph, bound: set[IntermediateResult]) -> _Sets:
    """The subtasks, numbered in the graph's order, joined along the groups of the results that
    bind."""
    starts: dict[ExecutionJobVertex, int] = {}
    total = 0
    for job_vertex in graph.job_vertices.values():
        starts[job_vertex] = total
        total += len(job_vertex.vertices)
    sets = _Sets(total)
    for result in bound:
        producer, consumer = starts[result.producer], starts[result.consumer]
        for group in result.groups:
            sets.join(
                [
                    *(producer + index for index in group.producers),
                    *(consumer + index for index in group.consumers),
                ]
            )
    for members in _co_located(graph):
        sets.join(
            [
                starts[job_vertex] + index
                for job_vertex in members
                for index in range(len(job_vertex.vertices))
            ]
        )
    return sets


def _co_located(graph: ExecutionGraph) -> Iterable[list[ExecutionJobVertex]]:
    """Vertices of one co-location group are the ends of a loop, whose way back is no edge of the
    graph: what is in it is lost with either end."""
    groups: dict[str, list[ExecutionJobVertex]] = {}
    for job_vertex in graph.job_vertices.values():
        if job_vertex.vertex.co_location_group is not None:
            groups.setdefault(job_vertex.vertex.co_location_group, []).append(job_vertex)
    return groups.values()


def _binding_results(graph: ExecutionGraph) -> set[IntermediateResult]:
    """The pipelined results, and the blocking ones that lie on a cycle once pipelined neighbours
    count as one."""
    numbers = {job_vertex: number for number, job_vertex in enumerate(graph.job_vertices.values())}
    sets = _Sets(len(numbers))
    for result in graph.results:
        if not result.is_blocking:
            sets.join([numbers[result.producer], numbers[result.consumer]])
    for members in _co_located(graph):
        sets.join([numbers[member] for member in members])
    ends = {
        result: (sets.find(numbers[result.producer]), sets.find(numbers[result.consumer]))
        for result in graph.results
    }
    following: dict[int, set[int]] = {}
    for result, (producer, consumer) in ends.items():
        if result.is_blocking:
            following.setdefault(producer, set()).add(consumer)
    return {
        result
        for result, (producer, consumer) in ends.items()
        if producer == consumer or producer in _reachable(consumer, following)
    }


def _reachable(start: int, following: dict[int, set[int]]) -> set[int]:
    found, stack = {start}, [start]
    while stack:
        fresh = following.get(stack.pop(), set()) - found
        found |= fresh
        stack.extend(fresh)
    return found
