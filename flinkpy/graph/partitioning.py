"""How a program distributes records over the channels of an edge;
``flinkpy.network.partitioning.partitioners`` implements it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from flinkpy.graph.job_graph import DistributionPattern


class PartitioningKind(Enum):
    FORWARD = "FORWARD"  # subtask i to subtask i
    REBALANCE = "REBALANCE"  # round robin over all
    RESCALE = "RESCALE"  # round robin over a local group
    SHUFFLE = "SHUFFLE"  # at random
    BROADCAST = "BROADCAST"  # every record to all
    GLOBAL = "GLOBAL"  # all to subtask 0
    HASH = "HASH"  # by key group
    CUSTOM = "CUSTOM"  # the user's function of key and number of channels


@dataclass(frozen=True)
class KeySpec:
    """Where a record's key is: ``selector`` for rows, ``columns`` for column batches. A columnar
    keyed stream has both; its selector takes a row of the batch as a tuple. ``kind`` says which
    keys can be equal to these, if types were declared."""

    selector: Callable[[Any], Any] | None = None
    columns: tuple[str, ...] | None = None
    kind: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Partitioning:
    kind: PartitioningKind
    key: KeySpec | None = None  # HASH and CUSTOM
    max_parallelism: int | None = None  # HASH: set when the stream graph is built
    custom: Callable[[Any, int], int] | None = None  # CUSTOM: (key, channels) -> channel
    # HASH: the consumer reads no keys, so the exchange reads them, also where it has one channel
    reads_all_keys: bool = False

    @property
    def pattern(self) -> DistributionPattern:
        """POINTWISE for FORWARD and RESCALE, ALL_TO_ALL for all others."""
        pointwise = self.kind in (PartitioningKind.FORWARD, PartitioningKind.RESCALE)
        return DistributionPattern.POINTWISE if pointwise else DistributionPattern.ALL_TO_ALL


FORWARD = Partitioning(PartitioningKind.FORWARD)
REBALANCE = Partitioning(PartitioningKind.REBALANCE)
RESCALE = Partitioning(PartitioningKind.RESCALE)
SHUFFLE = Partitioning(PartitioningKind.SHUFFLE)
BROADCAST = Partitioning(PartitioningKind.BROADCAST)
GLOBAL = Partitioning(PartitioningKind.GLOBAL)
