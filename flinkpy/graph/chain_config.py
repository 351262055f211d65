"""The content of ``JobVertex.chain``: a chain's operators, and the targets of each operator's
outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from flinkpy.core.ids import OperatorId
from flinkpy.graph.operator_port import Operator
from flinkpy.graph.partitioning import Partitioning

O_co = TypeVar("O_co", bound=Operator, covariant=True)


@dataclass(frozen=True)
class ChainedEdge:
    """An output to an operator further down the same chain; ``target`` is its position."""

    target: int
    side_tag: str | None = None  # None: the main output


@dataclass(frozen=True)
class NetworkEdge:
    """An output to the network output of that index
    (``ResultPartitionDescriptor.output_index``)."""

    output_index: int
    partitioning: Partitioning
    side_tag: str | None = None
    # -1: send only full batches, and when idle; 0: send after every batch
    buffer_timeout_ms: int = 100
    type_info: Any = None  # the records' declared type (flinkpy.common.typeinfo), or None


@dataclass(frozen=True)
class ChainedOperator(Generic[O_co]):
    operator_id: OperatorId
    name: str
    uid: str | None
    operator: O_co
    edges: tuple[ChainedEdge | NetworkEdge, ...] = ()


@dataclass(frozen=True)
class ChainConfig(Generic[O_co]):
    """The operators of a chain, head first; an operator's chained successors come after it.
    ``inputs`` is the number of inputs of the head: 0 for a source. A task reads it as a
    ``ChainConfig[StreamOperator]``, for it calls the operators."""

    operators: tuple[ChainedOperator[O_co], ...]
    inputs: int = 0

    @property
    def head(self) -> ChainedOperator[O_co]:
        return self.operators[0]
