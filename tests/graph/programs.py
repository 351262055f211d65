"""Programs written by hand, as the API would record them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, TypeVar

from flinkpy.common.changelog_mode import ALL_CHANGES, ChangelogMode
from flinkpy.core.ids import JobId
from flinkpy.core.options.memory_sizes import MemoryKind
from flinkpy.core.program import code
from flinkpy.graph.chain_config import ChainConfig, ChainedEdge
from flinkpy.graph.job_graph import JobGraph
from flinkpy.graph.job_graph_generator import build_job_graph
from flinkpy.graph.operator_port import ChainingStrategy
from flinkpy.graph.partitioning import KeySpec, Partitioning, PartitioningKind
from flinkpy.graph.stream_graph import StreamGraph, build_stream_graph
from flinkpy.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    SourceTransformation,
    Transformation,
    TwoInputTransformation,
    UnionTransformation,
)

T = TypeVar("T", bound=Transformation)


class Maps:
    """Stands for an operator."""

    chaining = ChainingStrategy.ALWAYS
    takes_changes = ALL_CHANGES
    emits_changes: ChangelogMode | None = None
    replaces_results = keeps_nothing = takes_last_results = chains_by_key = False
    reads_keys = True
    keeps_timestamps = False

    def __init__(self, memory_weights: Mapping[MemoryKind, int] | None = None) -> None:
        self.memory_weights = memory_weights or {}


class Reads(Maps):
    """Stands for a source operator."""

    chaining = ChainingStrategy.HEAD


class Joins(Maps):
    """Stands for an operator with two inputs."""


def first(value: Any) -> Any:
    return value[0]


HASH = Partitioning(PartitioningKind.HASH, KeySpec(first))


class Program:
    """Numbers transformations in the order they are written."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self.ends: list[Transformation] = []

    def source(self, name: str = "in", **options: Any) -> SourceTransformation:
        return self._keep(
            SourceTransformation(id=next(self._ids), name=name, operator=Reads(), **options)
        )

    def op(self, name: str, input: Transformation, **options: Any) -> OneInputTransformation:
        return self._keep(
            OneInputTransformation(
                **{
                    "id": next(self._ids),
                    "name": name,
                    "input": input,
                    "operator": Maps(),
                    **options,
                }
            )
        )

    def join(
        self, name: str, left: Transformation, right: Transformation, **options: Any
    ) -> TwoInputTransformation:
        return self._keep(
            TwoInputTransformation(
                id=next(self._ids),
                name=name,
                input1=left,
                input2=right,
                operator=Joins(),
                **options,
            )
        )

    def partition(
        self, input: Transformation, partitioning: Partitioning
    ) -> PartitionTransformation:
        return PartitionTransformation(
            id=next(self._ids), name="Partition", input=input, partitioning=partitioning
        )

    def union(self, *inputs: Transformation) -> UnionTransformation:
        return UnionTransformation(id=next(self._ids), name="Union", union=list(inputs))

    def side(self, input: Transformation, tag: str) -> SideOutputTransformation:
        return SideOutputTransformation(id=next(self._ids), name="Side", input=input, tag_id=tag)

    def stream_graph(self, **options: Any) -> StreamGraph:
        return build_stream_graph(self.ends, **options)

    def job_graph(self, **options: Any) -> JobGraph:
        return build_job_graph(self.stream_graph(**options), JobId("job"), {})

    def _keep(self, transformation: T) -> T:
        self.ends.append(transformation)
        return transformation


def vertices(graph: JobGraph) -> list[str]:
    """``Source: in -> Map x2``, in order."""
    return [f"{vertex.name} x{vertex.parallelism}" for vertex in graph.vertices]


def job_edges(graph: JobGraph) -> list[str]:
    """``1.0 -HASH-> 2``: vertex and output, vertex and its input if not the first."""
    numbers = {vertex.id: number for number, vertex in enumerate(graph.vertices, 1)}
    return [
        (
            f"{numbers[edge.data_set.producer]}.{edge.data_set.output_index} "
            f"-{edge.ship_strategy}-> {numbers[edge.consumer]}"
        )
        + (f".{edge.input_index}" if edge.input_index else "")
        for vertex in graph.vertices
        for edge in vertex.inputs
    ]


def chain_of(graph: JobGraph, position: int) -> ChainConfig[Any]:
    chain: ChainConfig[Any] = code.loads(graph.vertices[position].chain)
    return chain


def inner_edges(chain: ChainConfig[Any]) -> list[tuple[str, str]]:
    """The chained edges of a chain, by operator names."""
    return [
        (operator.name, chain.operators[edge.target].name)
        for operator in chain.operators
        for edge in operator.edges
        if isinstance(edge, ChainedEdge)
    ]
