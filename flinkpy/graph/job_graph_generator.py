"""From StreamGraph to JobGraph: operators that can share a task are chained into one vertex; the
other edges cross the network.

A chain is a tree: a chained operator has exactly one input, so every edge from outside the chain
enters at its head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from flinkpy.core.errors import ProgramError
from flinkpy.core.ids import JobId, JobVertexId, OperatorId
from flinkpy.core.options.engine import RUNTIME_MODE, RuntimeMode
from flinkpy.core.options.memory_sizes import MemoryKind
from flinkpy.core.options.state import manages_state
from flinkpy.core.program import code
from flinkpy.graph.chain_config import ChainConfig, ChainedEdge, ChainedOperator, NetworkEdge
from flinkpy.graph.hashes import data_set_id, operator_ids
from flinkpy.graph.job_graph import IntermediateDataSet, JobEdge, JobGraph, JobVertex, OperatorInfo
from flinkpy.graph.operator_port import ChainingStrategy, Operator
from flinkpy.graph.partitioning import PartitioningKind
from flinkpy.graph.resources import ANY, ManagedMemoryUse
from flinkpy.graph.stream_graph import NodeKind, StreamEdge, StreamGraph, StreamNode

LONGEST_CHAIN = 100
"""The greatest number of operators in one chain, in succession. A watermark passes them in nested
calls, about five per operator; Python allows a thousand, and the user's functions need some of them
too. The next operator begins another chain."""

_INPUTS = {NodeKind.SOURCE: 0, NodeKind.ONE_INPUT: 1, NodeKind.TWO_INPUT: 2}


def build_job_graph(
    stream_graph: StreamGraph, job_id: JobId, configuration: Mapping[str, Any] | None = None
) -> JobGraph:
    """The JobGraph, with vertices in topological order and user code pickled. Raises ProgramError,
    which names the operator, if one cannot be pickled."""
    chains = Chains(stream_graph)
    ids = operator_ids(stream_graph)
    vertices: dict[int, JobVertex] = {}
    data_sets: dict[StreamEdge, IntermediateDataSet] = {}
    for head in chains.heads:
        vertex = _vertex(stream_graph, chains, head, ids)
        for index, edge in enumerate(chains.network_edges(head)):
            data_set = IntermediateDataSet(
                data_set_id(vertex.id, index), vertex.id, index, edge.partition_type
            )
            vertex.outputs.append(data_set)
            data_sets[edge] = data_set
        vertex.inputs.extend(
            JobEdge(
                data_sets[edge],
                vertex.id,
                edge.partitioning.pattern,
                edge.partitioning.kind.value,
                edge.input_index,
                stream_graph.nodes[edge.source].sends_partials,
            )
            for edge in stream_graph.nodes[head].in_edges
        )
        vertices[head] = vertex
    _refuse_scattered_co_location(vertices.values())
    # AUTOMATIC has been resolved
    values = {**(configuration or {}), RUNTIME_MODE.key: stream_graph.runtime_mode}
    job = JobGraph(
        job_id, stream_graph.name, list(vertices.values()), values, stream_graph.is_bounded
    )
    weights = {vertices[head].id: _weights(chains.members(head), values) for head in chains.heads}
    _divide_managed_memory(job, weights)
    return job


def is_chainable(graph: StreamGraph, edge: StreamEdge) -> bool:
    """Whether the two operators of the edge run in one task."""
    source, target = graph.nodes[edge.source], graph.nodes[edge.target]
    return (
        graph.chaining
        and len(target.in_edges) == 1
        and (edge.partitioning.kind is PartitioningKind.FORWARD or _would_only_store(graph, edge))
        and source.slot_sharing_group == target.slot_sharing_group
        and source.co_location_group == target.co_location_group
        and source.parallelism == target.parallelism
        and source.max_parallelism == target.max_parallelism
        and source.chaining in (ChainingStrategy.ALWAYS, ChainingStrategy.HEAD)
        and target.chaining is ChainingStrategy.ALWAYS
    )


def _would_only_store(graph: StreamGraph, edge: StreamEdge) -> bool:
    """Whether the edge goes, in BATCH, by key from a single task to a single task that takes
    records as they come: an exchange would sort nothing and store everything."""
    is_of_single_tasks = (
        graph.nodes[edge.source].parallelism == graph.nodes[edge.target].parallelism == 1
    )
    takes_as_they_come = graph.nodes[edge.target].operator.chains_by_key
    return (
        graph.runtime_mode is RuntimeMode.BATCH
        and edge.partitioning.kind is PartitioningKind.HASH
        and is_of_single_tasks
        and takes_as_they_come
    )


class Chains:
    """The operators that run in one task, as trees; each is identified by the node at its head."""

    def __init__(self, graph: StreamGraph) -> None:
        self.graph = graph
        self._chained = _chained_edges(graph)
        inner = {edge.target for edge in self._chained}
        self.heads = [node_id for node_id in graph.nodes if node_id not in inner]

    def is_chained(self, edge: StreamEdge) -> bool:
        return edge in self._chained

    def members(self, head: int) -> list[StreamNode]:
        """The chain's operators, head first: each before its chained successors, branch by
        branch."""
        found: list[StreamNode] = []
        stack = [head]
        while stack:
            node = self.graph.nodes[stack.pop()]
            found.append(node)
            stack.extend(edge.target for edge in reversed(node.out_edges) if edge in self._chained)
        return found

    def network_edges(self, head: int) -> list[StreamEdge]:
        """The edges that leave the chain; their positions are its output indices."""
        return [
            edge
            for node in self.members(head)
            for edge in node.out_edges
            if edge not in self._chained
        ]

    def name(self, head: int) -> str:
        """The chain's name in Flink's notation: ``Source: x -> Map -> (Filter, Sink: y)``."""
        names: dict[int, str] = {}
        for node in reversed(self.members(head)):
            following = [names[edge.target] for edge in node.out_edges if edge in self._chained]
            tail = following[0] if len(following) == 1 else f"({', '.join(following)})"
            names[node.id] = f"{node.name} -> {tail}" if following else node.name
        return names[head]


def _chained_edges(graph: StreamGraph) -> set[StreamEdge]:
    chained: set[StreamEdge] = set()
    depth: dict[int, int] = {}
    for node in graph.nodes.values():  # a node comes before its consumers
        here = depth.setdefault(node.id, 1)
        for edge in node.out_edges:
            if here < LONGEST_CHAIN and is_chainable(graph, edge):
                chained.add(edge)
                depth[edge.target] = here + 1
    return chained


def _vertex(
    graph: StreamGraph, chains: Chains, head: int, ids: Mapping[int, OperatorId]
) -> JobVertex:
    members = chains.members(head)
    first = members[0]
    out_of_band: list[code.OutOfBand] = []
    return JobVertex(
        id=JobVertexId(ids[head]),
        name=chains.name(head),
        parallelism=first.parallelism,
        max_parallelism=first.max_parallelism,
        operators=tuple(
            OperatorInfo(ids[node.id], node.name, node.uid, node.key_kind) for node in members
        ),
        chain=_pickled(_chain_config(chains, head, members, ids), members, out_of_band),
        slot_sharing_group=first.slot_sharing_group,
        co_location_group=first.co_location_group,
        resources=graph.resources.get(first.slot_sharing_group, ANY),
        sources=tuple(
            (ids[node.id], code.dumps(node.source, f"the source {node.label}", out_of_band))
            for node in members
            if node.source is not None
        ),
        out_of_band=tuple(out_of_band),
        max_parallelism_is_set=any(node.max_parallelism_is_set for node in members),
    )


def _chain_config(
    chains: Chains, head: int, members: list[StreamNode], ids: Mapping[int, OperatorId]
) -> ChainConfig[Operator]:
    positions = {node.id: position for position, node in enumerate(members)}
    outputs = {edge: index for index, edge in enumerate(chains.network_edges(head))}

    def edge_of(edge: StreamEdge) -> ChainedEdge | NetworkEdge:
        if chains.is_chained(edge):
            return ChainedEdge(positions[edge.target], edge.side_tag)
        return NetworkEdge(
            outputs[edge], edge.partitioning, edge.side_tag, edge.buffer_timeout_ms, edge.type_info
        )

    operators = tuple(
        ChainedOperator(
            ids[node.id], node.name, node.uid, node.operator, tuple(map(edge_of, node.out_edges))
        )
        for node in members
    )
    return ChainConfig(operators, _INPUTS[members[0].kind])


def _pickled(
    chain: ChainConfig[Operator], members: list[StreamNode], out_of_band: list[code.OutOfBand]
) -> bytes:
    """Pickles the chain as a whole, so that objects shared by its operators stay shared. Only if
    that fails does it try the operators one by one, to name the culprit."""
    try:
        return code.dumps(
            chain,
            "the operator " + members[0].label if len(members) == 1 else "the chain",
            out_of_band,
        )
    except ProgramError:
        for node, operator in zip(members, chain.operators):
            code.dumps(operator, f"the operator {node.label}", out_of_band)
        raise


def _refuse_scattered_co_location(vertices: Iterable[JobVertex]) -> None:
    """Raises ProgramError if co-located vertices are in different slot sharing groups, because
    co-located subtasks share a slot."""
    groups: dict[str, JobVertex] = {}
    for vertex in vertices:
        if vertex.co_location_group is None:
            continue
        other = groups.setdefault(vertex.co_location_group, vertex)
        if other.slot_sharing_group != vertex.slot_sharing_group:
            raise ProgramError(
                f"{other.name!r} and {vertex.name!r} are in the co-location group "
                f"{vertex.co_location_group!r} but in the slot sharing groups "
                f"{other.slot_sharing_group!r} and {vertex.slot_sharing_group!r}; put "
                "them into the same slot sharing group"
            )


# -- managed memory --------------------------------------------------------------------------------


def _weights(members: list[StreamNode], values: Mapping[str, Any]) -> Counter[MemoryKind]:
    """What the operators of a chain want of the managed memory."""
    found = Counter[MemoryKind]()
    for node in members:
        found.update(node.operator.memory_weights)
    if not manages_state(values):
        del found[MemoryKind.STATE_BACKEND]
    return found


def _divide_managed_memory(
    job: JobGraph, weights: Mapping[JobVertexId, Counter[MemoryKind]]
) -> None:
    """Each vertex shares a slot's memory with those of its slot sharing group that may run while it
    does: not with those that wait for its results to be complete, nor with those whose results it
    waits for."""
    awaited = _awaited(job)
    for vertex in job.vertices:
        beside = [
            other
            for other in job.vertices
            if other.slot_sharing_group == vertex.slot_sharing_group
            and other.id not in awaited[vertex.id]
            and vertex.id not in awaited[other.id]
        ]
        total = sum((weights[other.id] for other in beside), Counter[MemoryKind]())
        vertex.managed_memory = ManagedMemoryUse(dict(total), job.slots_needed)


def _awaited(job: JobGraph) -> dict[JobVertexId, frozenset[JobVertexId]]:
    """The vertices that have ended before each one begins."""
    regions = {vertex.id: frozenset((vertex.id,)) for vertex in job.vertices}
    for edge in _edges(job, is_blocking=False):
        joined = regions[edge.data_set.producer] | regions[edge.consumer]
        regions.update(dict.fromkeys(joined, joined))
    before = {region: frozenset[JobVertexId]() for region in regions.values()}
    for _ in before:  # a region waits for what its producers wait for
        for edge in _edges(job, is_blocking=True):
            producer, consumer = regions[edge.data_set.producer], regions[edge.consumer]
            before[consumer] |= producer | before[producer]
    return {vertex: before[region] for vertex, region in regions.items()}


def _edges(job: JobGraph, *, is_blocking: bool) -> list[JobEdge]:
    return [
        edge
        for vertex in job.vertices
        for edge in vertex.inputs
        if edge.data_set.partition_type.is_blocking is is_blocking
    ]
