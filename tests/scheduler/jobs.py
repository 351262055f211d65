"""Small job graphs, written the way one would draw them."""

from __future__ import annotations

from typing import TypeAlias

from flinkpy.core.ids import IntermediateDataSetId, JobId, JobVertexId, OperatorId
from flinkpy.graph.job_graph import (
    DistributionPattern,
    IntermediateDataSet,
    JobEdge,
    JobGraph,
    JobVertex,
    OperatorInfo,
    ResultPartitionType,
)

POINTWISE, ALL_TO_ALL = DistributionPattern.POINTWISE, DistributionPattern.ALL_TO_ALL
PIPELINED, BLOCKING = ResultPartitionType.PIPELINED, ResultPartitionType.BLOCKING


Edge: TypeAlias = tuple[str, str, DistributionPattern, ResultPartitionType]


def job(
    parallelism: dict[str, int], *edges: Edge, groups: dict[str, str] | None = None
) -> JobGraph:
    """Vertices named by letters, in topological order, each with an operator of that name in small;
    an edge is (producer, consumer, pattern, type). Vertices without inputs are sources with
    enumerators."""
    vertices = {
        name: JobVertex(
            JobVertexId(name),
            name,
            width,
            128,
            (OperatorInfo(OperatorId(name.lower()), name),),
            b"",
            slot_sharing_group=(groups or {}).get(name, "default"),
        )
        for name, width in parallelism.items()
    }
    for number, (producer, consumer, pattern, kind) in enumerate(edges):
        outputs = vertices[producer].outputs
        data_set = IntermediateDataSet(
            IntermediateDataSetId(f"{producer}{consumer}{number}"),
            JobVertexId(producer),
            len(outputs),
            kind,
        )
        outputs.append(data_set)
        vertices[consumer].inputs.append(
            JobEdge(data_set, JobVertexId(consumer), pattern, pattern.value)
        )
    for vertex in vertices.values():
        vertex.sources = () if vertex.inputs else ((vertex.operators[0].operator_id, b""),)
    return JobGraph(JobId("job"), "job", list(vertices.values()))


def pipeline(width: int = 2) -> JobGraph:
    """A to B, all to all: one region."""
    return job({"A": width, "B": width}, ("A", "B", ALL_TO_ALL, PIPELINED))


def strands(width: int = 2) -> JobGraph:
    """A to B, subtask by subtask: a region per strand."""
    return job({"A": width, "B": width}, ("A", "B", POINTWISE, PIPELINED))


def batch(width: int = 2) -> JobGraph:
    """A to B, blocking: B after A."""
    return job({"A": width, "B": width}, ("A", "B", ALL_TO_ALL, BLOCKING))
