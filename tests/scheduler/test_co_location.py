"""Co-located vertices are the ends of a loop: they share slots, and restart together."""

from __future__ import annotations

from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.execution_graph import ExecutionGraph
from flinkpy.scheduler.planning.regions import compute_regions
from tests.scheduler.jobs import PIPELINED, POINTWISE, job


def regions(job_graph: JobGraph) -> list[set[str]]:
    return [
        {f"{vertex.job_vertex.vertex.name}{vertex.index}" for vertex in region.vertices}
        for region in compute_regions(ExecutionGraph(job_graph))
    ]


def loop_and_stranger() -> JobGraph:
    """Head H to body B to tail T, and A to C beside them, all subtask by subtask."""
    edges = [
        (producer, consumer, POINTWISE, PIPELINED) for producer, consumer in ("HB", "BT", "AC")
    ]
    return job({"H": 2, "B": 2, "T": 2, "A": 2, "C": 2}, *edges)


def test_the_ends_of_a_loop_are_in_one_region_with_all_that_lies_between_and_others_are_not() -> (
    None
):
    graph = loop_and_stranger()
    assert len(regions(graph)) == 4
    for vertex in graph.vertices:
        vertex.co_location_group = "loop" if vertex.name in "HT" else None
    assert regions(graph) == [{"H0", "H1", "B0", "B1", "T0", "T1"}, {"A0", "C0"}, {"A1", "C1"}]


def test_each_loop_has_a_region_of_its_own() -> None:
    graph = loop_and_stranger()
    for vertex in graph.vertices:
        vertex.co_location_group = {"H": "loop", "T": "loop", "A": "other", "C": "other"}.get(
            vertex.name
        )
    assert sorted(map(len, regions(graph))) == [4, 6]
