"""The JobGraph, which the client submits: chained vertices, the data sets between them, and how
these are distributed.

Everything here can be pickled without the user's code. Functions travel as bytes in
``JobVertex.chain`` and ``JobVertex.sources``; ``flinkpy.core.program.code.dumps`` makes these on
the client, and they are unpickled only where they run. Tables and collections in the program's
memory travel beside those bytes: by reference within the program's own process, and on Ray in the
form that the cluster's client has prepared."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from flinkpy.core.ids import IntermediateDataSetId, JobId, JobVertexId, OperatorId
from flinkpy.core.program.code import OutOfBand
from flinkpy.graph.resources import ANY, ManagedMemoryUse, ResourceProfile

DEFAULT_SLOT_SHARING_GROUP = "default"


class DistributionPattern(Enum):
    """Which subtasks of a consumer read from which subtasks of its producer."""

    POINTWISE = "POINTWISE"
    ALL_TO_ALL = "ALL_TO_ALL"


class ResultPartitionType(Enum):
    """PIPELINED passes records on as they are produced; with BLOCKING, consumers wait until all are
    produced."""

    PIPELINED = "PIPELINED"
    BLOCKING = "BLOCKING"

    @property
    def is_blocking(self) -> bool:
        return self is ResultPartitionType.BLOCKING


@dataclass(frozen=True)
class OperatorInfo:
    """One operator of a chain. ``key_kind`` says which keys its state is of, if their types were
    declared."""

    operator_id: OperatorId
    name: str
    uid: str | None = None
    key_kind: str | None = None


@dataclass(frozen=True)
class IntermediateDataSet:
    """The data set of one of a vertex's network outputs; exactly one edge reads it."""

    id: IntermediateDataSetId
    producer: JobVertexId
    output_index: int  # position among the producer's network outputs
    partition_type: ResultPartitionType = ResultPartitionType.PIPELINED


@dataclass(frozen=True)
class JobEdge:
    """An input of a vertex: the data set that it reads, how it is distributed, and which input of
    the head operator it is."""

    data_set: IntermediateDataSet
    consumer: JobVertexId
    pattern: DistributionPattern
    # the partitioner's name: FORWARD, REBALANCE, HASH ...; it is shown, and stands in checkpoints
    # with records in flight
    ship_strategy: str
    input_index: int = 0  # the input of the head operator (0 or 1 for two-input operators)
    # what it carries are results of a phase before the exchange, which only the phase behind it
    # can read
    is_partial: bool = False


@dataclass
class JobVertex:
    """One chain of operators, run as ``parallelism`` subtasks."""

    id: JobVertexId
    name: str
    parallelism: int
    max_parallelism: int
    operators: tuple[OperatorInfo, ...]
    chain: bytes  # a pickled flinkpy.graph.chain_config.ChainConfig
    inputs: list[JobEdge] = field(default_factory=list)
    outputs: list[IntermediateDataSet] = field(default_factory=list)
    slot_sharing_group: str = DEFAULT_SLOT_SHARING_GROUP
    co_location_group: str | None = None
    resources: ResourceProfile = ANY  # of its slot sharing group
    # Operator -> pickled Source, whose enumerator runs in the JobMaster
    sources: tuple[tuple[OperatorId, bytes], ...] = ()
    # the program's data that the chain and sources refer to but do not contain
    out_of_band: tuple[OutOfBand, ...] = ()
    # by the program; if not, that of a checkpoint takes its place
    max_parallelism_is_set: bool = True
    # of all that may run in its slots at the same time
    managed_memory: ManagedMemoryUse = field(default_factory=ManagedMemoryUse)

    @property
    def is_source(self) -> bool:
        return not self.inputs


@dataclass
class JobGraph:
    """A job as submitted: vertices in topological order, and the options it was built with."""

    job_id: JobId
    name: str
    vertices: list[JobVertex]
    configuration: dict[str, Any] = field(default_factory=dict)
    is_bounded: bool = True
    no_savepoints: str = ""  # why it can take none

    def vertex(self, vertex_id: JobVertexId) -> JobVertex:
        return next(vertex for vertex in self.vertices if vertex.id == vertex_id)

    def edge_of(self, data_set_id: IntermediateDataSetId) -> JobEdge | None:
        """The edge that reads the data set."""
        return next(
            (
                edge
                for vertex in self.vertices
                for edge in vertex.inputs
                if edge.data_set.id == data_set_id
            ),
            None,
        )

    @property
    def slots_needed(self) -> int:
        """The number of slots needed to run the whole job at once: the sum of each sharing group's
        largest parallelism."""
        widest: dict[str, int] = {}
        for vertex in self.vertices:
            widest[vertex.slot_sharing_group] = max(
                widest.get(vertex.slot_sharing_group, 0), vertex.parallelism
            )
        return sum(widest.values())
